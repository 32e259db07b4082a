//! Files that scenarios and settings name.
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// As the simulator's front end: a trace of an hour of 10 Gb/s.
const BYTES_MAX: u64 = 1 << 30;

/// The content of a file; devices and pipes, which may never end, are refused.
///
/// # Errors
///
/// What file is allowed, to follow "allowed is".
pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    let fail = |error: std::io::Error| format!("a file that can be read ({error})");
    let about = fs::metadata(path).map_err(fail)?;
    if !about.is_file() || about.len() > BYTES_MAX {
        return Err(format!("a file of at most {BYTES_MAX} bytes"));
    }
    let mut content = Vec::new();
    let file = File::open(path).map_err(fail)?;
    file.take(BYTES_MAX).read_to_end(&mut content).map_err(fail)?;
    Ok(content)
}
