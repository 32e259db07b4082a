//! Where flows and their learner outside meet: a flow's mind leaves what it sees at its seat and
//! raises its hand; the simulation stops; the learner leaves its answer.
use crate::pilot::{Action, Credit, Measures, Mind, Refusal, Report};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What lies at an agent's seat.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seat {
    /// Vectors of features, oldest first, row by row.
    pub observation: Vec<f32>,
    /// What arrived since the decision before.
    pub arrived: Measures,
    /// What became of the packets of a slot, if an account is closed that was not told before.
    pub credit: Option<Credit>,
    /// Number of the decision, from 0.
    pub decision: u64,
    /// Whether the decision is the agent's now.
    pub due: bool,
    /// Whether the flow has ended, or the run: no decision falls due any more.
    pub left: bool,
    /// Whether anything here is new since the learner last looked.
    pub fresh: bool,
    answer: Option<Action>,
}

/// The seats of one simulation.
#[derive(Debug)]
pub(super) struct Desk {
    seats: Vec<Mutex<Seat>>,
    taken: AtomicU32,
    /// Agents whose answer is awaited. Only the simulation's thread changes it.
    waiting: AtomicU32,
}

impl Desk {
    pub(super) fn new(seats: usize, numbers: usize) -> Self {
        let seat = || Seat { observation: vec![0.0; numbers], ..Seat::default() };
        Self {
            seats: (0..seats).map(|_| Mutex::new(seat())).collect(),
            taken: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
        }
    }

    pub(super) fn someone_waits(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed) as usize
    }

    pub(super) fn seat(&self, agent: usize) -> MutexGuard<'_, Seat> {
        self.seats[agent].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves an answer; false if none is awaited.
    pub(super) fn answer(&self, agent: usize, action: Action) -> bool {
        let mut seat = self.seat(agent);
        if !seat.due {
            return false;
        }
        seat.due = false;
        seat.answer = Some(action);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        true
    }
}

/// The mind of a flow whose learner is outside.
#[derive(Debug)]
pub(super) struct Student {
    desk: Arc<Desk>,
    seat: usize,
}

impl Student {
    /// Takes the next seat, of which there is one.
    pub(super) fn enrol(desk: &Arc<Desk>) -> Self {
        let seat = desk.taken.fetch_add(1, Ordering::Relaxed) as usize;
        Self { desk: Arc::clone(desk), seat }
    }
}

impl Mind for Student {
    fn decide(&mut self, _observation: &[f32]) -> Result<Action, Refusal> {
        // Nobody answered: an episode that goes on all the same is no business of the flow's.
        self.desk.seat(self.seat).answer.take().ok_or(Refusal::OutOfRange)
    }

    fn watches(&self) -> bool {
        true
    }

    fn hear(&mut self, report: &Report) {
        let mut seat = self.desk.seat(self.seat);
        seat.observation.copy_from_slice(report.observation);
        seat.arrived = report.arrived;
        seat.credit = report.credit;
        seat.decision = report.decision;
        seat.fresh = true;
        if report.due && !seat.due {
            seat.due = true;
            self.desk.waiting.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn leave(&mut self) {
        self.desk.seat(self.seat).left = true;
    }
}
