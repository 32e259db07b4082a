//! Files that scenarios and settings name.
use crate::paths;
use std::io::Read;
use std::path::Path;

/// The content of a file of at most `bytes_max` bytes; devices and pipes, which may never end, are refused.
///
/// # Errors
///
/// What file is allowed, to follow "allowed is".
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let fail = |error: std::io::Error| format!("a file that can be read ({error})");
    let file = paths::open_input(path).map_err(fail)?;
    let about = file.metadata().map_err(fail)?;
    if !about.is_file() || about.len() > bytes_max {
        return Err(format!("a file of at most {bytes_max} bytes"));
    }
    let mut content = Vec::new();
    file.take(bytes_max).read_to_end(&mut content).map_err(fail)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::require::has;
    use std::fs;
    use std::os::unix::fs::{chown, lchown, symlink};

    const NOBODY: u32 = 65_534;

    #[test]
    fn root_reads_through_a_link_of_another_user_to_files_of_that_user_alone() {
        if !nix::unistd::geteuid().is_root() {
            has("devices", &["root alone makes files of other users".to_owned()]);
            return;
        }
        let folder = std::env::temp_dir().join(format!("ackademyd-inputs-{}", std::process::id()));
        fs::create_dir(&folder).expect("a folder to write in");
        for name in ["of_root", "of_nobody"] {
            fs::write(folder.join(name), name).expect("a file");
            symlink(name, folder.join(format!("link_{name}"))).expect("a link");
        }
        chown(folder.join("of_nobody"), Some(NOBODY), Some(NOBODY)).expect("root may");
        let read = |name: &str| read(&folder.join(name), 100);
        assert_eq!(read("link_of_root").as_deref(), Ok(&b"of_root"[..]), "root's own link");
        for name in ["link_of_root", "link_of_nobody"] {
            lchown(folder.join(name), Some(NOBODY), Some(NOBODY)).expect("root may");
        }
        assert_eq!(read("link_of_nobody").as_deref(), Ok(&b"of_nobody"[..]));
        let refused = read("link_of_root").expect_err("a file of root by a link of another user");
        fs::remove_dir_all(&folder).expect("made above");
        assert!(refused.contains("link of user 65534 to a file of user 0"), "{refused}");
    }
}
