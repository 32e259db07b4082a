//! Packets of a run as files, which Python has opened.
use crate::controller::Failure;
use crate::errors::AckademyError;
use ackademy::control::Coupled;
use ackademy::rng::Seed;
use ackademy::sim::Sim;
use ackademy::sim::plan::NetworkPlan;
use ackademy_capture::pcap::{At, IpVersion, Settings};
use ackademy_capture::{Flow, Output, Pcap, Qlog};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::io::{self, Write};

/// Where packets are seen, unless it is on a link.
const SENDER: &str = "sender";
const RECEIVER: &str = "receiver";

/// A file that is to have packets, as `ackademy.backends.captures` describes it.
#[derive(FromPyObject)]
pub struct PcapFile {
    file: Py<PyAny>,
    at: String,
    snaplen: u32,
    ip: u32,
}

/// What is to be written of a run.
pub struct Captures {
    pcap: Option<PcapFile>,
    qlog: Option<Qlog>,
    /// What the files say that they are about.
    about: String,
    failure: Failure,
}

impl Captures {
    /// Of a run that `about` describes; an error of a file ends the run as one of a controller does.
    pub fn new(
        pcap: Option<PcapFile>,
        qlog: Option<Py<PyAny>>,
        about: String,
        failure: &Failure,
    ) -> Self {
        let failure = failure.clone();
        let qlog = qlog.map(|file| Qlog::new(PyFile::output(file, &failure)));
        Self { pcap, qlog, about, failure }
    }

    /// A controller, whose decisions are logged if they are to be.
    pub fn wrap(&self, controller: Box<dyn Coupled>) -> Box<dyn Coupled> {
        match &self.qlog {
            Some(qlog) => qlog.wrap(controller),
            None => controller,
        }
    }

    /// Taps a simulation that has not begun.
    pub fn tap(self, sim: &mut Sim, network: &NetworkPlan, seed: Seed) -> PyResult<()> {
        let flows = || Flow::all(network, seed, sim);
        let pcap = match self.pcap {
            Some(PcapFile { file, at, snaplen, ip }) => {
                let out = PyFile::output(file, &self.failure);
                let settings = Settings {
                    at: place(&at, network)?,
                    snaplen,
                    ip: if ip == 6 { IpVersion::V6 } else { IpVersion::V4 },
                    until: network.duration,
                    about: self.about.clone(),
                };
                Some(Pcap::new(out, settings, flows()).map_err(AckademyError::new_err)?)
            }
            None => None,
        };
        if let Some(qlog) = self.qlog {
            qlog.begin(&self.about, flows());
            sim.add_tap(Box::new(qlog));
        }
        if let Some(pcap) = pcap {
            sim.add_tap(Box::new(pcap));
        }
        Ok(())
    }
}

/// `sender`, `receiver` or `link:NAME`.
fn place(at: &str, network: &NetworkPlan) -> PyResult<At> {
    let link = at.strip_prefix("link:").and_then(|name| {
        let index = network.links.iter().position(|link| link.name == name)?;
        Some(At::Link(index as u32, name.to_owned()))
    });
    match at {
        SENDER => Ok(At::Sender),
        RECEIVER => Ok(At::Receiver),
        _ => link.ok_or_else(|| {
            AckademyError::new_err(format!("pcap at {at:?}: allowed: a link of the scenario"))
        }),
    }
}

/// A file of Python, written to from any thread.
pub struct PyFile {
    file: Py<PyAny>,
    failure: Failure,
}

impl PyFile {
    /// As what a capture writes to; an error is kept for Python.
    pub fn output(file: Py<PyAny>, failure: &Failure) -> Output {
        let file = Self { file, failure: failure.clone() };
        // What went wrong is kept as Python has it.
        Output::new(Box::new(file), ackademy_capture::Failure::default())
    }
}

impl Write for PyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = Python::attach(|py| {
            let written = self.file.call_method1(py, "write", (PyBytes::new(py, bytes),))?;
            written.extract(py)
        });
        written.map_err(|error: PyErr| {
            self.failure.keep(error);
            io::Error::other("the file cannot be written")
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
