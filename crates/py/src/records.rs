//! What a Python controller is told: read-only views of the core's records.
use ackademy::control::{Ack as CoreAck, FlowInfo, Loss as CoreLoss, LossKind};
use ackademy::params::ParamValue;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// One or more acknowledgements that delivered something new.
#[pyclass(frozen, module = "ackademy._core")]
pub struct Ack(pub CoreAck);

#[pymethods]
impl Ack {
    #[getter]
    fn now_ns(&self) -> u64 {
        self.0.now.0
    }
    #[getter]
    fn sent_at_ns(&self) -> u64 {
        self.0.sent_at.0
    }
    #[getter]
    fn rtt_ns(&self) -> u64 {
        self.0.rtt.0
    }
    #[getter]
    fn srtt_ns(&self) -> u64 {
        self.0.srtt.0
    }
    #[getter]
    fn min_rtt_ns(&self) -> u64 {
        self.0.min_rtt.0
    }
    #[getter]
    fn rtt_max_ns(&self) -> u64 {
        self.0.rtt_max.0
    }
    #[getter]
    fn batch_rtt_min_ns(&self) -> u64 {
        self.0.batch_rtt_min.0
    }
    #[getter]
    fn acked_bytes(&self) -> u64 {
        self.0.acked.0
    }
    #[getter]
    fn ce_marked_bytes(&self) -> u64 {
        self.0.ce_marked.0
    }
    #[getter]
    fn inflight_bytes(&self) -> u64 {
        self.0.inflight.0
    }
    #[getter]
    fn prior_inflight_bytes(&self) -> u64 {
        self.0.prior_inflight.0
    }
    #[getter]
    fn delivered_bytes(&self) -> u64 {
        self.0.delivered.0
    }
    #[getter]
    fn delivery_rate_bps(&self) -> u64 {
        self.0.delivery_rate.0
    }
    #[getter]
    fn tx_inflight_bytes(&self) -> u64 {
        self.0.tx_inflight.0
    }
    #[getter]
    fn delivered_since_bytes(&self) -> u64 {
        self.0.delivered_since.0
    }
    #[getter]
    fn lost_since_bytes(&self) -> u64 {
        self.0.lost_since.0
    }
    #[getter]
    fn app_limited(&self) -> bool {
        self.0.app_limited == 1
    }
    #[getter]
    fn recovering(&self) -> bool {
        self.0.recovering == 1
    }
    #[getter]
    fn cwnd_limited(&self) -> bool {
        self.0.cwnd_limited == 1
    }
    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// Packets were declared lost.
#[pyclass(frozen, module = "ackademy._core")]
pub struct Loss(pub CoreLoss);

#[pymethods]
impl Loss {
    #[getter]
    fn now_ns(&self) -> u64 {
        self.0.now.0
    }
    #[getter]
    fn sent_at_ns(&self) -> u64 {
        self.0.sent_at.0
    }
    #[getter]
    fn lost_bytes(&self) -> u64 {
        self.0.lost.0
    }
    #[getter]
    fn inflight_bytes(&self) -> u64 {
        self.0.inflight.0
    }
    #[getter]
    fn tx_inflight_bytes(&self) -> u64 {
        self.0.tx_inflight.0
    }
    #[getter]
    fn lost_since_bytes(&self) -> u64 {
        self.0.lost_since.0
    }
    #[getter]
    fn app_limited(&self) -> bool {
        self.0.app_limited == 1
    }
    #[getter]
    fn kind(&self) -> &'static str {
        match self.0.kind {
            LossKind::Gap => "gap",
            LossKind::More => "more",
            LossKind::Timeout => "timeout",
            LossKind::Deflate => "deflate",
            LossKind::Idle => "idle",
            LossKind::Spurious => "spurious",
            LossKind::TimeoutAgain => "timeout_again",
        }
    }
    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// What a controller is told about its flow before the first packet.
#[pyclass(frozen, module = "ackademy._core")]
pub struct Flow(pub FlowInfo, pub Vec<(String, ParamValue)>);

#[pymethods]
impl Flow {
    #[getter]
    fn mss_bytes(&self) -> u64 {
        self.0.mss.0
    }
    #[getter]
    fn initial_cwnd_bytes(&self) -> u64 {
        self.0.initial_cwnd.0
    }
    #[getter]
    fn paces(&self) -> bool {
        self.0.paces
    }
    #[getter]
    fn seed(&self) -> u64 {
        self.0.seed
    }
    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let params = PyDict::new(py);
        for (name, value) in &self.1 {
            match value {
                ParamValue::Number(number) => params.set_item(name, number)?,
                ParamValue::Word(word) => params.set_item(name, word)?,
                ParamValue::File(content) => params.set_item(name, &content.path)?,
            }
        }
        Ok(params)
    }
    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}
