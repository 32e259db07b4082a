//! One kind of error: a line for a person, and what the process exits with.
use std::fmt::{self, Display, Formatter};

/// What went wrong, in one line that says what to do about it.
#[derive(Debug)]
pub enum Error {
    /// The user can fix it: a wrong value, a missing capability, an old kernel. Exit status 2.
    Input(String),
    /// The machine refused something that should work. Exit status 1.
    System(String),
    /// `kernel status`: nothing decides for the flows of this name. Exit status 3.
    Unserved(String),
    /// Ctrl-C or SIGTERM before the work was done. Exit status 130.
    Interrupted,
}

impl Error {
    /// What a process that ends with it exits with.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Input(_) => 2,
            Self::System(_) => 1,
            Self::Unserved(_) => 3,
            Self::Interrupted => 130,
        }
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Self::Input(text) | Self::System(text) => f.write_str(text),
            Self::Unserved(name) => write!(f, "no daemon serves `{name}`"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}
