//! Controllers and the flows that each governs: one flow, the subflows of one MPTCP connection, or all
//! flows of a host.
use super::{Assign, FlowKey, Group};
use ackademy::control::{Coupled, FlowInfo, SubflowId};
use ackademy::transport::send_hook::AckSendHook;
use ackademy::units::Time;
use std::collections::BTreeMap;

/// Packets that the BPF program lets out for one delivered: it raises the window by two more.
const BURST: u64 = 3;

/// A controller and its flows, each by its slot.
pub struct Governor {
    pub(super) coupled: Box<dyn Coupled>,
    /// Time does not run back, though records of two flows, or a timer, may overtake each other.
    pub(super) now: Time,
    /// By number of the subflow.
    members: Vec<Option<u32>>,
    key: Option<Key>,
}

impl Governor {
    /// Without a flow yet.
    pub fn new(coupled: Box<dyn Coupled>) -> Self {
        Self {
            coupled: Box::new(AckSendHook::new(coupled).with_burst(BURST)),
            now: Time(0),
            members: Vec::new(),
            key: None,
        }
    }

    /// Adds the flow in `slot` under the smallest number that is free. `connection`: its connection's, unique
    /// among the governor's.
    pub(super) fn join(&mut self, slot: u32, info: &FlowInfo, connection: u32) -> SubflowId {
        let free = self.members.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            self.members.push(None);
            self.members.len() - 1
        });
        let id = SubflowId(index as u32);
        self.coupled.subflow_added(id, info);
        self.coupled.subflow_of(id, connection);
        self.members[index] = Some(slot);
        id
    }

    /// Removes a flow.
    pub(super) fn leave(&mut self, id: SubflowId) {
        self.members[id.0 as usize] = None;
        self.coupled.subflow_removed(id);
    }

    /// Slots of its flows.
    pub(super) fn members(&self) -> impl Iterator<Item = u32> + '_ {
        self.members.iter().flatten().copied()
    }
}

/// What the flows of one governor have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// Token of a connection.
    Connection(u32),
    /// [`Group::Number`].
    Number(u64),
}

impl Key {
    /// `None`: the flow is alone.
    fn of(group: Group, key: &FlowKey) -> Option<Self> {
        match group {
            Group::Connection if key.token != 0 => Some(Self::Connection(key.token)),
            Group::Flow | Group::Connection => None,
            Group::Number(number) => Some(Self::Number(number)),
        }
    }
}

/// All governors of an agent.
#[derive(Default)]
pub(super) struct Governors {
    places: Vec<Option<Governor>>,
    /// Places of governors that have gone.
    free: Vec<usize>,
    shared: BTreeMap<Key, usize>,
}

impl Governors {
    /// The place of the governor of a flow that has just been opened, made if it is the first of its
    /// group; `None` if it gets none.
    pub fn place(
        &mut self,
        assign: &mut dyn Assign,
        key: &FlowKey,
        info: &FlowInfo,
    ) -> Option<usize> {
        let group = Key::of(assign.group(key), key);
        if let Some(&place) = group.and_then(|group| self.shared.get(&group)) {
            return Some(place);
        }
        let governor = Governor { key: group, ..Governor::new(assign.governor(key, info)?) };
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[place] = Some(governor);
        self.shared.extend(group.map(|group| (group, place)));
        Some(place)
    }

    pub fn get(&self, place: usize) -> Option<&Governor> {
        self.places.get(place)?.as_ref()
    }

    pub fn get_mut(&mut self, place: usize) -> Option<&mut Governor> {
        self.places.get_mut(place)?.as_mut()
    }

    /// Takes a governor away: its flows have gone, or it has panicked.
    pub fn take(&mut self, place: usize) -> Option<Governor> {
        let governor = self.places.get_mut(place)?.take()?;
        self.free.push(place);
        if let Some(key) = governor.key {
            self.shared.remove(&key);
        }
        Some(governor)
    }
}
