//! Wrappers around a governor: [`Watch`] keeps what it was told, what it allowed and when packets left, and
//! [`Batches`] tells it of several acknowledgements at once, as the kernel's records do.
use ackademy::control::{
    Ack, CWND_MAX, Control, Coupled, FlowInfo, Loss, LossKind, Send, SendAction, SubflowId,
};
use ackademy::units::{Span, Time};
use std::sync::{Arc, Mutex, MutexGuard};

/// What happened to a flow.
#[derive(Clone, Copy, Debug)]
pub enum What {
    /// So much was delivered, with this round-trip sample; so much is in flight after it.
    Ack {
        acked: u64,
        rtt: Span,
        inflight: u64,
    },
    Loss {
        kind: LossKind,
    },
    Timer,
}

/// Something happened, and what was allowed before and after it.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub now: Time,
    pub what: What,
    pub before: Control,
    pub after: Control,
}

/// All of a flow's life.
#[derive(Debug, Default)]
pub struct Log {
    pub steps: Vec<Step>,
    /// When packets left.
    pub sends: Vec<Time>,
}

/// Keeps a [`Log`] of the flow under it.
pub struct Watch {
    inner: Box<dyn Coupled>,
    log: Arc<Mutex<Log>>,
    has_hook: bool,
}

impl Watch {
    /// The wrapper, and where its log is found.
    pub fn new(inner: Box<dyn Coupled>) -> (Self, Arc<Mutex<Log>>) {
        let log = Arc::new(Mutex::new(Log::default()));
        (Self { inner, log: Arc::clone(&log), has_hook: false }, log)
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().expect("one thread")
    }

    fn step(&mut self, id: SubflowId, now: Time, what: What, call: impl FnOnce(&mut dyn Coupled)) {
        let before = self.inner.control(id);
        call(self.inner.as_mut());
        let after = self.inner.control(id);
        self.log().steps.push(Step { now, what, before, after });
    }
}

impl Coupled for Watch {
    fn subflow_added(&mut self, id: SubflowId, flow: &FlowInfo) {
        self.inner.subflow_added(id, flow);
        self.has_hook = self.inner.has_send_hook();
    }
    fn subflow_removed(&mut self, id: SubflowId) {
        self.inner.subflow_removed(id);
    }
    fn on_ack(&mut self, id: SubflowId, ack: &Ack) {
        let what = What::Ack { acked: ack.acked.0, rtt: ack.rtt, inflight: ack.inflight.0 };
        self.step(id, ack.now, what, |inner| inner.on_ack(id, ack));
    }
    fn on_loss(&mut self, id: SubflowId, loss: &Loss) {
        let what = What::Loss { kind: loss.kind };
        self.step(id, loss.now, what, |inner| inner.on_loss(id, loss));
    }
    fn on_timer(&mut self, id: SubflowId, now: Time) {
        self.step(id, now, What::Timer, |inner| inner.on_timer(id, now));
    }
    fn has_send_hook(&self) -> bool {
        true
    }
    fn on_send(&mut self, id: SubflowId, send: &Send) -> SendAction {
        if self.has_hook && self.inner.on_send(id, send) == SendAction::Hold {
            return SendAction::Hold;
        }
        self.log().sends.push(send.now);
        SendAction::Send
    }
    fn control(&self, id: SubflowId) -> Control {
        self.inner.control(id)
    }
    fn inner(&self) -> Option<&dyn Coupled> {
        Some(self.inner.as_ref())
    }
    fn inner_mut(&mut self) -> Option<&mut dyn Coupled> {
        Some(self.inner.as_mut())
    }
}

/// Keeps the records that the governor under it is told.
pub struct Told {
    inner: Box<dyn Coupled>,
    records: Arc<Mutex<Vec<Record>>>,
}

/// A record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Record {
    Ack(Ack),
    Loss(Loss),
}

impl Told {
    pub fn new(inner: Box<dyn Coupled>, records: &Arc<Mutex<Vec<Record>>>) -> Self {
        Self { inner, records: Arc::clone(records) }
    }

    fn keep(&self, record: Record) {
        self.records.lock().expect("one thread").push(record);
    }
}

impl Coupled for Told {
    fn subflow_added(&mut self, id: SubflowId, flow: &FlowInfo) {
        self.inner.subflow_added(id, flow);
    }
    fn subflow_removed(&mut self, id: SubflowId) {
        self.inner.subflow_removed(id);
    }
    fn on_ack(&mut self, id: SubflowId, ack: &Ack) {
        self.keep(Record::Ack(*ack));
        self.inner.on_ack(id, ack);
    }
    fn on_loss(&mut self, id: SubflowId, loss: &Loss) {
        self.keep(Record::Loss(*loss));
        self.inner.on_loss(id, loss);
    }
    fn control(&self, id: SubflowId) -> Control {
        self.inner.control(id)
    }
    fn inner(&self) -> Option<&dyn Coupled> {
        Some(self.inner.as_ref())
    }
    fn inner_mut(&mut self) -> Option<&mut dyn Coupled> {
        Some(self.inner.as_mut())
    }
}

/// Hands acknowledgements on `size` at a time, for flows of one subflow. A loss, the beginning and the end of a
/// recovery, and an eighth of a round trip since the batch before end one early, as with the kernel's daemon. In slow start the window grows
/// between two calls by what is delivered, as the kernel's does between two decisions.
pub struct Batches {
    inner: Box<dyn Coupled>,
    size: u64,
    pending: Option<Ack>,
    held: u64,
    since: Time,
    growing: bool,
}

impl Batches {
    pub fn new(inner: Box<dyn Coupled>, size: u64) -> Self {
        Self { inner, size, pending: None, held: 0, since: Time(0), growing: false }
    }

    /// Adds an acknowledgement to the batch.
    fn add(&mut self, ack: &Ack) {
        self.held += 1;
        let Some(batch) = self.pending else {
            self.pending = Some(*ack);
            return;
        };
        let sampled =
            |newest: Span, before: Span| if newest > Span::ZERO { newest } else { before };
        let smaller = match (batch.batch_rtt_min, ack.batch_rtt_min) {
            (Span::ZERO, other) | (other, Span::ZERO) => other,
            (one, other) => one.min(other),
        };
        self.pending = Some(Ack {
            rtt: sampled(ack.rtt, batch.rtt),
            rtt_max: batch.rtt_max.max(ack.rtt_max),
            batch_rtt_min: smaller,
            acked: batch.acked + ack.acked,
            ce_marked: batch.ce_marked + ack.ce_marked,
            cwnd_limited: batch.cwnd_limited | ack.cwnd_limited,
            ..*ack
        });
    }

    fn flush(&mut self, id: SubflowId) {
        self.held = 0;
        if let Some(ack) = self.pending.take() {
            self.since = ack.now;
            let before = self.inner.control(id).cwnd;
            self.inner.on_ack(id, &ack);
            let grew = self.inner.control(id).cwnd.saturating_sub(before);
            self.growing = ack.recovering == 0 && grew.0.abs_diff(ack.acked.0) * 10 <= ack.acked.0;
        }
    }
}

impl Coupled for Batches {
    fn subflow_added(&mut self, id: SubflowId, flow: &FlowInfo) {
        self.inner.subflow_added(id, flow);
    }
    fn subflow_removed(&mut self, id: SubflowId) {
        self.inner.subflow_removed(id);
    }
    fn on_ack(&mut self, id: SubflowId, ack: &Ack) {
        if self.pending.is_some_and(|batch| batch.recovering != ack.recovering) {
            self.flush(id);
        }
        self.add(ack);
        if self.held >= self.size || ack.now.since(self.since) * 8 >= ack.srtt {
            self.flush(id);
        }
    }
    fn on_loss(&mut self, id: SubflowId, loss: &Loss) {
        self.flush(id);
        self.growing = false;
        self.inner.on_loss(id, loss);
    }
    fn control(&self, id: SubflowId) -> Control {
        let control = self.inner.control(id);
        match self.pending {
            Some(ack) if self.growing && ack.recovering == 0 && ack.cwnd_limited == 1 => {
                let grown = control.cwnd + ack.acked;
                let most = CWND_MAX.min(control.ssthresh.max(control.cwnd));
                Control { cwnd: grown.min(most), ..control }
            }
            _ => control,
        }
    }
    fn inner(&self) -> Option<&dyn Coupled> {
        Some(self.inner.as_ref())
    }
    fn inner_mut(&mut self) -> Option<&mut dyn Coupled> {
        Some(self.inner.as_mut())
    }
}

/// Most that was delivered in one round trip, and fastest, as far as the log goes.
#[derive(Clone, Debug, Default)]
pub struct Delivered {
    /// Time and bytes in all.
    at: Vec<(Time, u64)>,
    /// Most bytes in one round trip.
    pub most: u64,
    /// Most bits per second over one round trip.
    pub fastest: f64,
    /// Most bytes of one acknowledgement.
    pub lump: u64,
}

impl Delivered {
    pub fn add(&mut self, now: Time, acked: u64, rtt: Span) {
        let total = self.at.last().map_or(0, |last| last.1) + acked;
        self.at.push((now, total));
        self.lump = self.lump.max(acked);
        if rtt == Span::ZERO {
            return;
        }
        let from = Time(now.0.saturating_sub(rtt.0));
        let place = self.at.partition_point(|&(at, _)| at <= from);
        let before = if place == 0 { 0 } else { self.at[place - 1].1 };
        self.most = self.most.max(total - before);
        self.fastest = self.fastest.max((total - before) as f64 * 8.0 / rtt.as_secs_f64());
    }
}
