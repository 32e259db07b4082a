//! The loop that reads records and writes decisions: one thread, which sleeps while there are none.
use super::adapter::{Adapter, Allowed, flow_info};
use super::governor::{Governor, Governors};
use super::program::Program;
use super::record::decided as flags;
use super::record::{self, Counts, Decision, Flow, PACING_NONE, Plain, Record, kind, verdict};
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
    governed: Option<Governed>,
    totals: FlowTotals,
    /// Newest record, and when it was made.
    number: u64,
    sampled_at: u64,
}

/// How often it looks for flows that ended unseen, and whether slots are scarce.
const LOOK: Span = Span::from_millis(100);
/// How often it says that they are.
const SAY: Span = Span::from_millis(60_000);

/// Where a flow's governor is, and what tells it of the flow.
struct Governed {
    place: usize,
    adapter: Adapter,
    /// As last written.
    decided: Option<Decided>,
}

/// What a governor decided for one of its flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decided {
    /// `None`: what no sender can obey.
    allowed: Option<Allowed>,
    fell_back: bool,
}

/// What a governor wants for one of its flows after a call.
struct Wanted {
    slot: u32,
    decided: Decided,
    timer: Option<Time>,
}

/// Serves a congestion control to the kernel's TCP.
pub struct Agent {
    program: Program,
    assign: Box<dyn Assign>,
    /// By slot.
    served: Vec<Option<Box<Served>>>,
    governors: Governors,
    /// What the latest call changed; kept for its memory.
    wanted: Vec<Wanted>,
    timers: Timers,
    /// When it last looked for flows that ended unseen, and how many records the ring had refused by then.
    looked: (Time, u64),
    /// When it last said that slots are scarce, and the counts by then.
    said: (Time, Counts),
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
        let counts = program.totals.read(0).counts;
        Ok(Self {
            program,
            assign,
            served,
            governors: Governors::default(),
            wanted: Vec::new(),
            looked: (Time(0), 0),
            said: (Time(0), counts),
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
            self.close_unseen();
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
            self.decide(record.slot, |adapter, governor| {
                if told {
                    adapter.on_record(governor, record);
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
        let governed = self.join(&key, &flow, record);
        self.served[record.slot as usize] = Some(Box::new(Served {
            key,
            generation: flow.generation,
            governed,
            totals: FlowTotals::default(),
            number: 0,
            sampled_at: 0,
        }));
        true
    }

    /// Puts a flow under its governor; `None` if it has none, or one that panics.
    fn join(&mut self, key: &FlowKey, flow: &Flow, record: &Record) -> Option<Governed> {
        let (assign, governors) = (self.assign.as_mut(), &mut self.governors);
        let placed = catch_unwind(AssertUnwindSafe(|| {
            let info = assign.info(key, flow_info(flow));
            Some((governors.place(assign, key, &info)?, info))
        }));
        let (place, info) = placed.unwrap_or(None)?;
        let governor = self.governors.get_mut(place)?;
        let joined = catch_unwind(AssertUnwindSafe(|| Adapter::new(flow, record, &info, governor)));
        if joined.is_err() {
            self.abandon(place);
        }
        Some(Governed { place, adapter: joined.ok()?, decided: None })
    }

    fn close(&mut self, slot: u32) {
        self.timers.disarm(slot);
        let Some(served) = self.served[slot as usize].take() else { return };
        let Some(Governed { place, adapter, .. }) = served.governed else { return };
        let Some(governor) = self.governors.get_mut(place) else { return };
        let assign = &mut self.assign;
        let left = catch_unwind(AssertUnwindSafe(|| {
            let counters = governor.coupled.counters(adapter.id());
            assign.closed(&served.key, counters, &served.totals);
            governor.leave(adapter.id());
            governor.members().next().is_none()
        }));
        match left {
            Ok(true) => drop(self.governors.take(place)),
            // What the flow's end changes for the others.
            Ok(false) => self.spread(place),
            // A controller that panics while a flow leaves is gone for the others, too.
            Err(_) => self.abandon(place),
        }
    }

    /// Closes flows whose end the full ring refused to tell: a governor of several flows must not count on
    /// one that is gone.
    fn close_unseen(&mut self) {
        let (now, (looked, known)) = (clock::now(), self.looked);
        if now.since(looked) < LOOK {
            return;
        }
        let counts = self.program.totals.read(0).counts;
        self.say_scarcity(now, counts);
        let refused = counts.refused;
        self.looked = (now, refused);
        if refused == known {
            return;
        }
        for slot in 0..self.served.len() as u32 {
            let Some(served) = &self.served[slot as usize] else { continue };
            let flow = self.program.flows.read(slot);
            if flow.state == record::state::FREE || flow.generation != served.generation {
                self.close(slot);
            }
        }
    }

    /// Says what has become of flows that found no free slot since it was said last.
    fn say_scarcity(&mut self, now: Time, counts: Counts) {
        let (at, before) = self.said;
        let without = counts.without_slot - before.without_slot;
        let reassigned = counts.reassigned - before.reassigned;
        if without + reassigned == 0 || now.since(at) < SAY && at != Time(0) {
            return;
        }
        self.said = (now, counts);
        note!(
            "ackademyd: all {} slots are taken: {without} new flows found none, {reassigned} took one of an idle flow or of a user with more",
            self.served.len()
        );
    }

    /// Calls the flow's controller and writes its decision, and those that the call changed for other
    /// flows of the same governor.
    fn decide(&mut self, slot: u32, call: impl FnOnce(&mut Adapter, &mut Governor)) {
        let Some(served) = &mut self.served[slot as usize] else { return };
        let governed = served.governed.as_mut();
        let Some((governed, governor)) = governed.and_then(|governed| {
            let governor = self.governors.get_mut(governed.place)?;
            Some((governed, governor))
        }) else {
            return self.write(slot, None);
        };
        let place = governed.place;
        governed.decided = None; // an answer is written even if it changes nothing
        let called = catch_unwind(AssertUnwindSafe(|| {
            call(&mut governed.adapter, governor);
            decide_due(&governed.adapter, governor)
        }));
        match called {
            Ok(inference) => {
                if let Some(inference) = inference {
                    self.inference_times.record(inference);
                }
                self.spread(place);
            }
            Err(_) => self.abandon(place),
        }
    }

    /// Writes what has changed for any flow of a governor.
    fn spread(&mut self, place: usize) {
        let Some(governor) = self.governors.get(place) else { return };
        let (wanted, served) = (&mut self.wanted, &self.served);
        wanted.clear();
        let asked = catch_unwind(AssertUnwindSafe(|| {
            for slot in governor.members() {
                let governed = served[slot as usize].as_ref().and_then(|it| it.governed.as_ref());
                let Some(Governed { adapter, .. }) = governed else { continue };
                let decided = Decided {
                    allowed: adapter.allowed(governor),
                    fell_back: adapter.fell_back(governor),
                };
                wanted.push(Wanted { slot, decided, timer: adapter.next_timer(governor) });
            }
        }));
        if asked.is_err() {
            return self.abandon(place);
        }
        for index in 0..self.wanted.len() {
            let Wanted { slot, decided, timer } = self.wanted[index];
            if let Some(at) = timer {
                self.timers.arm(slot, at);
            }
            let served = self.served[slot as usize].as_mut();
            let Some(governed) = served.and_then(|served| served.governed.as_mut()) else {
                continue;
            };
            if governed.decided.replace(decided) != Some(decided) {
                self.write(slot, Some(decided));
            }
        }
    }

    /// Leaves all flows of a governor that has panicked to CUBIC.
    fn abandon(&mut self, place: usize) {
        let Some(governor) = self.governors.take(place) else { return };
        for slot in governor.members() {
            if let Some(served) = &mut self.served[slot as usize] {
                served.governed = None;
            }
            self.write(slot, None);
        }
        let _ = catch_unwind(AssertUnwindSafe(|| drop(governor)));
    }

    /// Writes a decision; `None` leaves the flow to CUBIC for good.
    fn write(&mut self, slot: u32, decided: Option<Decided>) {
        let Some(served) = &self.served[slot as usize] else { return };
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
        if let Some(Decided { allowed, fell_back }) = decided {
            decision.flags = if fell_back { flags::FELL_BACK } else { 0 };
            decision.verdict = verdict::INVALID;
            if let Some(allowed) = allowed {
                decision.verdict = if allowed.growing { verdict::GROW } else { verdict::OBEY };
                decision.base = allowed.base;
                decision.cwnd = allowed.cwnd;
                decision.ssthresh = allowed.ssthresh;
                decision.pacing = allowed.pacing;
            }
        }
        decision.written_at = clock::now().0;
        self.program.decisions.write(slot, &decision);
    }

    /// When the controller of the flow in `slot` wants to be called.
    fn wanted_at(served: &[Option<Box<Served>>], governors: &Governors, slot: u32) -> Option<Time> {
        let governed = served[slot as usize].as_ref()?.governed.as_ref()?;
        governed.adapter.next_timer(governors.get(governed.place)?)
    }

    /// Calls the controllers whose time has come.
    fn expire(&mut self, now: Time) {
        while let Some(slot) =
            self.timers.expire(now, |slot| Self::wanted_at(&self.served, &self.governors, slot))
        {
            self.decide(slot, |adapter, governor| adapter.on_timer(governor, now));
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
fn decide_due(adapter: &Adapter, governor: &mut Governor) -> Option<Span> {
    if !adapter.is_due(governor) {
        return None;
    }
    let began = clock::spent();
    adapter.decide(governor);
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
        token: flow.token,
        subflow: flow.subflow,
    }
}
