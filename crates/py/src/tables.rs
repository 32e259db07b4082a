//! From rows of the core to columns of numpy.
use ackademy::record::{FlowRow, FlowSeries, LinkRow, LinkSeries, Outcome};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

/// Columns by table: `flows`, `counters`, `links`, `flow_series`, `link_series`.
pub fn to_python(py: Python<'_>, outcome: Outcome) -> PyResult<Bound<'_, PyDict>> {
    let flow_names: Vec<_> = outcome.flows.iter().map(|row| PyString::new(py, &row.flow)).collect();
    let link_names: Vec<_> = outcome.links.iter().map(|row| PyString::new(py, &row.link)).collect();
    let tables = PyDict::new(py);
    tables.set_item("flows", flows(py, &outcome.flows, &flow_names)?)?;
    tables.set_item("counters", counters(py, &outcome.flows, &flow_names)?)?;
    tables.set_item("links", links(py, &outcome.links, &link_names)?)?;
    tables.set_item("flow_series", flow_series(py, outcome.flow_series, &flow_names)?)?;
    tables.set_item("link_series", link_series(py, outcome.link_series, &link_names)?)?;
    Ok(tables)
}

type Names<'a, 'py> = &'a [Bound<'py, PyString>];

/// A table under construction: `flow` and its columns, in order.
struct Table<'py>(Bound<'py, PyDict>);

impl<'py> Table<'py> {
    fn new(py: Python<'py>) -> Self {
        Self(PyDict::new(py))
    }

    fn texts(&self, name: &str, values: &[Bound<'py, PyString>]) -> PyResult<()> {
        self.0.set_item(name, PyList::new(self.0.py(), values)?)
    }

    fn numbers(&self, name: &str, values: Vec<f64>) -> PyResult<()> {
        self.0.set_item(name, PyArray1::from_vec(self.0.py(), values))
    }

    /// As signed integers, so that differences of columns are what they seem.
    fn counts(&self, name: &str, values: impl IntoIterator<Item = u64>) -> PyResult<()> {
        let signed: Vec<i64> =
            values.into_iter().map(|value| i64::try_from(value).unwrap_or(i64::MAX)).collect();
        self.0.set_item(name, PyArray1::from_vec(self.0.py(), signed))
    }
}

fn flows<'py>(
    py: Python<'py>,
    rows: &[FlowRow],
    names: Names<'_, 'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let table = Table::new(py);
    let numbers =
        |name: &str, get: fn(&FlowRow) -> f64| table.numbers(name, rows.iter().map(get).collect());
    let counts = |name: &str, get: fn(&FlowRow) -> u64| table.counts(name, rows.iter().map(get));
    table.texts("flow", names)?;
    let controllers: Vec<_> = rows.iter().map(|row| PyString::new(py, &row.controller)).collect();
    table.texts("controller", &controllers)?;
    numbers("start_s", |row| row.start_s)?;
    numbers("active_s", |row| row.active_s)?;
    counts("mss_bytes", |row| row.mss_bytes)?;
    counts("sent_packets", |row| row.sent_packets)?;
    counts("sent_bytes", |row| row.sent_bytes)?;
    counts("retransmitted_packets", |row| row.retransmitted_packets)?;
    counts("dropped_packets", |row| row.dropped_packets)?;
    counts("queue_drops", |row| row.queue_drops)?;
    counts("random_losses", |row| row.random_losses)?;
    counts("received_packets", |row| row.received_packets)?;
    counts("delivered_bytes", |row| row.delivered_bytes)?;
    counts("goodput_bytes", |row| row.goodput_bytes)?;
    counts("ce_marked_bytes", |row| row.ce_marked_bytes)?;
    counts("declared_lost_bytes", |row| row.declared_lost_bytes)?;
    counts("rtt_samples", |row| row.rtt_samples)?;
    numbers("rtt_mean_ms", |row| row.rtt_mean_ms)?;
    numbers("rtt_min_ms", |row| row.rtt_min_ms)?;
    numbers("rtt_max_ms", |row| row.rtt_max_ms)?;
    numbers("rtt_at_delivery_ms", |row| row.rtt_at_delivery_ms)?;
    numbers("base_rtt_ms", |row| row.base_rtt_ms)?;
    numbers("owd_mean_ms", |row| row.owd_mean_ms)?;
    counts("timeouts", |row| row.timeouts)?;
    counts("recoveries", |row| row.recoveries)?;
    counts("transfers", |row| row.transfers)?;
    numbers("fct_mean_ms", |row| row.fct_mean_ms)?;
    Ok(table.0)
}

fn counters<'py>(
    py: Python<'py>,
    rows: &[FlowRow],
    names: Names<'_, 'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let (mut flow, mut name, mut value) = (Vec::new(), Vec::new(), Vec::new());
    for (row, flow_name) in rows.iter().zip(names) {
        for (counter, count) in &row.counters {
            flow.push(flow_name.clone());
            name.push(PyString::new(py, counter));
            value.push(*count);
        }
    }
    let table = Table::new(py);
    table.texts("flow", &flow)?;
    table.texts("name", &name)?;
    table.numbers("value", value)?;
    Ok(table.0)
}

fn links<'py>(
    py: Python<'py>,
    rows: &[LinkRow],
    names: Names<'_, 'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let table = Table::new(py);
    let counts = |name: &str, get: fn(&LinkRow) -> u64| table.counts(name, rows.iter().map(get));
    table.texts("link", names)?;
    counts("arrived_packets", |row| row.arrived_packets)?;
    counts("queue_drops", |row| row.queue_drops)?;
    counts("random_losses", |row| row.random_losses)?;
    counts("marked_packets", |row| row.marked_packets)?;
    counts("queued_packets", |row| row.queued_packets)?;
    counts("delivered_packets", |row| row.delivered_packets)?;
    counts("delivered_bytes", |row| row.delivered_bytes)?;
    table.numbers("wait_mean_ms", rows.iter().map(|row| row.wait_mean_ms).collect())?;
    counts("capacity_bytes", |row| row.capacity_bytes)?;
    Ok(table.0)
}

fn flow_series<'py>(
    py: Python<'py>,
    series: FlowSeries,
    names: Names<'_, 'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let table = Table::new(py);
    table.numbers("time_s", series.time_s)?;
    table.texts("flow", &pick(names, &series.flow))?;
    table.numbers("cwnd_packets", series.cwnd_packets)?;
    table.numbers("ssthresh_packets", series.ssthresh_packets)?;
    table.counts("inflight_bytes", series.inflight_bytes)?;
    table.numbers("srtt_ms", series.srtt_ms)?;
    table.numbers("rtt_ms", series.rtt_ms)?;
    table.counts("delivered_bytes", series.delivered_bytes)?;
    table.numbers("delivery_rate_mbps", series.delivery_rate_mbps)?;
    table.numbers("pacing_mbps", series.pacing_mbps)?;
    table.counts("lost_packets", series.lost_packets)?;
    Ok(table.0)
}

fn link_series<'py>(
    py: Python<'py>,
    series: LinkSeries,
    names: Names<'_, 'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let table = Table::new(py);
    table.numbers("time_s", series.time_s)?;
    table.texts("link", &pick(names, &series.link))?;
    table.counts("queue_packets", series.queue_packets)?;
    table.counts("queue_bytes", series.queue_bytes)?;
    Ok(table.0)
}

/// The same few texts again and again: one object each.
fn pick<'py>(names: Names<'_, 'py>, indices: &[u32]) -> Vec<Bound<'py, PyString>> {
    indices.iter().map(|&index| names[index as usize].clone()).collect()
}
