//! The simulator for a page. Every export takes and returns numbers; texts and columns go through two buffers:
//! `play_input` gives the one that a call reads, `play_output` the one that a call has written. A call returns 1
//! if it refuses what it was given, and the output is then one line that says why.
use ackademy::live::{Change, Live};
use ackademy::rng::Seed;
use ackademy::sim::record::Table;
use ackademy::transport::packet::Kind;
use ackademy::units::{Span, Time};
use std::cell::RefCell;
use std::collections::BTreeMap;

mod tables;

/// Everything between two calls.
#[derive(Default)]
struct Page {
    input: Vec<u8>,
    output: Vec<u8>,
    files: BTreeMap<String, Vec<u8>>,
    live: Option<Live>,
    tables: Vec<Table>,
}

thread_local! { static PAGE: RefCell<Page> = RefCell::default(); }

impl Page {
    fn tell(&mut self, result: Result<String, String>) -> u32 {
        let refused = u32::from(result.is_err());
        self.output = result.unwrap_or_else(|error| error).into_bytes();
        refused
    }

    fn input(&mut self) -> Result<String, String> {
        String::from_utf8(std::mem::take(&mut self.input))
            .map_err(|_| "scenario.toml: allowed is UTF-8".to_owned())
    }

    /// The run; panics without one, which no page asks for.
    fn live(&mut self) -> &mut Live {
        self.live.as_mut().expect("a scenario is open")
    }

    /// Puts numbers into the output and returns how many bytes that is.
    fn give<const N: usize>(&mut self, bytes: impl Iterator<Item = [u8; N]>) {
        self.output.clear();
        self.output.extend(bytes.flatten());
    }
}

fn with<T>(call: impl FnOnce(&mut Page) -> T) -> T {
    PAGE.with_borrow_mut(call)
}

/// A buffer of so many bytes for what the next call reads.
#[unsafe(no_mangle)]
pub extern "C" fn play_input(len: usize) -> *mut u8 {
    with(|page| {
        page.input = vec![0; len];
        page.input.as_mut_ptr()
    })
}

/// Where the output is.
#[unsafe(no_mangle)]
pub extern "C" fn play_output() -> *const u8 {
    with(|page| page.output.as_ptr())
}

/// Its bytes.
#[unsafe(no_mangle)]
pub extern "C" fn play_output_len() -> usize {
    with(|page| page.output.len())
}

/// Keeps a file that scenarios may name; the input is the name, of so many bytes, and the content.
#[unsafe(no_mangle)]
pub extern "C" fn play_file(name_len: usize) {
    with(|page| {
        let content = page.input.split_off(name_len.min(page.input.len()));
        let name = String::from_utf8_lossy(&page.input).into_owned();
        page.files.insert(name, content);
    });
}

/// The hash of the core and its controllers, as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn play_controllers() {
    with(|page| page.output = tables::controllers().to_string().into_bytes());
}

/// Opens the scenario in the input at time 0; one without time series gets a row every `sample_ms`. The output is
/// what a page draws of it, as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn play_open(seed: u32, sample_ms: f64) -> u32 {
    with(|page| {
        let sample = Span::from_secs_f64(sample_ms / 1e3);
        let opened = page.input().and_then(|text| {
            Live::new(&text, page.files.clone(), Seed(u64::from(seed)), sample)
                .map_err(|error| error.to_string())
        });
        let told = opened.map(|live| {
            let about = tables::about(page.live.insert(live));
            about.to_string()
        });
        page.tell(told)
    })
}

/// Runs up to a time in seconds and returns the time reached.
#[unsafe(no_mangle)]
pub extern "C" fn play_run(until_s: f64) -> f64 {
    with(|page| {
        let sim = page.live().sim();
        sim.run_until(Time::from_secs_f64(until_s));
        sim.now().as_secs_f64()
    })
}

/// Changes a link from now on: `kind` 0 its rate in Mb/s, 1 the part of packets lost, 2 its delay in milliseconds.
#[unsafe(no_mangle)]
pub extern "C" fn play_change(link: usize, kind: u32, value: f64) -> u32 {
    with(|page| {
        let change = match kind {
            0 => Change::Rate(value),
            1 => Change::Loss(value),
            _ => Change::Delay(value),
        };
        let changed = page.live().change(link, change).map_err(|error| error.to_string());
        page.tell(changed.map(|()| String::new()))
    })
}

/// The scenario with every change, as TOML.
#[unsafe(no_mangle)]
pub extern "C" fn play_text() {
    with(|page| page.output = page.live().text().as_bytes().to_vec());
}

/// Rows of the flows' series from this one on, six f64 each: time, flow, cwnd in packets, smoothed round trip in
/// milliseconds, bytes that arrived, packets lost.
#[unsafe(no_mangle)]
pub extern "C" fn play_rows(from: usize) {
    with(|page| {
        let rows = page.live().sim().flow_series();
        let row = |at: usize| {
            [
                rows.time_s[at],
                f64::from(rows.flow[at]),
                rows.cwnd_packets[at],
                rows.srtt_ms[at],
                rows.arrived_bytes[at] as f64,
                rows.lost_packets[at] as f64,
            ]
        };
        let bytes: Vec<u8> =
            (from..rows.time_s.len()).flat_map(row).flat_map(f64::to_le_bytes).collect();
        page.output = bytes;
    });
}

/// Packets in the queue of a link at each sample from this one on, as f64.
#[unsafe(no_mangle)]
pub extern "C" fn play_queue(link: usize, from: usize) {
    with(|page| {
        let samples = page.live().sim().link_samples(link);
        let packets: Vec<f64> = samples.iter().skip(from).map(|sample| sample.0 as f64).collect();
        page.give(packets.into_iter().map(f64::to_le_bytes));
    });
}

/// For each of the first links packets in its queue and its propagation in seconds, as f64.
#[unsafe(no_mangle)]
pub extern "C" fn play_links(count: usize) {
    with(|page| {
        let sim = page.live().sim();
        let both = (0..count)
            .flat_map(|link| [sim.backlog(link).0 as f64, sim.propagation(link).as_secs_f64()]);
        let both: Vec<f64> = both.collect();
        page.give(both.into_iter().map(f64::to_le_bytes));
    });
}

/// Up to `most` packets inside the network, evenly chosen, four f32 each: link, seconds until it arrives (-1 for one
/// that a scheduler holds), flow, 1 for an acknowledgement. Returns how many there are.
#[unsafe(no_mangle)]
pub extern "C" fn play_packets(most: usize) -> usize {
    with(|page| {
        let sim = page.live().sim();
        let now = sim.now();
        let mut found = Vec::new();
        sim.show_packets(&mut |inside| {
            let left = inside.arrives.map_or(-1.0, |at| at.since(now).as_secs_f64());
            let is_ack = f32::from(u8::from(inside.packet.kind == Kind::Ack));
            found.push([inside.link as f32, left as f32, inside.packet.flow as f32, is_ack]);
        });
        let step = found.len().div_ceil(most.max(1)).max(1);
        let shown: Vec<f32> = found.iter().step_by(step).flatten().copied().collect();
        page.give(shown.into_iter().map(f32::to_le_bytes));
        found.len()
    })
}

/// Data packets sent so far.
#[unsafe(no_mangle)]
pub extern "C" fn play_sent() -> f64 {
    with(|page| page.live().sim().packets() as f64)
}

/// Ends the run; the output is its tables without series, as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn play_finish() {
    with(|page| {
        let Some(live) = page.live.take() else { return };
        page.tables = live.finish().into_tables().into();
        page.output = tables::json(&page.tables).to_string().into_bytes();
    });
}

/// Every value of the tables of the run that ended last, series included, as bytes that equal runs share.
#[unsafe(no_mangle)]
pub extern "C" fn play_bytes() {
    with(|page| page.output = tables::bytes(&page.tables));
}
