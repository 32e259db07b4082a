//! Output that a tap writes while nobody can be told of an error.
use std::io::{self, BufWriter, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that are written at a time.
const BUFFER: usize = 1 << 20;

/// The first error of an [`Output`], for who runs the simulation to look at.
#[derive(Clone, Debug, Default)]
pub struct Failure(Arc<Mutex<Option<io::Error>>>);

impl Failure {
    /// The error, once.
    pub fn take(&self) -> Option<io::Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, error: io::Error) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// A buffered output. After an error it writes no more.
pub struct Output {
    /// None after an error.
    out: Option<BufWriter<Box<dyn Write + Send>>>,
    failure: Failure,
}

impl Output {
    /// Writes to `out`; the first error goes to `failure`.
    pub fn new(out: Box<dyn Write + Send>, failure: Failure) -> Self {
        Self { out: Some(BufWriter::with_capacity(BUFFER, out)), failure }
    }

    /// Does `work` with the output, unless there was an error.
    pub fn write(
        &mut self,
        work: impl FnOnce(&mut BufWriter<Box<dyn Write + Send>>) -> io::Result<()>,
    ) {
        let Some(out) = &mut self.out else { return };
        if let Err(error) = work(out) {
            self.failure.set(error);
            // Dropped with what it holds, which could not be written.
            if let Some(broken) = self.out.take() {
                drop(broken.into_parts());
            }
        }
    }

    /// Writes what is buffered.
    pub fn flush(&mut self) {
        self.write(Write::flush);
    }
}
