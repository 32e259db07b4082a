//! `iperf3` as a foreign client: bulk flows of a program that is not ours, measured by itself.
use super::plan::Flow;
use super::sender::Setting;
use super::sockets::congestion_control;
use super::watch::Packet;
use crate::clock;
use crate::error::Error;
use crate::namespace::Namespace;
use ackademy::sim::record::{FlowRow, FlowSeries};
use ackademy::units::{Span, Time};
use serde_json::Value;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// One flow of it.
pub struct Client<'a> {
    /// Its index among the flows.
    pub index: usize,
    /// Its addresses, start and stop.
    pub flow: &'a Flow,
    /// Its hosts.
    pub hosts: &'a (Namespace, Namespace),
    /// What it has in common with our own senders.
    pub setting: Setting<'a>,
}

/// Whether the program can be called, for what `asked` for it.
///
/// # Errors
///
/// If not.
pub fn check(asked: &str) -> Result<(), Error> {
    let called = Command::new(PROGRAM).arg("--version").output();
    called.map(drop).map_err(|error| {
        Error::Input(format!("{asked}: {PROGRAM}: {error}; install the package {PROGRAM}"))
    })
}

/// One for each flow of a run that is not our senders'.
pub fn clients<'a>(setting: Setting<'a>, hosts: &'a [(Namespace, Namespace)]) -> Vec<Client<'a>> {
    let numbered = setting.flows.iter().enumerate();
    let foreign = numbered.filter(|(_, flow)| setting.is_foreign(flow));
    let client = |(index, flow): (usize, &'a Flow)| Client {
        index,
        flow,
        hosts: &hosts[flow.pair],
        setting,
    };
    foreign.map(client).collect()
}

impl Client<'_> {
    /// Runs it to its end, or until `stop`. The calling thread changes its namespace.
    ///
    /// # Errors
    ///
    /// If the program fails, or says what cannot be understood.
    pub fn run(&self, stop: &AtomicBool) -> Result<(FlowRow, FlowSeries), Error> {
        let Flow { plan, sender, receiver, .. } = self.flow;
        let (near, far) = self.hosts;
        let port = (FIRST_PORT + self.index as u16).to_string();
        let (from, to) = (sender.to_string(), receiver.to_string());
        far.enter()?;
        let mut server = Program::start(&["-s", "-1", "-B", &to, "-p", &port], Stdio::null())?;
        self.wait_for(&mut server, stop)?;
        near.enter()?;
        self.sleep_until(self.flow.start, stop);
        let end = plan.stop.min(self.setting.duration);
        // Whole seconds are all it knows.
        let seconds = (end.since(self.flow.start).as_secs_f64().floor().max(1.0)).to_string();
        let every = self.setting.sample_interval.as_secs_f64().clamp(0.1, 60.0).to_string();
        let name = congestion_control(self.flow, self.setting.agent);
        let words =
            ["-c", &to, "-B", &from, "-p", &port, "-C", name, "-t", &seconds, "-i", &every, "-J"];
        let mut client = Program::start(&words, Stdio::piped())?;
        let last = self.setting.epoch + Span(self.setting.duration.0) + GRACE;
        let said = client.output(&|| stop.load(Ordering::Relaxed) || clock::now() > last)?;
        let report: Value = serde_json::from_str(&said).map_err(|_| self.fault("it was ended"))?;
        if let Some(error) = report["error"].as_str() {
            return Err(self.fault(error));
        }
        Ok((self.row(&report), self.series(&report)))
    }

    /// Until the server listens; the calling thread is in its namespace.
    fn wait_for(&self, server: &mut Program, stop: &AtomicBool) -> Result<(), Error> {
        let begun = clock::now();
        while !listens(FIRST_PORT + self.index as u16) {
            if server.has_ended()? {
                return Err(self.fault("the server ended before it listened"));
            }
            if stop.load(Ordering::Relaxed) {
                break;
            }
            if clock::now().since(begun) > LISTENING {
                return Err(self.fault(&format!("the server does not listen after {LISTENING}")));
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn packet(&self) -> Packet {
        self.setting.packet(self.flow)
    }

    fn sleep_until(&self, at: Time, stop: &AtomicBool) {
        let at = self.setting.epoch + Span(at.0);
        while clock::now() < at && !stop.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_nanos(at.since(clock::now()).0).min(LOOK));
        }
    }

    fn fault(&self, error: &str) -> Error {
        Error::System(format!("flow {:?}: {PROGRAM}: {error}", self.flow.plan.name))
    }

    fn row(&self, report: &Value) -> FlowRow {
        let end = &report["end"];
        let millis = |value: &Value| value.as_f64().map_or(f64::NAN, |micros| micros / 1e3);
        let rtt = &end["streams"][0]["sender"];
        let payload = end["sum_received"]["bytes"].as_u64().unwrap_or(0);
        FlowRow {
            flow: self.flow.plan.name.clone(),
            controller: self.flow.plan.controller.clone(),
            start_s: self.flow.start.as_secs_f64(),
            // The time in which they arrived: what is in flight when the sender stops arrives after it.
            active_s: end["sum_received"]["seconds"].as_f64().unwrap_or(0.0),
            mss_bytes: self.packet().bytes.0,
            retransmitted_packets: end["sum_sent"]["retransmits"].as_u64().unwrap_or(0),
            delivered_bytes: self.packet().wire(payload),
            goodput_bytes: payload,
            rtt_samples: report["intervals"].as_array().map_or(0, |all| all.len() as u64),
            rtt_mean_ms: millis(&rtt["mean_rtt"]),
            rtt_min_ms: millis(&rtt["min_rtt"]),
            rtt_max_ms: millis(&rtt["max_rtt"]),
            rtt_p50_ms: f64::NAN,
            rtt_p95_ms: f64::NAN,
            rtt_at_delivery_ms: f64::NAN,
            fct_mean_ms: f64::NAN,
            stall_max_ms: f64::NAN,
            ..FlowRow::default()
        }
    }

    fn series(&self, report: &Value) -> FlowSeries {
        let mut series = FlowSeries::default();
        let payload = self.packet().bytes.0 - self.packet().header.0;
        let (mut written, mut lost) = (0, 0);
        for interval in report["intervals"].as_array().into_iter().flatten() {
            let stream = &interval["streams"][0];
            let number = |name: &str| stream[name].as_f64().unwrap_or(f64::NAN);
            written += stream["bytes"].as_u64().unwrap_or(0);
            lost += stream["retransmits"].as_u64().unwrap_or(0);
            series.time_s.push(self.flow.start.as_secs_f64() + number("end"));
            series.flow.push(self.flow.first_row as u32);
            series.cwnd_packets.push(number("snd_cwnd") / payload as f64);
            series.ssthresh_packets.push(f64::NAN);
            series.inflight_bytes.push(0);
            series.srtt_ms.push(number("rtt") / 1e3);
            series.rtt_ms.push(f64::NAN);
            series.delivered_bytes.push(self.packet().wire(written));
            series.arrived_bytes.push(self.packet().wire(written));
            series.delivery_rate_mbps.push(f64::NAN);
            series.pacing_mbps.push(f64::NAN);
            series.lost_packets.push(lost);
        }
        series
    }
}

/// A running `iperf3`, ended when dropped, and by the kernel when the calling thread dies.
struct Program(Child);

impl Program {
    fn start(words: &[&str], out: Stdio) -> Result<Self, Error> {
        let mut command = Command::new(PROGRAM);
        command.args(words).stdin(Stdio::null()).stdout(out).stderr(Stdio::null());
        // SAFETY: prctl is safe between fork and exec; it allocates and locks nothing.
        unsafe {
            command.pre_exec(|| Ok(nix::sys::prctl::set_pdeathsig(nix::sys::signal::SIGKILL)?));
        }
        let started = command.spawn().map(Self);
        started.map_err(|error| Error::System(format!("{PROGRAM}: {error}")))
    }

    fn has_ended(&mut self) -> Result<bool, Error> {
        let status = self.0.try_wait();
        let status = status.map_err(|error| Error::System(format!("{PROGRAM}: {error}")))?;
        Ok(status.is_some())
    }

    /// All that it says until it ends; it is ended when `enough`.
    fn output(&mut self, enough: &dyn Fn() -> bool) -> Result<String, Error> {
        let fail = |error: std::io::Error| Error::System(format!("{PROGRAM}: {error}"));
        let mut out = self.0.stdout.take().expect("it is piped and taken once");
        thread::scope(|scope| {
            let reader = scope.spawn(move || {
                let mut text = String::new();
                out.read_to_string(&mut text).map(|_| text)
            });
            while self.0.try_wait().map_err(fail)?.is_none() {
                if enough() {
                    self.0.kill().map_err(fail)?;
                }
                thread::sleep(LOOK);
            }
            reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(fail)
        })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether a TCP socket of the calling thread's namespace listens at this port.
fn listens(port: u16) -> bool {
    ["tcp", "tcp6"].iter().any(|table| {
        let table = std::fs::read_to_string(format!("/proc/thread-self/net/{table}"));
        table.unwrap_or_default().lines().any(|line| is_listener(line, port))
    })
}

/// Whether a line of the kernel's table of sockets (proc(5)) is of one that listens at `port`.
fn is_listener(line: &str, port: u16) -> bool {
    const LISTEN: &str = "0A";
    let mut fields = line.split_whitespace();
    let local = fields.nth(1).and_then(|local| local.rsplit_once(':'));
    local.is_some_and(|(_, found)| u16::from_str_radix(found, 16) == Ok(port))
        && fields.nth(1) == Some(LISTEN)
}

const PROGRAM: &str = "iperf3";
/// What a server has to begin to listen.
const LISTENING: Span = Span::from_millis(5000);
/// Behind that of our own receivers.
const FIRST_PORT: u16 = super::receivers::PORT + 1;
/// So long after the run's end it may tell its peer and us what it measured.
const GRACE: Span = Span::from_millis(5000);
const LOOK: Duration = Duration::from_millis(20);

/// Whether it can send what the flow sends.
pub fn is_for(flow: &Flow) -> bool {
    matches!(flow.plan.traffic, ackademy::sim::plan::TrafficSpec::Bulk {}) && !flow.is_multipath()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn only_sockets_that_listen_are_listeners() {
        let port = |listener: &TcpListener| listener.local_addr().expect("bound").port();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let listening = port(&listener);
        let client = TcpStream::connect(("127.0.0.1", listening)).expect("it listens");
        assert!(listens(listening));
        assert!(!listens(client.local_addr().expect("bound").port()), "this one is connected");
        let v6 =
            "0: 00000000000000000000000001000000:1452 00000000000000000000000000000000:0000 0A";
        assert!(is_listener(v6, 0x1452) && !is_listener(v6, 0));
    }
}
