//! From the options of the command line to the links of a scenario, whose checks are the core's.
use crate::error::Error;
use crate::files;
use ackademy::scenario::Scenario;
use ackademy::sim::plan::{DelayPlan, NetworkPlan};
use ackademy::units::{Rate, Span};
use clap::Args;
use std::fmt::Write as _;
use std::path::Path;

/// Both directions of a link.
#[derive(Args, Clone, Debug, Default)]
pub struct LinkOptions {
    /// Rate from left to right: kbit, mbit or gbit [default: unlimited]
    #[arg(long, value_parser = rate, value_name = "RATE", conflicts_with = "trace")]
    pub rate: Option<f64>,
    /// Delivery opportunities from left to right: a mahimahi trace
    #[arg(long, value_name = "FILE")]
    pub trace: Option<String>,
    /// Propagation delay of each direction: us, ms or s
    #[arg(long, value_parser = millis, value_name = "TIME", default_value = "0ms")]
    pub delay: f64,
    /// Propagation there and back, split evenly; instead of --delay
    #[arg(long, value_parser = millis, value_name = "TIME", conflicts_with_all = ["delay", "back_delay"])]
    pub rtt: Option<f64>,
    /// Queue from left to right.
    #[arg(long, value_parser = queue, value_name = "QUEUE", help = QUEUE_HELP)]
    pub queue: Option<Queue>,
    /// Random loss: 1% or 0.01
    #[arg(long, value_parser = ratio, value_name = "RATIO")]
    pub loss: Option<f64>,
    /// Anything else that a scenario says of a link, as TOML; may be repeated
    #[arg(long, value_name = "TOML")]
    pub field: Vec<String>,
    /// Rate from right to left [default: as --rate; unlimited with --trace]
    #[arg(long, value_parser = rate, value_name = "RATE", conflicts_with = "back_trace")]
    pub back_rate: Option<f64>,
    /// Delivery opportunities from right to left
    #[arg(long, value_name = "FILE")]
    pub back_trace: Option<String>,
    /// Propagation delay from right to left [default: as --delay]
    #[arg(long, value_parser = millis, value_name = "TIME")]
    pub back_delay: Option<f64>,
    /// Queue from right to left [default: without a limit]
    #[arg(long, value_parser = queue, value_name = "QUEUE")]
    pub back_queue: Option<Queue>,
    /// Random loss from right to left [default: none]
    #[arg(long, value_parser = ratio, value_name = "RATIO")]
    pub back_loss: Option<f64>,
    /// As --field, from right to left
    #[arg(long, value_name = "TOML")]
    pub back_field: Vec<String>,
}

/// A queue as the command line names it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Queue {
    /// Drop-tail of so many packets.
    Packets(u64),
    /// Drop-tail of so many bytes.
    Bytes(u64),
    /// Drop-tail, as a multiple of the rate times the round trip.
    Bdp(f64),
    /// A scenario's queue, with the defaults of Linux or, for RED, of ns-2.
    Scenario(&'static str),
}

const QUEUE_HELP: &str =
    "Queue: 50p, 64kB, 1.5bdp, codel, fq_codel, dualpi2, pie or red [default: without a limit]";

/// Names of queues, and what a scenario says for them.
const QUEUES: [(&str, &str); 5] = [
    ("codel", r#"{ kind = "codel", packets = 1000, ecn = true }"#),
    ("fq_codel", r#"{ kind = "fq_codel", packets = 10240, ecn = true }"#),
    ("dualpi2", r#"{ kind = "dualpi2", packets = 10000 }"#),
    ("pie", r#"{ kind = "pie", packets = 1000, ecn = true }"#),
    ("red", r#"{ kind = "red", min_packets = 5, max_packets = 15, packets = 1000, ecn = true }"#),
];

/// A link that is never in the way, in Mb/s.
const UNLIMITED_MBPS: f64 = 1e6;
/// Longer than any run, and short enough for the core to add up all changes of a link.
const DURATION_S: f64 = 1e6;

/// One direction, with defaults filled in.
struct Side<'a> {
    name: &'a str,
    rate: Option<f64>,
    trace: Option<&'a str>,
    delay: f64,
    queue: Option<Queue>,
    loss: Option<f64>,
    fields: &'a [String],
}

impl LinkOptions {
    /// A network of two links, `there` and `back`, and one flow over them.
    ///
    /// # Errors
    ///
    /// One line that names the option, its value, and what is allowed.
    pub fn network(&self) -> Result<NetworkPlan, Error> {
        let half = self.rtt.map(|rtt| rtt / 2.0);
        let delay = half.unwrap_or(self.delay);
        let there = Side {
            name: "there",
            rate: self.rate,
            trace: self.trace.as_deref(),
            delay,
            queue: self.queue,
            loss: self.loss,
            fields: &self.field,
        };
        let back = Side {
            name: "back",
            rate: self.back_rate.or(self.rate).filter(|_| self.back_trace.is_none()),
            trace: self.back_trace.as_deref(),
            delay: half.or(self.back_delay).unwrap_or(delay),
            queue: self.back_queue,
            loss: self.back_loss,
            fields: &self.back_field,
        };
        let rtt = there.delay + back.delay;
        let text = format!(
            "duration_s = {DURATION_S}\n{}{}[[flow]]\npath = [\"there\"]\nreverse = [\"back\"]\n",
            there.text(rtt, "--queue")?,
            back.text(rtt, "--back-queue")?
        );
        let mut read = |name: &str, bytes_max| files::read(Path::new(name), bytes_max);
        let scenario = Scenario::parse_with(&text, "options", &[], &mut read);
        let scenario = scenario.map_err(|error| Error::Input(as_options(&error.message)))?;
        check_jitter(&scenario.network)?;
        Ok(scenario.network)
    }
}

impl Side<'_> {
    /// The link as a scenario's text.
    fn text(&self, rtt_ms: f64, option: &str) -> Result<String, Error> {
        let mut text = format!("[[link]]\nname = \"{}\"\n", self.name);
        let mut add = |field: &str, value: &dyn std::fmt::Display| {
            let _ = writeln!(text, "{field} = {value}");
        };
        // `--field` may give a rate or delay that varies.
        let given = |field: &str| self.fields.iter().any(|text| text.trim().starts_with(field));
        match self.trace {
            Some(file) => add("trace", &format!("{file:?}")),
            None if given("rate_") => {}
            None => add("rate_mbps", &self.rate.unwrap_or(UNLIMITED_MBPS)),
        }
        if self.delay > 0.0 {
            add("delay_ms", &self.delay);
        }
        if let Some(queue) = self.queue {
            add("queue", &queue.text(self.rate, rtt_ms, option)?);
        }
        if let Some(ratio) = self.loss {
            add("loss", &format!("{{ kind = \"bernoulli\", ratio = {ratio} }}"));
        }
        for field in self.fields {
            text.push_str(field);
            text.push('\n');
        }
        Ok(text)
    }
}

impl Queue {
    fn text(self, rate_mbps: Option<f64>, rtt_ms: f64, option: &str) -> Result<String, Error> {
        let bytes = match self {
            Self::Scenario(text) => return Ok(text.to_owned()),
            Self::Packets(packets) => {
                return Ok(format!("{{ kind = \"drop_tail\", packets = {packets} }}"));
            }
            Self::Bytes(bytes) => bytes,
            Self::Bdp(factor) => {
                let Some(mbps) = rate_mbps else {
                    let allowed = "allowed is a multiple of the bdp only beside a rate";
                    return Err(Error::Input(format!("{option} {factor}bdp: {allowed}")));
                };
                let round_trip = Span::from_secs_f64(rtt_ms / 1e3);
                (Rate::from_mbps(mbps).bytes_in(round_trip).0 as f64 * factor) as u64
            }
        };
        Ok(format!("{{ kind = \"drop_tail\", bytes = {bytes} }}"))
    }
}

/// That jitter does something. A scenario may have it without a delay, as networks of `flagship` do.
fn check_jitter(network: &NetworkPlan) -> Result<(), Error> {
    for (link, option) in network.links.iter().zip(["--field", "--back-field"]) {
        if link.jitter > Span::ZERO && matches!(link.delay, DelayPlan::Constant(Span::ZERO)) {
            let value = link.jitter.as_millis_f64();
            let allowed = "allowed is 0 with a delay of 0, to which jitter is cut";
            return Err(Error::Input(format!("{option} jitter_ms = {value}: {allowed}")));
        }
    }
    Ok(())
}

/// A message of the scenario's checks, with options in place of fields.
fn as_options(message: &str) -> String {
    const FIELDS: [(&str, &str); 5] = [
        ("rate_mbps", "rate (Mb/s)"),
        ("delay_ms", "delay (ms)"),
        ("loss.ratio", "loss"),
        ("trace", "trace"),
        ("queue", "queue"),
    ];
    for (link, prefix) in [("link[0].", "--"), ("link[1].", "--back-")] {
        let Some(rest) = message.strip_prefix(link) else { continue };
        for (field, option) in FIELDS {
            if let Some(rest) = rest.strip_prefix(field) {
                return format!("{prefix}{option}{rest}");
            }
        }
        return format!("{prefix}field {rest}");
    }
    message.to_owned()
}

/// A number and the unit behind it.
fn split(text: &str) -> Option<(f64, &str)> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = text.strip_suffix(unit)?.parse().ok()?;
    Some((number, unit))
}

fn rate(text: &str) -> Result<f64, String> {
    let mbps = match split(text) {
        Some((number, "kbit")) => number / 1e3,
        Some((number, "mbit")) => number,
        Some((number, "gbit")) => number * 1e3,
        _ => return Err("allowed is a number and kbit, mbit or gbit, such as 12mbit".to_owned()),
    };
    Ok(mbps)
}

/// A length of time with its unit, in milliseconds.
pub(crate) fn millis(text: &str) -> Result<f64, String> {
    match split(text) {
        Some((number, "us")) => Ok(number / 1e3),
        Some((number, "ms")) => Ok(number),
        Some((number, "s")) => Ok(number * 1e3),
        _ => Err("allowed is a number and us, ms or s, such as 40ms".to_owned()),
    }
}

fn ratio(text: &str) -> Result<f64, String> {
    match split(text) {
        Some((number, "%")) => Ok(number / 100.0),
        Some((number, "")) => Ok(number),
        _ => Err("allowed is a percentage such as 1%, or a ratio such as 0.01".to_owned()),
    }
}

fn queue(text: &str) -> Result<Queue, String> {
    if let Some((_, scenario)) = QUEUES.iter().find(|(name, _)| *name == text) {
        return Ok(Queue::Scenario(scenario));
    }
    let whole = |number: f64| number >= 1.0 && number.fract() == 0.0;
    match split(text) {
        Some((number, "p")) if whole(number) => Ok(Queue::Packets(number as u64)),
        Some((number, "B")) if whole(number) => Ok(Queue::Bytes(number as u64)),
        Some((number, "kB")) if number > 0.0 => Ok(Queue::Bytes((number * 1e3) as u64)),
        Some((number, "MB")) if number > 0.0 => Ok(Queue::Bytes((number * 1e6) as u64)),
        Some((number, "bdp")) if number > 0.0 => Ok(Queue::Bdp(number)),
        _ => {
            let names: Vec<&str> = QUEUES.iter().map(|(name, _)| *name).collect();
            Err(format!("allowed are 50p, 64kB, 1.5bdp, {}", names.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackademy::sim::plan::{QueueSpec, RatePlan};
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        link: LinkOptions,
    }

    fn network(line: &str) -> Result<NetworkPlan, Error> {
        let words = std::iter::once("link").chain(line.split_whitespace());
        Line::try_parse_from(words).expect("known options").link.network()
    }

    fn refused(line: &str) -> String {
        network(line).expect_err("out of range").to_string()
    }

    #[test]
    fn units_are_those_of_the_field() {
        let plan = network("--rate 12.5mbit --delay 250us --queue 64kB --loss 2%").expect("a link");
        let [there, back] = &plan.links[..] else { panic!("two links") };
        assert!(matches!(there.rate, RatePlan::Constant(rate) if rate == Rate(12_500_000)));
        assert!(matches!(back.rate, RatePlan::Constant(rate) if rate == Rate(12_500_000)));
        assert!(matches!(back.delay, DelayPlan::Constant(span) if span == Span::from_micros(250)));
        assert_eq!(
            there.queue,
            QueueSpec::DropTail { packets: None, bytes: Some(64_000), bdp: None, min_bytes: None }
        );
        assert_eq!(back.queue, QueueSpec::default());
        assert!(there.loss.is_some() && back.loss.is_none());
    }

    #[test]
    fn a_bdp_counts_the_delays_of_both_directions() {
        let plan = network("--rate 8mbit --delay 30ms --back-delay 10ms --queue 1.5bdp");
        let bytes = Some(60_000);
        let queue = plan.expect("a link").links[0].queue.clone();
        assert_eq!(queue, QueueSpec::DropTail { packets: None, bytes, bdp: None, min_bytes: None });
        for line in ["--queue 2bdp", "--rate 8mbit --back-trace t --back-queue 2bdp"] {
            assert!(refused(line).contains("queue 2bdp: allowed"), "{line}");
        }
    }

    #[test]
    fn a_round_trip_is_split_evenly() {
        let plan = network("--rtt 50ms").expect("a link");
        for link in &plan.links {
            assert!(matches!(link.delay, DelayPlan::Constant(span) if span.0 == 25_000_000));
        }
    }

    #[test]
    fn every_named_queue_is_one_of_the_scenario_format() {
        for (name, _) in QUEUES {
            let plan = network(&format!("--rate 10mbit --queue {name} --back-queue {name}"));
            assert_ne!(plan.expect(name).links[1].queue, QueueSpec::default());
        }
    }

    #[test]
    fn a_field_says_whatever_the_scenario_format_can() {
        let field = "--field=rate_schedule=[[0,10],[5,0]] --back-field=outages=[[1,2]]";
        let plan = network(field).expect("a link");
        assert!(matches!(plan.links[0].rate, RatePlan::Schedule(_)));
        assert_eq!(plan.links[1].outages.len(), 1);
    }

    #[test]
    fn what_is_out_of_range_is_named_as_the_option_was() {
        assert_eq!(
            refused("--rate 0mbit"),
            "--rate (Mb/s) = 0: allowed is a number in [0.000001, 1000000]"
        );
        assert!(refused("--back-loss 101%").starts_with("--back-loss = 1.01: allowed"));
        assert!(refused("--trace /none").starts_with("--trace = \"/none\": allowed"));
        assert!(refused("--field=jitter_ms=-1").starts_with("--field jitter_ms = -1: allowed"));
        assert_eq!(
            refused("--field=jitter_ms=5"),
            "--field jitter_ms = 5: allowed is 0 with a delay of 0, to which jitter is cut"
        );
        assert_eq!(
            refused("--delay 10ms --back-delay 0ms --back-field=jitter_ms=0.5"),
            "--back-field jitter_ms = 0.5: allowed is 0 with a delay of 0, to which jitter is cut"
        );
        assert!(network("--delay 10ms --field=jitter_ms=5").is_ok());
    }

    #[test]
    fn what_has_no_unit_is_refused() {
        for (option, value) in
            [("--rate", "12"), ("--delay", "40"), ("--queue", "50"), ("--loss", "x")]
        {
            let Err(error) = Line::try_parse_from(["link", option, value]) else {
                panic!("{option} {value} was taken");
            };
            let first = error.to_string().lines().next().unwrap_or_default().to_owned();
            assert!(first.contains(option) && first.contains("allowed"), "{first}");
        }
    }
}
