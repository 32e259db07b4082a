//! A controller, its subflows, and the CUBIC that takes over if it panics.
use crate::records::{Answer, Flow};
use crate::settings;
use ackademy::control::{Control, Coupled, FlowInfo, PerFlow, SubflowId};
use ackademy::controllers;
use ackademy::scheme::Scheme;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Memory grows with the largest number of a subflow.
const SUBFLOWS_MAX: u32 = 1 << 16;

/// What C knows as `ackademy_controller`.
pub struct Governor {
    scheme: Scheme,
    inner: Box<dyn Coupled>,
    /// CUBIC for the same subflows, made before it is needed: to make it then could panic again.
    spare: Option<Box<dyn Coupled>>,
    /// By number; those that left are `None`.
    subflows: Vec<Option<FlowInfo>>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    Done(Answer),
    /// The controller panicked; the answer is CUBIC's.
    FellBack(Answer),
    /// An argument is not allowed; nothing changed.
    Refused,
}

/// What `work` returns; `None` if it panics.
pub(crate) fn guard<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

fn add(governor: &mut dyn Coupled, id: SubflowId, connection: u32, flow: &FlowInfo) {
    governor.subflow_added(id, flow);
    governor.subflow_of(id, connection);
}

impl Governor {
    /// With subflow 0 of connection 0.
    pub(crate) fn new(name: &str, settings: &str, flow: &Flow) -> Result<Self, String> {
        let flow = flow.checked().map_err(|error| format!("flow: {error}"))?;
        Ok(Self::of(settings::parse(name, settings)?, &flow))
    }

    fn of(scheme: Scheme, flow: &FlowInfo) -> Self {
        let mut inner = scheme.build();
        let mut spare: Box<dyn Coupled> = Box::new(PerFlow::new(controllers::fallback));
        for governor in [&mut inner, &mut spare] {
            add(&mut **governor, SubflowId(0), 0, flow);
        }
        Self { scheme, inner, spare: Some(spare), subflows: vec![Some(*flow)] }
    }

    /// A fresh one; `None` if the flow is not allowed, or if none is given and subflow 0 has left.
    pub(crate) fn again(&self, flow: Option<&Flow>) -> Option<Self> {
        let flow = match flow {
            Some(flow) => flow.checked().ok()?,
            None => self.subflow(0)?,
        };
        Some(Self::of(self.scheme.clone(), &flow))
    }

    pub(crate) fn join(&mut self, subflow: u32, connection: u32, flow: &Flow) -> Called {
        let Ok(flow) = flow.checked() else { return Called::Refused };
        if subflow >= SUBFLOWS_MAX || self.subflow(subflow).is_some() {
            return Called::Refused;
        }
        let index = subflow as usize;
        self.subflows.resize(self.subflows.len().max(index + 1), None);
        self.subflows[index] = Some(flow);
        self.change(|governor| add(governor, SubflowId(subflow), connection, &flow))
    }

    pub(crate) fn leave(&mut self, subflow: u32) -> Called {
        if self.subflow(subflow).is_none() {
            return Called::Refused;
        }
        self.subflows[subflow as usize] = None;
        self.change(|governor| governor.subflow_removed(SubflowId(subflow)))
    }

    /// Tells the controller, and the one that waits, of a subflow that joins or leaves.
    fn change(&mut self, change: impl Fn(&mut dyn Coupled)) -> Called {
        let (inner, spare) = (&mut self.inner, &mut self.spare);
        let told = guard(|| {
            if let Some(spare) = spare {
                change(&mut **spare);
            }
            change(&mut **inner);
        });
        if told.is_some() {
            return Called::Done(Answer::default());
        }
        self.fall_back();
        Called::FellBack(Answer::default())
    }

    /// Calls the controller for a subflow and reads its answer.
    pub(crate) fn call(
        &mut self,
        subflow: u32,
        tell: impl FnOnce(&mut dyn Coupled, SubflowId),
    ) -> Called {
        let Some(flow) = self.subflow(subflow) else { return Called::Refused };
        let (id, inner) = (SubflowId(subflow), &mut *self.inner);
        let told = guard(|| {
            tell(inner, id);
            answer(inner, id)
        });
        if let Some(answer) = told {
            return Called::Done(answer);
        }
        self.fall_back();
        let inner = &*self.inner;
        let safe = || Answer::new(Control::window(flow.initial_cwnd), None);
        Called::FellBack(guard(|| answer(inner, id)).unwrap_or_else(safe))
    }

    fn fall_back(&mut self) {
        if let Some(spare) = self.spare.take() {
            let broken = std::mem::replace(&mut self.inner, spare);
            let _ = guard(|| drop(broken));
        }
    }

    /// Whether CUBIC governs a subflow in place of its controller; `None` if there is no such subflow.
    pub(crate) fn fell_back(&self, subflow: u32) -> Option<bool> {
        self.subflow(subflow)?;
        let own = guard(|| self.inner.fell_back(SubflowId(subflow))).unwrap_or(true);
        Some(own || self.spare.is_none())
    }

    /// Whether the controller wants to know of each packet; `None` if there is no such subflow.
    pub(crate) fn wants_packets(&self, subflow: u32) -> Option<bool> {
        self.subflow(subflow)?;
        Some(guard(|| self.inner.wants_packets()).unwrap_or(false))
    }

    fn subflow(&self, subflow: u32) -> Option<FlowInfo> {
        self.subflows.get(subflow as usize).copied().flatten()
    }
}

fn answer(inner: &dyn Coupled, id: SubflowId) -> Answer {
    Answer::new(inner.control(id), inner.next_timer(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackademy::control::{Ack, Loss};

    const FLOW: Flow = Flow {
        mss: 1500,
        initial_cwnd: 15_000,
        initial_ssthresh: u64::MAX,
        paces: 0,
        start: 0,
        seed: 1,
    };

    /// Panics when it is told of an acknowledgement, and when it is dropped after that.
    #[derive(Default)]
    struct Broken(bool);

    impl Coupled for Broken {
        fn subflow_added(&mut self, _: SubflowId, _: &FlowInfo) {}
        fn subflow_removed(&mut self, _: SubflowId) {}
        fn on_ack(&mut self, _: SubflowId, _: &Ack) {
            self.0 = true;
            panic!("broken");
        }
        fn on_loss(&mut self, _: SubflowId, _: &Loss) {}
        fn control(&self, _: SubflowId) -> Control {
            Control::window(ackademy::units::Bytes(1))
        }
    }

    impl Drop for Broken {
        fn drop(&mut self) {
            assert!(!self.0, "broken");
        }
    }

    #[test]
    fn a_panic_gives_every_subflow_to_cubic_once_and_calls_go_on() {
        let mut governor = Governor::new("cubic", "", &FLOW).expect("it is made");
        governor.inner = Box::new(Broken::default());
        assert_eq!(governor.join(7, 0, &FLOW), Called::Done(Answer::default()));
        assert_eq!(governor.fell_back(7), Some(false));
        let ack = |inner: &mut dyn Coupled, id| inner.on_ack(id, &Ack::default());
        let Called::FellBack(answer) = governor.call(0, ack) else { panic!("it goes on") };
        assert_eq!(answer.cwnd, FLOW.initial_cwnd);
        for id in [0, 7] {
            assert_eq!(governor.fell_back(id), Some(true));
            assert!(matches!(governor.call(id, ack), Called::Done(_)), "CUBIC governs {id}");
        }
        assert_eq!(governor.fell_back(1), None);
        assert_eq!(governor.again(None).and_then(|own| own.fell_back(0)), Some(false));
    }

    #[test]
    fn a_fallback_that_panics_too_leaves_the_first_window() {
        let mut governor = Governor::new("cubic", "", &FLOW).expect("it is made");
        for _ in 0..3 {
            let called = governor.call(0, |_, _| panic!("the call itself"));
            assert!(matches!(called, Called::FellBack(Answer { cwnd: 15_000, .. })), "{called:?}");
        }
    }
}
