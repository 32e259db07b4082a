//! What a machine needs before it can serve: asked first, so that what is missing is named instead of
//! met as an error of the kernel.
use crate::error::Error;
use libbpf_rs::btf::{Btf, types};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use nix::unistd::{AccessFlags, access};
use std::fs;
use std::path::Path;

/// What matters of a machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// As `uname -r` prints it.
    pub release: String,
    /// What the kernel says of its types; `Err`: why it cannot be read.
    pub types: Result<Types, String>,
    /// Effective capabilities of this process, a bit each.
    pub capabilities: u64,
    /// Most files that this process may have open.
    pub files: u64,
    /// State of the folder that pins are asked for in; `None`: none are.
    pub pins: Option<PinFolder>,
    /// What `net.mptcp.enabled` of this network namespace says; `None`: the kernel has no such setting.
    pub mptcp: Option<bool>,
}

/// What the kernel's BTF tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types {
    /// A BPF program can be a congestion control.
    pub struct_ops: bool,
    /// Function of the kernel's own CUBIC that BPF programs call and that it lacks.
    pub lacks: Option<&'static str>,
}

/// The folder to pin in, or the one to make it in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinFolder {
    /// Where.
    pub path: String,
    /// It is there.
    pub exists: bool,
    /// It is in a BPF file system.
    pub bpf: bool,
    /// This process may write there.
    pub writable: bool,
}

impl Machine {
    /// This one. `pins`: where link and maps are to be pinned.
    pub fn here(pins: Option<&Path>) -> Self {
        Self {
            release: line_of("/proc/sys/kernel/osrelease"),
            types: read_types(),
            capabilities: effective_capabilities(&line_of("/proc/self/status")),
            files: getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft),
            pins: pins.map(PinFolder::at),
            mptcp: fs::read_to_string(MPTCP_ENABLED).ok().map(|value| value.trim() != "0"),
        }
    }

    /// Whether it can serve.
    ///
    /// # Errors
    ///
    /// A line for each thing that is missing: what was found and what to do.
    pub fn require(&self) -> Result<(), Error> {
        let missing = [self.kernel(), self.types(), self.capabilities(), self.files(), self.pins()];
        let missing: Vec<String> = missing.into_iter().flatten().collect();
        if missing.is_empty() { Ok(()) } else { Err(Error::Input(missing.join("\n"))) }
    }

    /// Whether connections have several subflows that the coupled controller `name` may govern; `single`
    /// is its plain counterpart.
    ///
    /// # Errors
    ///
    /// A line that says what is missing and what to do.
    pub fn require_mptcp(&self, name: &str, single: &str) -> Result<(), Error> {
        let missing = match self.mptcp {
            None => {
                "this kernel has no MPTCP (no net.mptcp.enabled): a kernel with CONFIG_MPTCP=y is needed"
            }
            Some(false) => {
                "MPTCP is off in this network namespace (net.mptcp.enabled = 0): `sysctl -w net.mptcp.enabled=1`"
            }
            Some(true) => return Ok(()),
        };
        Err(Error::Input(format!(
            "--cc {name} governs the subflows of MPTCP connections, but {missing}, or --cc {single} for plain TCP"
        )))
    }

    /// Whether it can also make network namespaces and mounts, and have the kernel time BPF programs, for
    /// `command`.
    ///
    /// # Errors
    ///
    /// As [`Self::require`].
    pub fn require_root(&self, command: &str) -> Result<(), Error> {
        let mut missing =
            self.require().err().map(|why| why.to_string()).into_iter().collect::<Vec<_>>();
        for (name, bit) in [("CAP_SYS_ADMIN", CAP_SYS_ADMIN), ("CAP_NET_ADMIN", CAP_NET_ADMIN)] {
            if !self.has(bit) {
                missing.push(format!(
                    "this process lacks {name}: `{command}` makes network namespaces and mounts, run it as root"
                ));
            }
        }
        if missing.is_empty() { Ok(()) } else { Err(Error::Input(missing.join("\n"))) }
    }

    fn has(&self, capability: u32) -> bool {
        self.capabilities >> capability & 1 == 1
    }

    fn kernel(&self) -> Option<String> {
        let mut numbers = self.release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
        let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
            return None; // an unusual name; what it lacks shows elsewhere
        };
        ((major, minor) < OLDEST_KERNEL).then(|| {
            format!(
                "Linux {} is too old: {}.{} or newer is needed, for BPF congestion controls that outlive their process",
                self.release, OLDEST_KERNEL.0, OLDEST_KERNEL.1
            )
        })
    }

    fn types(&self) -> Option<String> {
        match &self.types {
            Err(why) => Some(format!(
                "the kernel's BTF cannot be read ({why}): a kernel with CONFIG_DEBUG_INFO_BTF=y and a mounted /sys are needed"
            )),
            Ok(Types { struct_ops: false, .. }) => Some(
                "the kernel takes no congestion control from BPF (no bpf_struct_ops_tcp_congestion_ops in its BTF): CONFIG_BPF_SYSCALL=y and CONFIG_BPF_JIT=y are needed"
                    .to_owned(),
            ),
            Ok(Types { lacks: Some(function), .. }) => Some(format!(
                "the kernel lends no `{function}` to BPF, and flows fall back to CUBIC: CONFIG_TCP_CONG_CUBIC is needed; if it is a module, `modprobe tcp_cubic`; if the kernel has CUBIC, it is newer than this program knows"
            )),
            Ok(_) => None,
        }
    }

    fn capabilities(&self) -> Option<String> {
        let missing: Vec<&str> = CAPABILITIES
            .iter()
            .filter(|(_, bit)| !(self.has(*bit) || self.has(CAP_SYS_ADMIN)))
            .map(|(name, _)| *name)
            .collect();
        (!missing.is_empty()).then(|| {
            format!(
                "this process lacks {}: run it as root or with CAP_BPF and CAP_PERFMON",
                missing.join(" and ")
            )
        })
    }

    fn files(&self) -> Option<String> {
        let most = self.files;
        (most < FILES).then(|| {
            format!(
                "this process may open {most} files, and {FILES} are needed: `ulimit -n {FILES}`"
            )
        })
    }

    fn pins(&self) -> Option<String> {
        let PinFolder { path, exists, bpf, writable } = self.pins.as_ref()?;
        if !exists {
            return Some(format!(
                "there is no folder `{path}` to make that of the pins in: make it first, another --pins, or --ephemeral"
            ));
        }
        if !bpf {
            return Some(format!(
                "`{path}` is not in a BPF file system, so nothing can be pinned there: `mount -t bpf bpf /sys/fs/bpf`, another --pins, or --ephemeral"
            ));
        }
        (!writable).then(|| {
            format!("`{path}` cannot be written by this user: another --pins, or --ephemeral")
        })
    }
}

impl PinFolder {
    fn at(pins: &Path) -> Self {
        let parent = pins.parent().unwrap_or(pins);
        let path = if pins.exists() { pins } else { parent };
        Self {
            path: path.display().to_string(),
            exists: path.exists(),
            bpf: statfs(path).is_ok_and(|system| system.filesystem_type() == BPF_FS_MAGIC),
            writable: access(path, AccessFlags::W_OK | AccessFlags::X_OK).is_ok(),
        }
    }
}

fn line_of(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim_end().to_owned()
}

fn effective_capabilities(status: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

fn read_types() -> Result<Types, String> {
    // libbpf would go on to look for an image in /boot, which need not be the running kernel's.
    fs::File::open(VMLINUX).map_err(|error| format!("{VMLINUX}: {error}"))?;
    let btf = Btf::from_path(VMLINUX).map_err(|error| format!("{VMLINUX}: {error}"))?;
    let is_module = Path::new(CUBIC_MODULE).exists();
    let lends = |name: &str| is_module || btf.type_by_name::<types::Func>(name).is_some();
    let restart = CUBIC_RESTART[usize::from(tells_start(&btf).unwrap_or(false))];
    Ok(Types {
        struct_ops: btf
            .type_by_name::<types::Struct>("bpf_struct_ops_tcp_congestion_ops")
            .is_some(),
        lacks: CUBIC.into_iter().chain([restart]).find(|name| !lends(name)),
    })
}

/// Whether a member of its own tells a congestion control that a flow begins to send, as since 7.1; `None`: `btf` has no
/// `tcp_congestion_ops`.
pub(super) fn tells_start(btf: &Btf) -> Option<bool> {
    let operations: types::Struct = btf.type_by_name("tcp_congestion_ops")?;
    let mut names = operations.iter().filter_map(|member| member.name);
    Some(names.any(|name| name == "cwnd_event_tx_start"))
}

const VMLINUX: &str = "/sys/kernel/btf/vmlinux";
const MPTCP_ENABLED: &str = "/proc/sys/net/mptcp/enabled";
const CUBIC_MODULE: &str = "/sys/kernel/btf/tcp_cubic";
/// The first with `.struct_ops.link`: a congestion control that a link holds.
const OLDEST_KERNEL: (u32, u32) = (6, 4);
/// What the BPF program calls, in the kernel's `tcp_cubic.c`.
const CUBIC: [&str; 5] = [
    "cubictcp_init",
    "cubictcp_recalc_ssthresh",
    "cubictcp_cong_avoid",
    "cubictcp_state",
    "cubictcp_acked",
];
/// One of these, by [`tells_start`].
const CUBIC_RESTART: [&str; 2] = ["cubictcp_cwnd_event", "cubictcp_cwnd_event_tx_start"];
/// More than programs, maps and pins take.
const FILES: u64 = 128;
const CAP_NET_ADMIN: u32 = 12;
const CAP_SYS_ADMIN: u32 = 21;
/// Name and bit; `CAP_SYS_ADMIN` stands for each (capabilities(7)).
const CAPABILITIES: [(&str, u32); 2] = [("CAP_BPF", 39), ("CAP_PERFMON", 38)];

#[cfg(test)]
mod tests {
    use super::*;

    const NET_ADMIN: u64 = 1 << 12;
    const SYS_ADMIN: u64 = 1 << 21;
    const PERFMON: u64 = 1 << 38;
    const BPF: u64 = 1 << 39;

    fn pins(path: &str, bpf: bool) -> PinFolder {
        PinFolder { path: path.to_owned(), exists: true, bpf, writable: true }
    }

    fn able() -> Machine {
        Machine {
            release: "6.4.0-1-amd64".to_owned(),
            types: Ok(Types { struct_ops: true, lacks: None }),
            capabilities: BPF | PERFMON,
            files: 1024,
            pins: Some(pins("/sys/fs/bpf", true)),
            mptcp: Some(true),
        }
    }

    fn complaints(machine: &Machine) -> Vec<String> {
        match machine.require() {
            Ok(()) => Vec::new(),
            Err(error) => error.to_string().lines().map(str::to_owned).collect(),
        }
    }

    #[test]
    fn two_capabilities_on_linux_6_4_are_enough() {
        assert_eq!(complaints(&able()), Vec::<String>::new());
    }

    #[test]
    fn an_older_kernel_is_named_with_the_oldest_that_will_do() {
        for release in ["6.3.13", "5.15.0-91-generic", "4.19"] {
            let [complaint] = &complaints(&Machine { release: release.to_owned(), ..able() })[..]
            else {
                panic!("one line for {release}")
            };
            assert!(complaint.starts_with(&format!("Linux {release} is too old: 6.4 or newer")));
        }
        for release in ["6.10.0", "7.0-rc1", "6.18.44-1-generic"] {
            assert!(complaints(&Machine { release: release.to_owned(), ..able() }).is_empty());
        }
    }

    #[test]
    fn each_missing_capability_is_named() {
        let complaint = complaints(&Machine { capabilities: NET_ADMIN, ..able() });
        assert_eq!(complaint.len(), 1);
        assert!(complaint[0].starts_with("this process lacks CAP_BPF and CAP_PERFMON:"));
    }

    #[test]
    fn sys_admin_stands_for_bpf_and_perfmon() {
        assert!(complaints(&Machine { capabilities: SYS_ADMIN, ..able() }).is_empty());
    }

    #[test]
    fn what_makes_namespaces_needs_sys_admin_and_net_admin_too() {
        let refused = able().require_root("bench").expect_err("not root");
        assert_eq!(refused.exit_status(), 2);
        let said = refused.to_string();
        for (line, capability) in said.lines().zip(["CAP_SYS_ADMIN", "CAP_NET_ADMIN"]) {
            assert!(line.starts_with(&format!("this process lacks {capability}: `bench`")));
        }
        assert_eq!(said.lines().count(), 2, "{said}");
        let root = Machine { capabilities: SYS_ADMIN | NET_ADMIN, ..able() };
        assert!(root.require_root("bench").is_ok());
    }

    #[test]
    fn without_mptcp_a_coupled_controller_is_refused_in_one_line_that_says_what_to_do() {
        assert!(able().require_mptcp("lia", "new_reno").is_ok());
        for (mptcp, remedy) in
            [(None, "CONFIG_MPTCP=y"), (Some(false), "sysctl -w net.mptcp.enabled=1")]
        {
            let machine = Machine { mptcp, ..able() };
            let refused = machine.require_mptcp("lia", "new_reno").expect_err("no MPTCP");
            let said = refused.to_string();
            assert_eq!((refused.exit_status(), said.lines().count()), (2, 1), "{said}");
            assert!(
                said.contains(remedy) && said.ends_with("--cc new_reno for plain TCP"),
                "{said}"
            );
            assert!(machine.require().is_ok(), "plain controllers need none");
        }
    }

    #[test]
    fn everything_that_is_missing_has_a_line() {
        let machine = Machine {
            release: "5.4.0".to_owned(),
            types: Err("/sys/kernel/btf/vmlinux: No such file or directory".to_owned()),
            capabilities: 0,
            files: 4,
            mptcp: None,
            pins: Some(pins("/tmp", false)),
        };
        let complaints = complaints(&machine);
        assert_eq!(complaints.len(), 5);
        assert!(complaints[3].contains("may open 4 files"));
        assert!(complaints[1].contains("/sys/kernel/btf/vmlinux: No such file"));
        assert!(complaints[4].contains("`/tmp` is not in a BPF file system"));
    }

    #[test]
    fn a_folder_whose_parent_is_missing_is_said_to_be_missing() {
        let folder = PinFolder::at(Path::new("/sys/fs/bpf/none/of/these"));
        let complaints = complaints(&Machine { pins: Some(folder), ..able() });
        assert_eq!(complaints.len(), 1);
        assert!(complaints[0].starts_with("there is no folder `/sys/fs/bpf/none/of` to make"));
    }

    #[test]
    fn without_pins_the_file_system_does_not_matter() {
        assert!(complaints(&Machine { pins: None, ..able() }).is_empty());
    }

    #[test]
    fn capabilities_are_read_from_the_effective_set() {
        let status = "Name:\tx\nCapPrm:\t0000003fffffffff\nCapEff:\t000000c000001000\nCapBnd:\t0\n";
        assert_eq!(effective_capabilities(status), BPF | PERFMON | NET_ADMIN);
    }
}
