//! Kernels of other versions, as their BTF describes them: copies of this kernel's that are edited, and bound over it in a
//! mount namespace. The file's layout is of <https://docs.kernel.org/bpf/btf.html>.
use crate::bed::{Bed, Daemon, SECOND, bounded};
use crate::traffic::{STEADY, Traffic};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const STRUCT: u32 = 4;
const FUNC: u32 = 12;

/// A copy of the kernel's description of its types.
struct Types {
    bytes: Vec<u8>,
}

impl Types {
    fn of_this_kernel() -> Self {
        Self { bytes: fs::read("/sys/kernel/btf/vmlinux").unwrap() }
    }

    fn get(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.bytes[at..at + 4].try_into().unwrap())
    }

    fn set(&mut self, at: usize, value: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }

    /// Where header, types and strings begin, and where the strings end; the strings are last.
    fn sections(&self) -> (usize, usize, usize) {
        let header = self.get(4) as usize;
        let strings = header + self.get(16) as usize;
        (header + self.get(8) as usize, strings, strings + self.get(20) as usize)
    }

    fn named(&self, at: usize, name: &str) -> bool {
        let text = &self.bytes[self.sections().1 + self.get(at) as usize..];
        text.starts_with(name.as_bytes()) && text[name.len()] == 0
    }

    /// Where the type of this kind and name is described.
    fn find(&self, kind: u32, name: &str) -> usize {
        let (mut at, end, _) = self.sections();
        while at < end {
            let info = self.get(at + 4);
            let (own, count) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
            if own == kind && self.named(at, name) {
                return at;
            }
            at += 12
                + match own {
                    1 | 14 | 17 => 4,              // INT, VAR, DECL_TAG
                    3 => 12,                       // ARRAY
                    4 | 5 | 15 | 19 => 12 * count, // STRUCT, UNION, DATASEC, ENUM64
                    6 | 13 => 8 * count,           // ENUM, FUNC_PROTO
                    _ => 0,
                };
        }
        panic!("no `{name}` in this kernel's BTF")
    }

    /// Where a member of a structure is described.
    fn member(&self, structure: &str, name: &str) -> usize {
        let at = self.find(STRUCT, structure);
        let count = (self.get(at + 4) & 0xffff) as usize;
        let mut members = (0..count).map(|index| at + 12 + 12 * index);
        members.find(|member| self.named(*member, name)).unwrap()
    }

    /// Gives what is described at `at` another name.
    fn rename(&mut self, at: usize, name: &str) {
        let (_, strings, end) = self.sections();
        assert_eq!(end, self.bytes.len());
        self.set(at, (end - strings) as u32);
        self.bytes.extend(name.bytes().chain([0]));
        self.set(20, (self.bytes.len() - strings) as u32);
    }

    fn write(&self, bed: &Bed) -> PathBuf {
        let file = bed.folder.with_extension("btf");
        fs::write(&file, &self.bytes).unwrap();
        file
    }
}

/// As this kernel, but the event that a flow begins to send has a member and a function of its own, as since Linux 7.1
/// (commit d1e59a469737). Another function without effect, of the same argument, stands for the new one.
fn of_linux_7_1() -> Types {
    let mut types = Types::of_this_kernel();
    let (init, prototype) = (
        types.get(types.member("tcp_congestion_ops", "init") + 4),
        types.get(types.find(FUNC, "cubictcp_init") + 8),
    );
    let member = types.member("tcp_congestion_ops", "cwnd_event");
    types.rename(member, "cwnd_event_tx_start");
    types.set(member + 4, init);
    types.rename(types.find(FUNC, "cubictcp_cwnd_event"), "none");
    let stand_in = types.find(FUNC, "tcp_reno_ssthresh");
    types.rename(stand_in, "cubictcp_cwnd_event_tx_start");
    types.set(stand_in + 8, prototype);
    types
}

/// `ackademyd kernel` on a kernel that describes its types in `file`.
fn under(file: &std::path::Path, bed: &Bed) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c"]);
    command.arg("mount --bind \"$0\" /sys/kernel/btf/vmlinux && exec \"$@\"").arg(file);
    let daemon = bed.ackademyd(&[]);
    command.arg(daemon.get_program()).args(daemon.get_args());
    command
}

#[test]
fn a_kernel_that_tells_the_start_of_sending_by_itself_is_served() {
    let Some(bed) = Bed::new() else { return };
    let file = of_linux_7_1().write(&bed);
    let daemon = Daemon::start(under(&file, &bed));
    let mut programs = libbpf_rs::query::ProgInfoIter::default();
    assert!(programs.any(|program| program.name == "tx_start"), "the new member has a program");
    let traffic = Traffic::start(&bed, 2, STEADY);
    bed.wait_until_all(2, "agent");
    daemon.kill();
    bed.wait_until_all(2, "cubic");
    assert!(traffic.finish() < SECOND);
    fs::remove_file(file).unwrap();
    bed.finish();
}

#[test]
fn a_kernel_without_one_of_cubics_functions_is_refused_by_its_name() {
    let Some(bed) = Bed::new() else { return };
    for (mut types, lost) in [
        (Types::of_this_kernel(), "cubictcp_acked"),
        (Types::of_this_kernel(), "cubictcp_cwnd_event"),
        (of_linux_7_1(), "cubictcp_cwnd_event_tx_start"),
    ] {
        types.rename(types.find(FUNC, lost), "none");
        let file = types.write(&bed);
        let output = bounded(under(&file, &bed));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains(&format!("lends no `{lost}` to BPF")), "{said}");
        fs::remove_file(file).unwrap();
    }
    assert!(!bed.registered() && !bed.pins().exists());
    bed.finish();
}
