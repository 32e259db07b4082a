//! Asks what the kernel computes, without a connection: `bpf/ask.bpf.c` runs the code of the congestion
//! control for numbers that come through a map.
use super::layout::{Delivery, GOVERNED, Question, SRTT_AT, VALUES_MAX, WINDOW_AT};
use super::{Compiled, POINT, Plain, tables};
use crate::error::Error;
use crate::kernel::table::Table;
use ackademy::control::LossKind;
use ackademy::units::{Span, Time};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle, OpenObject, ProgramInput, ProgramMut};
use skeleton::{AskSkel, AskSkelBuilder};
use std::mem::MaybeUninit;

#[allow(missing_docs, unused_imports, clippy::all, clippy::pedantic, clippy::unwrap_used)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/ask.skel.rs"));
}

/// Room for the program.
#[derive(Debug)]
pub struct Room(MaybeUninit<OpenObject>);

impl Room {
    /// Empty.
    pub fn new() -> Self {
        Self(MaybeUninit::uninit())
    }
}

impl Default for Room {
    fn default() -> Self {
        Self::new()
    }
}

/// The loaded program, with a policy.
pub struct Asked<'room> {
    skeleton: AskSkel<'room>,
    questions: Table<Question>,
    outputs: usize,
}

/// What the functions of `bpf/fixed.h` give for a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Functions {
    /// Base-2 logarithm, Q24.
    pub log2: i64,
    /// 2^x of x in Q24, in Q16.
    pub exp2: i64,
    /// Square root, rounded down.
    pub root: i64,
    /// Hyperbolic tangent, from Q14 to Q14.
    pub tanh: i64,
}

impl<'room> Asked<'room> {
    /// Loads the program.
    ///
    /// # Errors
    ///
    /// If the kernel cannot, or the caller may not.
    pub fn load(room: &'room mut Room, compiled: &Compiled) -> Result<Self, Error> {
        let failed = |error: libbpf_rs::Error| {
            Error::System(format!("cannot load the program that asks compiled policies: {error:#}"))
        };
        let open = AskSkelBuilder::default().open(&mut room.0).map_err(failed)?;
        let skeleton = open.load().map_err(failed)?;
        let first = 0_u32.to_ne_bytes();
        skeleton.maps.tables.update(&first, tables().bytes(), MapFlags::ANY).map_err(failed)?;
        let questions = MapHandle::try_from(&skeleton.maps.questions).map_err(failed)?;
        let mut asked = Self { questions: Table::map(&questions)?, skeleton, outputs: 0 };
        asked.set(compiled)?;
        Ok(asked)
    }

    /// Opens a flow with this window and threshold, in packets: what was kept of the one before is forgotten.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn start(&mut self, now: Time, cwnd: u32, ssthresh: u32, seed: u64) -> Result<(), Error> {
        let flow = Delivery {
            now: now.0,
            sent_at: seed,
            acked: cwnd,
            found: ssthresh,
            ..Delivery::default()
        };
        self.tell(&Question {
            governed: [0; GOVERNED],
            delivery: flow,
            number: 0,
            answer: [0; 16],
        });
        run(&self.skeleton.progs.ask_start)
    }

    /// An acknowledgement; whether a decision fell due with it.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn on_delivery(&mut self, delivery: Delivery) -> Result<bool, Error> {
        self.tell(&Question { delivery, ..self.questions.read(0) });
        run(&self.skeleton.progs.ask_delivery)?;
        Ok(self.questions.read(0).answer[0] != 0)
    }

    /// Packets were lost at `now`, or what else `kind` says.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn on_loss(&mut self, now: Time, packets: u32, kind: LossKind) -> Result<(), Error> {
        // `enum loss` of `bpf/compiled.h`.
        let found = match kind {
            LossKind::More | LossKind::Deflate => 0,
            LossKind::Gap => 1,
            LossKind::Timeout => 2,
            LossKind::TimeoutAgain => 3,
            LossKind::Spurious => 4,
            LossKind::Idle => 5,
        };
        let delivery = Delivery { now: now.0, acked: packets, found, ..Delivery::default() };
        self.tell(&Question { delivery, ..self.questions.read(0) });
        run(&self.skeleton.progs.ask_loss)
    }

    /// What the flow may have in flight, in packets, and its rate, in packets per second.
    pub fn allowed(&self) -> (f64, f64) {
        let [_, window, rate, ..] = self.questions.read(0).answer;
        (window as f64 / 65536.0, rate as f64 / 65536.0)
    }

    /// The flow's smoothed round trip.
    pub fn srtt(&self) -> Span {
        Span(self.questions.read(0).governed[SRTT_AT])
    }

    /// Sets the law's window, in packets, unless a drain is under way.
    pub fn follow(&mut self, packets: f64) {
        let mut question = self.questions.read(0);
        if question.governed[WINDOW_AT].cast_signed() != question.answer[1] {
            return;
        }
        question.governed[WINDOW_AT] = (packets * 65536.0).round() as u64;
        self.tell(&question);
    }

    /// The newest vector of `width` features of an observation of `rows`.
    pub fn newest(&self, width: usize, rows: usize) -> Vec<f64> {
        let question = self.questions.read(0);
        let words = question.governed.iter().take(VALUES_MAX / 2);
        let values: Vec<u32> =
            words.flat_map(|word| [*word as u32, (*word >> 32) as u32]).collect();
        let newest = &values[(rows - 1) * width..rows * width];
        let one = f64::from(1 << POINT);
        newest.iter().map(|value| f64::from(value.cast_signed()) / one).collect()
    }

    fn tell(&mut self, question: &Question) {
        self.questions.put(0, question);
    }

    /// From now on another policy is asked.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn set(&mut self, compiled: &Compiled) -> Result<(), Error> {
        self.outputs = compiled.outputs;
        let (maps, first) = (&self.skeleton.maps, 0_u32.to_ne_bytes());
        maps.network
            .update(&first, &compiled.network_bytes(), MapFlags::ANY)
            .and_then(|()| maps.policy.update(&first, compiled.rules.bytes(), MapFlags::ANY))
            .map_err(|error| Error::System(format!("cannot write a compiled policy: {error}")))
    }

    /// The network's outputs for an observation.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    ///
    /// # Panics
    ///
    /// If the observation is longer than any that can be compiled.
    pub fn outputs(&mut self, observation: &[f32]) -> Result<Vec<f64>, Error> {
        assert!(observation.len() <= VALUES_MAX, "{} numbers", observation.len());
        let mut question = self.questions.read(0);
        let one = f64::from(1 << POINT);
        let mut values = [0; VALUES_MAX];
        for (to, from) in values.iter_mut().zip(observation) {
            *to = (f64::from(*from) * one).round() as i32;
        }
        for (word, pair) in question.governed.iter_mut().zip(values.as_chunks().0) {
            let [low, high]: [i32; 2] = *pair;
            *word = u64::from(low.cast_unsigned()) | u64::from(high.cast_unsigned()) << 32;
        }
        self.questions.put(0, &question);
        run(&self.skeleton.progs.ask_network)?;
        let answer = self.questions.read(0).answer;
        Ok(answer[..self.outputs].iter().map(|value| *value as f64 / one).collect())
    }

    /// Evaluates the network again, for nothing but the time that it takes.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn again(&self) -> Result<(), Error> {
        run(&self.skeleton.progs.ask_network)
    }

    /// The functions of a number.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn functions(&mut self, number: u64) -> Result<Functions, Error> {
        self.questions.put(0, &Question { number, ..self.questions.read(0) });
        run(&self.skeleton.progs.ask_functions)?;
        let [log2, exp2, root, tanh, ..] = self.questions.read(0).answer;
        Ok(Functions { log2, exp2, root, tanh })
    }
}

/// Runs a program once.
fn run(program: &ProgramMut<'_>) -> Result<(), Error> {
    let ran = program.test_run(ProgramInput::default());
    let failed = |why: String| Error::System(format!("cannot ask a compiled policy: {why}"));
    let output = ran.map_err(|error| failed(error.to_string()))?;
    if output.return_value == 0 { Ok(()) } else { Err(failed("no valid network".to_owned())) }
}
