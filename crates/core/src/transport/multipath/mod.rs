//! The data level of a connection with several subflows (RFC 8684), without I/O and without the wire
//! format: the sender maps its data to subflows, the receiver puts it in order again.
//!
//! Data is numbered in bytes from 0. A segment of a subflow carries the range of data that it holds
//! ([`Mapping`]), an acknowledgement the low 32 bits of the next byte that the receiver expects: the
//! data acknowledgement. The application reads data in order as it comes, so the receive window always
//! ends one receive buffer beyond it. What waits for an earlier byte fills the buffer, and the sender
//! stops at the window's end however much room its subflows have (head-of-line blocking).
use crate::transport::schedulers::{Candidate, Scheduler, Spec};
use std::collections::VecDeque;

mod reassembly;

pub use reassembly::Reassembly;

/// Most subflows of a connection (Linux: `MPTCP_PM_ADDR_MAX`).
pub const SUBFLOWS_MAX: usize = 8;
/// Largest buffer, bytes: data acknowledgements of 32 bits stay unambiguous.
pub const BUFFER_MAX: u64 = 1 << 30;

/// Settings of a connection's data level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataConfig {
    /// Most bytes beyond the data acknowledgement that the receiver takes.
    pub receive_buffer: u64,
    /// Most bytes that the sender keeps until the data level acknowledges them.
    pub send_buffer: u64,
    /// Whether a subflow that the window blocks sends the first unacknowledged data of another one.
    pub opportunistic: bool,
    /// Most bytes of data in a segment.
    pub payload: u64,
}

/// The data of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// Its first byte.
    pub start: u64,
    /// Its length; 0 for a segment without data.
    pub len: u32,
}

impl Mapping {
    /// The byte after its last.
    pub fn end(self) -> u64 {
        self.start + u64::from(self.len)
    }
}

/// Data that a subflow may put into its next segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its first byte.
    pub start: u64,
    /// Its length.
    pub len: u64,
    /// Whether it was never sent before: it comes from the application.
    pub is_new: bool,
    source: Source,
}

/// Where offered data comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Application,
    /// Another subflow sent it and stalled, or closed.
    Stalled(usize),
    /// Another subflow sent it; this one sends it too.
    Copy,
    /// The window is full, and the data is what it waits for.
    Head,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Not open yet.
    #[default]
    Waiting,
    Open,
    Closed,
}

/// A segment that its subflow has not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Sent {
    start: u64,
    len: u32,
    /// Offered to other subflows already.
    reinjected: bool,
}

impl Sent {
    fn mapping(&self) -> Mapping {
        Mapping { start: self.start, len: self.len }
    }
}

/// What the data level knows of a subflow.
#[derive(Debug, Default)]
struct Subflow {
    state: State,
    /// Number of the segment that `sent` begins with.
    first: u64,
    sent: VecDeque<Sent>,
    /// With a redundant scheduler: it has sent all data before.
    position: u64,
    /// The head of the window up to which it has sent copies of others' data.
    head: u64,
    /// Its data that others are to send, in order.
    stalled: VecDeque<Mapping>,
}

/// The sending end of a connection's data level.
#[derive(Debug)]
pub struct DataSender {
    config: DataConfig,
    scheduler: Box<dyn Scheduler>,
    is_redundant: bool,
    /// The first byte that is not acknowledged.
    una: u64,
    /// The first byte that was never sent.
    next: u64,
    subflows: Vec<Subflow>,
    /// Any subflow may have stalled data.
    any_stalled: bool,
    /// A subflow with room was left without data.
    starved: bool,
    reinjected_bytes: u64,
}

impl DataSender {
    /// Nothing sent; no subflow is open.
    pub fn new(config: DataConfig, scheduler: &Spec, subflows: usize) -> Self {
        let scheduler = (scheduler.build)();
        Self {
            config,
            is_redundant: scheduler.is_redundant(),
            scheduler,
            una: 0,
            next: 0,
            subflows: (0..subflows).map(|_| Subflow::default()).collect(),
            any_stalled: false,
            starved: true,
            reinjected_bytes: 0,
        }
    }

    /// The first byte that is not acknowledged.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// Bytes sent so far, each counted once.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Bytes that a subflow sent in place of another.
    pub fn reinjected_bytes(&self) -> u64 {
        self.reinjected_bytes
    }

    /// Whether every byte sent is acknowledged at the data level.
    pub fn all_acknowledged(&self) -> bool {
        self.una == self.next
    }

    /// Whether a subflow with room was left without data since [`start_round`](Self::start_round).
    pub fn is_starved(&self) -> bool {
        self.starved
    }

    /// All open subflows are about to be asked.
    pub fn start_round(&mut self) {
        self.starved = false;
    }

    /// Whether a subflow may send.
    pub fn is_open(&self, subflow: usize) -> bool {
        self.subflows[subflow].state == State::Open
    }

    /// Whether a subflow has closed.
    pub fn is_closed(&self, subflow: usize) -> bool {
        self.subflows[subflow].state == State::Closed
    }

    /// A subflow opens; one that has closed does not open again.
    pub fn open(&mut self, subflow: usize) {
        let own = &mut self.subflows[subflow];
        if own.state == State::Waiting {
            own.state = State::Open;
            own.position = self.una;
            self.starved = true;
        }
    }

    /// A subflow closes: what it has in flight is offered to the others.
    pub fn close(&mut self, subflow: usize) {
        self.on_timeout(subflow);
        let own = &mut self.subflows[subflow];
        own.state = State::Closed;
        own.first += own.sent.len() as u64;
        own.sent.clear();
    }

    /// The scheduler's choice among the subflows that may have room; there is at least one.
    pub fn choose(&self, candidates: &[Candidate]) -> usize {
        match candidates {
            [only] => only.subflow,
            _ => candidates[self.scheduler.choose(candidates)].subflow,
        }
    }

    /// The data that a subflow's next segment would carry, if there is any for it; `unsent` bytes wait
    /// at the application.
    #[inline]
    pub fn offer(&mut self, subflow: usize, unsent: u64) -> Option<Offer> {
        if !self.any_stalled && !self.is_redundant {
            let fresh = self.fresh(unsent);
            if fresh.is_some() {
                return fresh;
            }
        }
        self.old_or_fresh(subflow, unsent)
    }

    /// As [`offer`](Self::offer), where data of other subflows comes first or there may be nothing new.
    fn old_or_fresh(&mut self, subflow: usize, unsent: u64) -> Option<Offer> {
        let offer = self
            .stalled_for(subflow)
            .or_else(|| self.copy_for(subflow))
            .or_else(|| self.fresh(unsent))
            .or_else(|| self.head_for(subflow, unsent));
        self.starved |= offer.is_none();
        offer
    }

    /// Stalled data of other subflows, lowest first.
    fn stalled_for(&mut self, subflow: usize) -> Option<Offer> {
        if !self.any_stalled {
            return None;
        }
        self.any_stalled = false;
        let una = self.una;
        let mut found: Option<(usize, Mapping)> = None;
        for (from, own) in self.subflows.iter_mut().enumerate() {
            while own.stalled.front().is_some_and(|mapping| mapping.end() <= una) {
                own.stalled.pop_front();
            }
            let Some(&mapping) = own.stalled.front() else { continue };
            self.any_stalled = true;
            if from != subflow && found.is_none_or(|(_, lowest)| mapping.start < lowest.start) {
                found = Some((from, mapping));
            }
        }
        let (from, mapping) = found?;
        let start = mapping.start.max(una);
        Some(Offer {
            start,
            len: mapping.end() - start,
            is_new: false,
            source: Source::Stalled(from),
        })
    }

    /// With a redundant scheduler, what others have sent and this one has not.
    fn copy_for(&self, subflow: usize) -> Option<Offer> {
        let start = self.subflows[subflow].position.max(self.una);
        let len = self.config.payload.min(self.next.saturating_sub(start));
        let is_due = self.is_redundant && len > 0;
        is_due.then_some(Offer { start, len, is_new: false, source: Source::Copy })
    }

    /// New data within the window, in full segments but the last.
    #[inline]
    fn fresh(&self, unsent: u64) -> Option<Offer> {
        let len = self.config.payload.min(unsent);
        let fits = self.next + len <= self.una + self.window();
        let offer = Offer { start: self.next, len, is_new: true, source: Source::Application };
        (len > 0 && fits).then_some(offer)
    }

    /// What the full window waits for, unless this subflow has sent it.
    fn head_for(&self, subflow: usize, unsent: u64) -> Option<Offer> {
        let own = &self.subflows[subflow];
        let sent_it = |sent: &Sent| sent.start <= self.una && self.una < sent.mapping().end();
        let is_due = self.config.opportunistic
            && !self.is_redundant
            && unsent > 0
            && self.una < self.next
            && own.head <= self.una
            && !own.sent.iter().any(sent_it);
        let len = self.config.payload.min(self.next - self.una);
        is_due.then_some(Offer { start: self.una, len, is_new: false, source: Source::Head })
    }

    /// Whether a full segment would not fit the receive window, though the send buffer may have room. A full send
    /// buffer is the application's limit, as in Linux.
    pub fn is_receiver_full(&self) -> bool {
        let DataConfig { receive_buffer, send_buffer, payload, .. } = self.config;
        receive_buffer <= send_buffer && self.next + payload > self.una + receive_buffer
    }

    /// How far beyond the data acknowledgement the sender may send.
    #[inline]
    fn window(&self) -> u64 {
        self.config.receive_buffer.min(self.config.send_buffer)
    }

    /// The subflow's next segment carries the first `taken` bytes of what it was offered.
    #[inline]
    pub fn take(&mut self, subflow: usize, offer: &Offer, taken: u64) {
        if taken == 0 {
            return;
        }
        let end = offer.start + taken;
        match offer.source {
            Source::Application => self.next = end,
            _ => self.take_again(subflow, offer.source, taken, end),
        }
        let own = &mut self.subflows[subflow];
        own.position = own.position.max(end);
        own.sent.push_back(Sent { start: offer.start, len: taken as u32, reinjected: false });
        self.scheduler.on_sent(subflow);
    }

    /// A subflow takes `taken` bytes up to `end` that another one has sent.
    fn take_again(&mut self, subflow: usize, source: Source, taken: u64, end: u64) {
        match source {
            Source::Application | Source::Copy => {}
            Source::Stalled(from) => {
                self.reinjected_bytes += taken;
                let stalled = &mut self.subflows[from].stalled;
                if let Some(front) = stalled.front_mut() {
                    *front = Mapping { start: end, len: (front.end() - end) as u32 };
                    if front.len == 0 {
                        stalled.pop_front();
                    }
                }
            }
            Source::Head => {
                self.reinjected_bytes += taken;
                self.subflows[subflow].head = end;
            }
        }
    }

    /// A subflow sent this segment for the first time: one that took no data carries none.
    pub fn on_sent(&mut self, subflow: usize, seq: u64) {
        let own = &mut self.subflows[subflow];
        while own.first + own.sent.len() as u64 <= seq {
            own.sent.push_back(Sent { start: self.next, len: 0, reinjected: true });
        }
    }

    /// The data of a segment that its subflow has not acknowledged.
    pub fn mapping(&self, subflow: usize, seq: u64) -> Mapping {
        let own = &self.subflows[subflow];
        let index = seq.checked_sub(own.first).map(|index| index as usize);
        index.and_then(|index| own.sent.get(index)).map_or_else(Mapping::default, Sent::mapping)
    }

    /// A data acknowledgement arrived, given by its low 32 bits.
    pub fn on_data_ack(&mut self, low: u32) {
        let ahead = low.wrapping_sub(self.una as u32);
        if i32::try_from(ahead).is_ok() {
            self.una = (self.una + u64::from(ahead)).min(self.next);
        }
    }

    /// A subflow has acknowledged all segments before `seq`.
    pub fn on_acknowledged(&mut self, subflow: usize, seq: u64) {
        let own = &mut self.subflows[subflow];
        while own.first < seq && own.sent.pop_front().is_some() {
            own.first += 1;
        }
    }

    /// A subflow's retransmission timer expired: its data is offered to the others, once.
    pub fn on_timeout(&mut self, subflow: usize) {
        if self.is_redundant {
            return; // the others send it anyway
        }
        let una = self.una;
        let Subflow { sent, stalled, .. } = &mut self.subflows[subflow];
        let lost = sent.iter_mut().filter(|sent| !sent.reinjected && sent.mapping().end() > una);
        stalled.extend(lost.map(|sent| {
            sent.reinjected = true;
            sent.mapping()
        }));
        self.any_stalled |= !stalled.is_empty();
    }

    /// Whether every byte between the data acknowledgement and `next` is with the receiver, in flight on
    /// an open subflow, or to be sent by one.
    pub fn loses_nothing(&self, receiver: &Reassembly) -> bool {
        let mut ranges: Vec<(u64, u64)> = receiver.ranges().collect();
        for own in &self.subflows {
            ranges.extend(own.sent.iter().map(|sent| (sent.start, sent.mapping().end())));
            ranges.extend(own.stalled.iter().map(|mapping| (mapping.start, mapping.end())));
            if self.is_redundant && own.state == State::Open {
                ranges.push((own.position, self.next));
            }
        }
        if self.is_redundant && self.subflows.iter().all(|own| own.state != State::Open) {
            return true; // one that opens sends all from the data acknowledgement on
        }
        ranges.sort_unstable();
        let covered =
            ranges.iter().fold(
                self.una,
                |covered, &(start, end)| {
                    if start <= covered { covered.max(end) } else { covered }
                },
            );
        covered >= self.next
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
