//! What is served now, read from the pinned maps alone: it needs no daemon and disturbs none.
use super::agent::flow_key;
use super::pins::{self, Maps};
use super::record::{Counts, Flow, LATENCY_BUCKETS, PACING_NONE, Totals, state};
use super::table::Table;
use crate::clock;
use crate::error::Error;
use ackademy::units::{Rate, Span, Time};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::path::Path;

/// A congestion control, its daemon and its flows.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// What the congestion control is called.
    pub name: String,
    /// Whether its flows are decided for, by a daemon or in the kernel; otherwise they are under CUBIC.
    pub served: bool,
    /// Process that serves it; `None` if none does, or one outside of this PID namespace.
    pub daemon: Option<u32>,
    /// Whether decisions are made in the kernel, which needs no process.
    pub in_kernel: bool,
    /// Most flows at a time.
    pub slots: u32,
    /// Counts since it was registered.
    pub counts: Counts,
    /// From a sample to the first acknowledgement that obeys the answer.
    pub latency: Latency,
    /// MPTCP connections, the oldest first.
    pub connections: Vec<ConnectionStatus>,
    /// Flows that are open: plain TCP and subflows. The oldest first, but subflows of one connection next to
    /// each other.
    pub flows: Vec<FlowStatus>,
}

/// One MPTCP connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConnectionStatus {
    /// Its local token, as `ss -M` prints it.
    pub token: String,
    /// Inode of the sender's network namespace.
    pub namespace: u64,
    /// Its subflows: indices of `flows`.
    pub flows: Vec<usize>,
    /// Sum of their windows.
    pub cwnd_pkts: u64,
}

/// Quantiles, in microseconds, each at most a quarter too large; zero before the first decision.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Latency {
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
}

/// One flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowStatus {
    /// Sender's address and port.
    pub local: String,
    /// Receiver's address and port.
    pub remote: String,
    /// Inode of the sender's network namespace.
    pub namespace: u64,
    /// Token of the MPTCP connection that it is a subflow of; `None` for plain TCP.
    pub token: Option<String>,
    /// The kernel's number of the subflow within its connection.
    pub subflow: u32,
    /// User of the socket.
    pub user: u32,
    /// `agent`: obeys the controller; `fallback`: the same, but the controller has given itself up
    /// and the daemon's CUBIC decides; `cubic`: waits for it under CUBIC; `abandoned`: stays there.
    pub state: &'static str,
    /// Since it was opened, or chose this congestion control.
    pub age_s: f64,
    /// Smoothed round trip.
    pub srtt_ms: f64,
    /// Smallest round trip.
    pub min_rtt_ms: f64,
    /// Window.
    pub cwnd_pkts: u32,
    /// Payload; `None`: not paced.
    pub pacing_mbps: Option<f64>,
    /// Samples that went up.
    pub samples: u64,
    /// Decisions that were applied.
    pub decisions: u64,
    /// Falls to CUBIC.
    pub fallbacks: u64,
    /// Samples that the full ring refused.
    pub refused: u64,
    /// Decisions that no sender can obey.
    pub invalid: u64,
}

impl Status {
    /// Of what is pinned in `folder`.
    ///
    /// # Errors
    ///
    /// If nothing is, or something of another version.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        let name = pins::origin(folder)?.name();
        let maps = Maps::open(folder)?;
        let totals = Table::<Totals>::map(&maps.totals)?.read(0);
        let table = Table::<Flow>::map(&maps.flows)?;
        let now = clock::now();
        let mut flows: Vec<Flow> = (0..table.len())
            .map(|slot| table.read(slot))
            .filter(|flow| flow.state != state::FREE)
            .collect();
        group(&mut flows);
        let in_kernel = maps.settings()?.in_kernel != 0;
        let daemon = pins::daemon(folder);
        Ok(Self {
            name,
            served: in_kernel || daemon.is_some() || pins::is_held(folder),
            daemon,
            in_kernel,
            slots: table.len(),
            counts: totals.counts,
            latency: Latency::of(&totals),
            connections: ConnectionStatus::of(&flows),
            flows: flows.iter().map(|flow| FlowStatus::of(flow, now)).collect(),
        })
    }
}

/// Sorts by age; subflows come with the oldest subflow of their connection.
fn group(flows: &mut [Flow]) {
    let mut opened = BTreeMap::new();
    for flow in flows.iter().filter(|flow| flow.token != 0) {
        let first = opened.entry(flow.token).or_insert(flow.opened_at);
        *first = flow.opened_at.min(*first);
    }
    let begun = |flow: &Flow| opened.get(&flow.token).copied().unwrap_or(flow.opened_at);
    flows.sort_by_key(|flow| (begun(flow), flow.token, flow.subflow, flow.opened_at));
}

/// As `ss -M` prints it.
fn token(flow: &Flow) -> Option<String> {
    (flow.token != 0).then(|| format!("{:08x}", flow.token))
}

impl ConnectionStatus {
    /// The connections of sorted `flows`.
    fn of(flows: &[Flow]) -> Vec<Self> {
        let mut connections: Vec<Self> = Vec::new();
        for (index, flow) in flows.iter().enumerate() {
            let Some(token) = token(flow) else { continue };
            if connections.last().is_none_or(|last| last.token != token) {
                let namespace = flow.netns;
                connections.push(Self { token, namespace, flows: Vec::new(), cwnd_pkts: 0 });
            }
            if let Some(connection) = connections.last_mut() {
                connection.flows.push(index);
                connection.cwnd_pkts += u64::from(flow.cwnd);
            }
        }
        connections
    }
}

impl Latency {
    fn of(totals: &Totals) -> Self {
        let us = |quantile| latency_quantile(&totals.latency, quantile).0 as f64 / 1e3;
        Self { p50_us: us(0.5), p90_us: us(0.9), p99_us: us(0.99) }
    }
}

/// Upper end of the bucket that holds the quantile.
pub(crate) fn latency_quantile(buckets: &[u64; LATENCY_BUCKETS], quantile: f64) -> Span {
    let total: u64 = buckets.iter().sum();
    let rank = ((total as f64 * quantile).ceil() as u64).max(1);
    let mut seen = 0;
    for (index, count) in (0..).zip(buckets) {
        seen += count;
        if seen >= rank {
            return Span(bucket_end(index));
        }
    }
    Span::ZERO
}

/// First nanosecond after those of a bucket: four buckets per power of two (`bucket` of the BPF
/// program).
fn bucket_end(index: u32) -> u64 {
    let (log, quarter) = (index / 4, u64::from(index % 4));
    if log < 2 { quarter + 1 } else { (4 + quarter + 1) << (log - 2) }
}

impl FlowStatus {
    fn of(flow: &Flow, now: Time) -> Self {
        let key = flow_key(flow);
        let ms = |us: u32| f64::from(us) / 1e3;
        let paced = flow.pacing != PACING_NONE;
        Self {
            local: key.local.to_string(),
            remote: key.remote.to_string(),
            namespace: key.namespace,
            token: token(flow),
            subflow: flow.subflow,
            user: flow.owner,
            state: match flow.state {
                state::AGENT if flow.fell_back == 1 => "fallback",
                state::AGENT => "agent",
                state::CUBIC => "cubic",
                _ => "abandoned",
            },
            age_s: now.since(Time(flow.opened_at)).as_secs_f64(),
            srtt_ms: ms(flow.srtt_us),
            min_rtt_ms: ms(flow.min_rtt_us),
            cwnd_pkts: flow.cwnd,
            pacing_mbps: paced.then(|| Rate(flow.pacing.saturating_mul(8)).as_mbps()),
            samples: flow.samples,
            decisions: flow.decisions,
            fallbacks: flow.fallbacks,
            refused: flow.refused,
            invalid: flow.invalid,
        }
    }
}

impl Display for Status {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Counts {
            opened,
            closed,
            without_slot,
            samples,
            decisions,
            fallbacks,
            refused,
            invalid,
            policy_fallbacks,
            reassigned,
        } = self.counts;
        match self.daemon {
            Some(process) => writeln!(f, "`{}`: process {process}", self.name)?,
            None if self.in_kernel => {
                writeln!(f, "`{}`: decides in the kernel, without a daemon", self.name)?;
            }
            None if self.served => {
                writeln!(f, "`{}`: a process outside of this PID namespace", self.name)?;
            }
            None => writeln!(f, "`{}`: no daemon, flows are under CUBIC", self.name)?,
        }
        writeln!(
            f,
            "flows      {} of {} slots; opened {opened}, closed {closed}, without a slot {without_slot}",
            self.flows.len(),
            self.slots
        )?;
        if reassigned > 0 {
            writeln!(
                f,
                "slots      scarce: {reassigned} went to flows of users with fewer, or from idle flows"
            )?;
        }
        if !self.connections.is_empty() {
            let subflows: usize = self.connections.iter().map(|it| it.flows.len()).sum();
            let connections = self.connections.len();
            writeln!(f, "mptcp      {connections} connections with {subflows} subflows")?;
        }
        writeln!(f, "samples    {samples}, and {refused} that the full ring refused")?;
        writeln!(f, "decisions  {decisions}, and {invalid} that no sender can obey")?;
        writeln!(
            f,
            "fallbacks  {fallbacks}, and {policy_fallbacks} of policies without an answer"
        )?;
        let Latency { p50_us, p90_us, p99_us } = self.latency;
        writeln!(
            f,
            "latency    p50 {p50_us:.0} us, p90 {p90_us:.0} us, p99 {p99_us:.0} us from sample to applied decision"
        )?;
        if self.flows.is_empty() { Ok(()) } else { self.table(f) }
    }
}

impl Status {
    /// A line of headings and one per flow.
    fn table(&self, f: &mut Formatter) -> fmt::Result {
        let wide = |text: fn(&FlowStatus) -> &str| {
            self.flows.iter().map(|flow| text(flow).len()).max().unwrap_or(0).max(6)
        };
        let (local, remote) = (wide(|flow| &flow.local), wide(|flow| &flow.remote));
        writeln!(
            f,
            "\n{:12}  {:local$}  {:remote$}  {:>10}  {:9}  {:>8}  {:>9}  {:>10}  {:>6}  {:>11}  {:>8}  {:>9}  {:>9}",
            "connection",
            "local",
            "remote",
            "namespace",
            "state",
            "age s",
            "srtt ms",
            "min_rtt ms",
            "cwnd",
            "pacing Mb/s",
            "samples",
            "decisions",
            "fallbacks"
        )?;
        for flow in &self.flows {
            let pacing = flow.pacing_mbps.map_or("-".to_owned(), |mbps| format!("{mbps:.2}"));
            let connection = flow.token.as_ref().map(|token| format!("{token}/{}", flow.subflow));
            writeln!(
                f,
                "{:12}  {:local$}  {:remote$}  {:>10}  {:9}  {:>8.1}  {:>9.3}  {:>10.3}  {:>6}  {pacing:>11}  {:>8}  {:>9}  {:>9}",
                connection.as_deref().unwrap_or("-"),
                flow.local,
                flow.remote,
                flow.namespace,
                flow.state,
                flow.age_s,
                flow.srtt_ms,
                flow.min_rtt_ms,
                flow.cwnd_pkts,
                flow.samples,
                flow.decisions,
                flow.fallbacks
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_at_most_a_quarter_too_large() {
        // 1000 ns: bits 11 1110 1000, the two below the leading one are 11.
        let mut buckets = [0; LATENCY_BUCKETS];
        buckets[9 << 2 | 3] = 99;
        buckets[20 << 2] = 1;
        assert_eq!(latency_quantile(&buckets, 0.5), Span(1024));
        assert_eq!(latency_quantile(&buckets, 0.99), Span(1024));
        assert_eq!(latency_quantile(&buckets, 1.0), Span((1 << 20) * 5 / 4));
    }

    #[test]
    fn subflows_of_a_connection_are_next_to_each_other_in_the_order_of_the_kernel() {
        let flow = |opened_at, token, subflow| Flow {
            opened_at,
            token,
            subflow,
            cwnd: 10,
            ..Flow::default()
        };
        let mut flows = [
            flow(9, 7, 2),
            flow(4, 0, 0),
            flow(5, 8, 0),
            flow(1, 7, 0),
            flow(3, 0, 0),
            flow(6, 7, 1),
        ];
        group(&mut flows);
        let order: Vec<(u32, u32)> = flows.iter().map(|flow| (flow.token, flow.subflow)).collect();
        assert_eq!(order, [(7, 0), (7, 1), (7, 2), (0, 0), (0, 0), (8, 0)]);
        let found = ConnectionStatus::of(&flows);
        let members: Vec<_> = found.iter().map(|it| (it.token.as_str(), &it.flows[..])).collect();
        assert_eq!(members, [("00000007", &[0, 1, 2][..]), ("00000008", &[5])]);
        assert_eq!(found[0].cwnd_pkts, 30);
    }

    #[test]
    fn without_a_decision_the_latency_is_zero() {
        assert_eq!(latency_quantile(&[0; LATENCY_BUCKETS], 0.5), Span::ZERO);
    }
}
