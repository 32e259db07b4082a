//! The loop that reads records and writes decisions: one thread, which sleeps while there are none.
use super::adapter::{Adapter, flow_info};
use super::program::Program;
use super::record::{self, Decision, Flow, PACING_NONE, Plain, Record, decided, kind, verdict};
use super::timers::Timers;
use super::{Assign, FlowKey, FlowTotals, Options};
use crate::clock;
use crate::error::Error;
use crate::link::delays::Delays;
use ackademy::units::{Span, Time};
use libbpf_rs::RingBufferBuilder;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often a loop without work looks whether it is to stop.
const NAP: Duration = Duration::from_millis(100);

/// A flow, its controller, and the newest record and decision.
struct Served {
    key: FlowKey,
    generation: u32,
    /// `None`: abandoned to CUBIC, its controller panicked or it never had one.
    adapter: Option<Adapter>,
    totals: FlowTotals,
    /// Newest record, and when it was made.
    number: u64,
    sampled_at: u64,
}

/// Serves a congestion control to the kernel's TCP.
pub struct Agent {
    program: Program,
    assign: Box<dyn Assign>,
    /// By slot.
    served: Vec<Option<Served>>,
    timers: Timers,
    /// From the making of a record to the writing of its answer.
    response_times: Delays,
    /// The same, of the records with which a decision fell due.
    policy_response_times: Delays,
    /// Processor time of the decisions that fell due with a record.
    inference_times: Delays,
}

impl Agent {
    /// Registers the congestion control.
    ///
    /// # Errors
    ///
    /// If an option is out of range, the kernel cannot, or the caller may not.
    pub fn start(options: &Options, assign: Box<dyn Assign>) -> Result<Self, Error> {
        let program = Program::start(options)?;
        let served = (0..options.slots).map(|_| None).collect();
        Ok(Self {
            program,
            assign,
            served,
            timers: Timers::new(options.slots),
            response_times: Delays::default(),
            policy_response_times: Delays::default(),
            inference_times: Delays::default(),
        })
    }

    /// Serves until `stop`, in the calling thread, whose priority it raises if it may.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the ring buffer.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), Error> {
        raise_priority();
        let arrived = RefCell::new(Vec::new());
        let failed = |error: &dyn std::fmt::Display| {
            Error::System(format!("cannot read the ring of samples: {error}"))
        };
        let records = libbpf_rs::MapHandle::try_from(&self.program.records)
            .map_err(|error| failed(&error))?;
        let mut ring = RingBufferBuilder::new();
        ring.add(&records, |bytes| {
            arrived.borrow_mut().extend(Record::from_bytes(bytes));
            0
        })
        .map_err(|error| failed(&error))?;
        let ring = ring.build().map_err(|error| failed(&error))?;
        if self.program.taken_over {
            // Records of the time without an agent are out of date: flows are taken over with their next one.
            ring.consume().map_err(|error| failed(&error))?;
            arrived.borrow_mut().clear();
        }
        // SAFETY: `ring` outlives it.
        let ready = unsafe { BorrowedFd::borrow_raw(ring.epoll_fd()) };
        while !stop.load(Ordering::Relaxed) {
            let mut waiting = [PollFd::new(ready, PollFlags::POLLIN)];
            // A signal ends the wait early; the flag says whether it meant us.
            let _ = ppoll(&mut waiting, Some(TimeSpec::from_duration(self.patience())), None);
            ring.consume().map_err(|error| failed(&error))?;
            for record in arrived.borrow_mut().drain(..) {
                if stop.load(Ordering::Relaxed) {
                    return Ok(()); // controllers may be slow to process all
                }
                self.on_record(&record);
            }
            self.expire(clock::now());
        }
        Ok(())
    }

    /// Counts over all flows.
    pub fn totals(&self) -> record::Totals {
        self.program.totals.read(0)
    }

    /// How long records took from their making to the writing of their answers. From there to the
    /// acknowledgement that applies them: [`record::Totals::latency`].
    pub fn response_times(&self) -> &Delays {
        &self.response_times
    }

    /// [`Self::response_times`] of the records with which a decision fell due, inference included.
    pub fn policy_response_times(&self) -> &Delays {
        &self.policy_response_times
    }

    /// How much processor time decisions took that fell due with a record: a policy's inference.
    pub fn inference_times(&self) -> &Delays {
        &self.inference_times
    }

    /// Until the next timer, at most a nap.
    fn patience(&self) -> Duration {
        match self.timers.next() {
            Some(at) => Duration::from_nanos(at.since(clock::now()).0).min(NAP),
            None => NAP,
        }
    }

    fn on_record(&mut self, record: &Record) {
        if record.slot as usize >= self.served.len() {
            return;
        }
        let known = self.served[record.slot as usize]
            .as_ref()
            .is_some_and(|served| served.generation == record.generation);
        if !known {
            self.close(record.slot);
            if record.kind == kind::CLOSE || !self.open(record) {
                return;
            }
        }
        let Some(served) = &mut self.served[record.slot as usize] else { return };
        served.note(record);
        if record.kind == kind::CLOSE {
            self.close(record.slot);
        } else {
            let told = record.kind != kind::OPEN;
            let before = self.inference_times.total();
            self.decide(record.slot, |adapter| {
                if told {
                    adapter.on_record(record);
                }
            });
            let after = clock::now().since(Time(record.now));
            self.response_times.record(after);
            if self.inference_times.total() > before {
                self.policy_response_times.record(after);
            }
        }
    }

    /// A flow seen for the first time, opened now or while no agent ran; false if it is closed
    /// already.
    fn open(&mut self, record: &Record) -> bool {
        let mut flow = self.program.flows.read(record.slot);
        if flow.generation != record.generation || flow.state == record::state::FREE {
            return false;
        }
        if record.kind != kind::OPEN {
            // Taken over: on from where it is.
            flow.initial_cwnd = flow.cwnd;
            flow.initial_ssthresh = flow.ssthresh;
        }
        let key = flow_key(&flow);
        let assign = &mut self.assign;
        let adapter = catch_unwind(AssertUnwindSafe(|| {
            let governor = assign.governor(&key, &flow_info(&flow))?;
            Some(Adapter::new(&flow, record, governor))
        }));
        self.served[record.slot as usize] = Some(Served {
            key,
            generation: flow.generation,
            adapter: adapter.unwrap_or(None),
            totals: FlowTotals::default(),
            number: 0,
            sampled_at: 0,
        });
        true
    }

    fn close(&mut self, slot: u32) {
        self.timers.disarm(slot);
        if let Some(served) = self.served[slot as usize].take()
            && let Some(adapter) = served.adapter
        {
            let assign = &mut self.assign;
            // A controller that panics while it is asked for its counters is gone anyhow.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                assign.closed(&served.key, adapter.into_governor(), &served.totals);
            }));
        }
    }

    /// Calls the flow's controller and writes its decision.
    fn decide(&mut self, slot: u32, call: impl FnOnce(&mut Adapter)) {
        let Some(served) = &mut self.served[slot as usize] else { return };
        let mut decision = Decision {
            generation: served.generation,
            verdict: verdict::ABANDON,
            number: served.number,
            sampled_at: served.sampled_at,
            pacing: PACING_NONE,
            cwnd: 1,
            ssthresh: 1,
            ..Decision::default()
        };
        if let Some(mut adapter) = served.adapter.take() {
            let called = catch_unwind(AssertUnwindSafe(|| {
                call(&mut adapter);
                let inference = settle(&mut adapter);
                let allowed = adapter.allowed();
                let timer = adapter.next_timer();
                (adapter, allowed, timer, inference)
            }));
            if let Ok((adapter, allowed, timer, inference)) = called {
                if let Some(inference) = inference {
                    self.inference_times.record(inference);
                }
                decision.flags = if adapter.fell_back() { decided::FELL_BACK } else { 0 };
                served.adapter = Some(adapter);
                decision.verdict = verdict::INVALID;
                if let Some(allowed) = allowed {
                    decision.verdict = if allowed.growing { verdict::GROW } else { verdict::OBEY };
                    decision.base = allowed.base;
                    decision.cwnd = allowed.cwnd;
                    decision.ssthresh = allowed.ssthresh;
                    decision.pacing = allowed.pacing;
                }
                if let Some(at) = timer {
                    self.timers.arm(slot, at);
                }
            }
        }
        decision.written_at = clock::now().0;
        self.program.decisions.write(slot, &decision);
    }

    /// Calls the controllers whose time has come.
    fn expire(&mut self, now: Time) {
        while let Some(slot) = self
            .timers
            .expire(now, |slot| self.served[slot as usize].as_ref()?.adapter.as_ref()?.next_timer())
        {
            self.decide(slot, |adapter| adapter.on_timer(now));
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        for slot in 0..self.served.len() {
            self.close(slot as u32);
        }
    }
}

impl Served {
    fn note(&mut self, record: &Record) {
        self.number = record.number;
        self.sampled_at = record.now;
        self.totals = FlowTotals {
            samples: self.totals.samples + 1,
            decisions: u64::from(record.decisions),
            fallbacks: u64::from(record.fallbacks),
            refused: u64::from(record.refused),
            invalid: u64::from(record.invalid),
        };
    }
}

/// Makes the decision that is due, so that it leaves with the answer to the record that it fell due
/// with; the processor time that it took.
fn settle(adapter: &mut Adapter) -> Option<Span> {
    if !adapter.is_due() {
        return None;
    }
    let began = clock::spent();
    adapter.settle();
    Some(Span(clock::spent().0 - began.0))
}

/// Ahead of ordinary programs, if this thread may: waiting for a processor behind the programs whose
/// flows it governs, it would let them fall back.
fn raise_priority() {
    const NICE: libc::c_int = -10;
    // SAFETY: a system call without pointers; 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
}

/// What names the flow in `flow`.
pub(super) fn flow_key(flow: &Flow) -> FlowKey {
    let address = |bytes: [u8; 16], port| {
        let [a, b, c, d, ..] = bytes;
        let ip = if i32::from(flow.family) == libc::AF_INET6 {
            IpAddr::from(Ipv6Addr::from(bytes))
        } else {
            IpAddr::from(Ipv4Addr::new(a, b, c, d))
        };
        SocketAddr::new(ip, port)
    };
    FlowKey {
        local: address(flow.local, flow.local_port),
        remote: address(flow.remote, flow.remote_port),
        namespace: flow.netns,
    }
}
