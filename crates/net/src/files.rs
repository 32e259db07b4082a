//! Files that scenarios and settings name.
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// The content of a file of at most `bytes_max` bytes; devices and pipes, which may never end, are refused.
///
/// # Errors
///
/// What file is allowed, to follow "allowed is".
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let fail = |error: std::io::Error| format!("a file that can be read ({error})");
    let about = fs::metadata(path).map_err(fail)?;
    if !about.is_file() || about.len() > bytes_max {
        return Err(format!("a file of at most {bytes_max} bytes"));
    }
    let mut content = Vec::new();
    let file = File::open(path).map_err(fail)?;
    file.take(bytes_max).read_to_end(&mut content).map_err(fail)?;
    Ok(content)
}
