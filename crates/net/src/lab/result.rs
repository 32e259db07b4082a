//! The result of a run as JSON; `docs/guide/lab.md` is its schema.
use crate::error::Error;
use crate::kernel::record::Totals;
use crate::kernel::status::latency_quantile;
use crate::link::delays::Delays as Measured;
use crate::output::Output;
use ackademy::sim::record::{Column, Outcome, Table};
use ackademy::units::Span;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Everything that a run has to say.
#[derive(Debug, serde::Serialize)]
pub struct Report {
    /// Records, with the simulator's columns.
    pub tables: Tables,
    /// How the network was emulated.
    pub emulator: EmulatorReport,
    /// How this project's controllers were served; null if no flow has one.
    pub agent: Option<AgentReport>,
    /// What it ran on.
    pub kernel: KernelReport,
    /// What differs from the scenario, one line each.
    pub assumptions: Vec<String>,
    /// Whether the network did what the scenario says, and every flow what it should.
    pub valid: bool,
    /// Why not; empty if it is.
    pub why_invalid: String,
}

/// How the network was emulated.
#[derive(Debug, serde::Serialize)]
pub struct EmulatorReport {
    /// How late packets left.
    pub lateness_us: Lateness,
    /// `fifo` with real-time priority, else `other`.
    pub scheduler: &'static str,
    /// How long it watched instead of sleeping before a packet was due.
    pub spin_us: f64,
    /// Packets that were not read in time.
    pub tun_drops: u64,
    /// Packets handed to hosts.
    pub packets: u64,
}

/// Quantiles, in microseconds.
#[derive(Debug, serde::Serialize)]
pub struct Lateness {
    /// Median.
    pub p50: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    pub p99_9: f64,
    /// The latest.
    pub max: f64,
}

/// How this project's controllers were served.
#[derive(Debug, serde::Serialize)]
pub struct AgentReport {
    /// Of its thread: `fifo` with real-time priority, else `other`.
    pub scheduler: &'static str,
    /// Longest time between samples.
    pub interval_ms: f64,
    /// From a sample's measurement to the writing of the answer: wake-up and controller.
    pub answer_us: Decision,
    /// From a sample's measurement to the acknowledgement that obeys the answer.
    pub decision_us: Decision,
    /// Decisions that fell due with a sample, which a policy's network makes.
    pub policy_decisions: u64,
    /// `answer_us` of the samples with which they fell due; null if there was none.
    pub policy_answer_us: Option<Decision>,
    /// Processor time of each; null if there was none.
    pub policy_cpu_us: Option<Decision>,
    /// Flows whose policy had no answer that can be used; the daemon's CUBIC took over.
    pub policy_fallbacks: u64,
    /// One per flow that was under one of them.
    pub flows: Vec<AgentFlow>,
}

/// Quantiles, in microseconds; NaN if there was no decision.
#[derive(Debug, serde::Serialize)]
pub struct Decision {
    /// Median.
    pub p50: f64,
    /// 90 %.
    pub p90: f64,
    /// 99 %.
    pub p99: f64,
}

impl Decision {
    /// Of nothing.
    pub const NONE: Self = Self { p50: f64::NAN, p90: f64::NAN, p99: f64::NAN };

    /// From the agent's histogram, each at most a quarter too large.
    pub fn new(totals: &Totals) -> Self {
        if totals.latency.iter().all(|&count| count == 0) {
            return Self::NONE;
        }
        Self::by(|ratio| latency_quantile(&totals.latency, ratio))
    }

    /// Quantiles of single measurements; `None` without any.
    pub fn of(measured: &Measured) -> Option<Self> {
        (measured.total() > 0).then(|| Self::by(|ratio| measured.quantile(ratio)))
    }

    fn by(quantile: impl Fn(f64) -> Span) -> Self {
        let us = |ratio| quantile(ratio).0 as f64 / 1e3;
        Self { p50: us(0.5), p90: us(0.9), p99: us(0.99) }
    }
}

/// Counts of one flow.
#[derive(Clone, Debug, serde::Serialize)]
pub struct AgentFlow {
    /// Its name.
    pub flow: String,
    /// Samples that reached the controller.
    pub samples: u64,
    /// Decisions that the kernel applied.
    pub decisions: u64,
    /// Times that it fell back to CUBIC.
    pub fallbacks: u64,
    /// Samples that found the ring full.
    pub refused: u64,
    /// Decisions that no sender can obey.
    pub invalid: u64,
}

/// The machine.
#[derive(Debug, serde::Serialize)]
pub struct KernelReport {
    /// As `uname -r`.
    pub release: String,
}

/// Records by table and column: NaN becomes null, counts fit into signed 64 bits.
#[derive(Debug)]
pub struct Tables(Vec<Table>);

impl Tables {
    /// Those of a run.
    pub fn new(outcome: Outcome) -> Self {
        Self(outcome.into_tables().into())
    }
}

struct Columns<'a>(&'a Table);
struct Values<'a>(&'a Column);

impl Serialize for Tables {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|table| (table.name, Columns(table))))
    }
}

impl Serialize for Columns<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.columns.len()))?;
        for (name, column) in &self.0.columns {
            map.serialize_entry(name, &Values(column))?;
        }
        map.end()
    }
}

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Column::Texts { words, rows } => {
                serializer.collect_seq(rows.iter().map(|&row| &words[row as usize]))
            }
            Column::Numbers(values) => serializer.collect_seq(values),
            Column::Counts(values) => {
                serializer.collect_seq(values.iter().map(|&count| count.min(i64::MAX as u64)))
            }
        }
    }
}

impl Report {
    /// Writes it as JSON.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write(&self, to: &Output) -> Result<(), Error> {
        to.write(|out| {
            serde_json::to_writer(&mut *out, self)?;
            out.write_all(b"\n")
        })
    }
}
