//! TUN devices: what a program writes in their namespace, this process reads, and the other way
//! round (the kernel's `Documentation/networking/tuntap.rst`).
use crate::command::run;
use crate::error::Error;
use crate::namespace::within;
use nix::errno::Errno;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// A device to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// File of its network namespace: `/run/netns/NAME`, `/proc/PID/ns/net`.
    pub namespace: PathBuf,
    /// Its name, at most 15 bytes.
    pub device: String,
    /// Its addresses and the lengths of their prefixes.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Largest IP packet, in bytes.
    pub mtu: u32,
}

/// A device that is up; gone when dropped.
#[derive(Debug)]
pub struct Port {
    plan: Plan,
    file: File,
    /// Its namespace's table of devices.
    table: File,
}

/// Packets that wait for this process at most. Read at once, it stays empty: it is no part of the
/// emulated queue, and only catches what arrives while this process does not run.
const TX_QUEUE: &str = "1000";

/// Opened once, it shows the namespace that it was opened in.
const TABLE: &str = "/proc/thread-self/net/dev";

fn table_fault(error: &std::io::Error) -> Error {
    Error::System(format!("{TABLE}: {error}"))
}

mod ioctl {
    #![allow(missing_docs)]
    nix::ioctl_write_int!(tun_set_iff, b'T', 202);
}

/// Makes a device and brings it up.
///
/// # Errors
///
/// If the namespace or TUN is missing, the name is taken, or the process may not.
pub fn open(plan: &Plan) -> Result<Port, Error> {
    within(&plan.namespace, || {
        let file = attach(&plan.device)?;
        let device = &*plan.device;
        // No link-local addresses: their router solicitations would be packets of the experiment.
        run("ip", &["link", "set", "dev", device, "addrgenmode", "none"])?;
        let mtu = plan.mtu.to_string();
        run("ip", &["link", "set", "dev", device, "mtu", &mtu, "txqueuelen", TX_QUEUE, "up"])?;
        for (address, prefix) in &plan.addresses {
            let address = format!("{address}/{prefix}");
            let mut arguments = vec!["addr", "add", &address, "dev", device];
            if address.contains(':') {
                arguments.push("nodad"); // usable at once; there is no other host on this link
            }
            run("ip", &arguments)?;
        }
        let table = File::open(TABLE).map_err(|error| table_fault(&error))?;
        Ok(Port { plan: plan.clone(), file, table })
    })
}

/// Makes a TUN device of this name in the namespace of the calling thread.
fn attach(device: &str) -> Result<File, Error> {
    const TUN: &str = "/dev/net/tun";
    let fail = |why: &str| Error::Input(format!("TUN device {device}: {why}"));
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(TUN)
        .map_err(|error| fail(&format!("{TUN}: {error} (its mode must let this user open it)")))?;
    // SAFETY: `ifreq` is plain data, for which zeroes are a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if device.len() >= request.ifr_name.len() {
        return Err(Error::Input(format!("TUN device {device:?}: at most 15 bytes are allowed")));
    }
    for (to, &from) in request.ifr_name.iter_mut().zip(device.as_bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    let address = std::ptr::from_ref(&request) as nix::sys::ioctl::ioctl_param_type;
    // SAFETY: TUNSETIFF reads an `ifreq` at this address, which outlives the call.
    unsafe { ioctl::tun_set_iff(file.as_raw_fd(), address) }
        .map_err(|error| fail(&format!("{error} (root or CAP_NET_ADMIN is needed)")))?;
    Ok(file)
}

impl Port {
    /// What it was made from.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Takes the next packet that its namespace sent; `None` if there is none.
    ///
    /// # Errors
    ///
    /// If the device is gone.
    pub fn read<'a>(&self, buffer: &'a mut [u8]) -> Result<Option<&'a [u8]>, Error> {
        match nix::unistd::read(&self.file, buffer) {
            Ok(length) => Ok(Some(&buffer[..length])),
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
            Err(error) => Err(self.fault(error)),
        }
    }

    /// Hands a packet to its namespace, which loses it while the device is down.
    ///
    /// # Errors
    ///
    /// If the device is gone.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        match nix::unistd::write(&self.file, bytes) {
            // A device that somebody has set down takes no packets, and may come up again.
            Ok(_) | Err(Errno::EIO) => Ok(()),
            Err(error) => Err(self.fault(error)),
        }
    }

    /// Packets that its namespace sent and that found its queue full.
    ///
    /// # Errors
    ///
    /// If the device is gone.
    pub fn dropped(&self) -> Result<u64, Error> {
        let (mut file, mut table) = (&self.table, String::new());
        let read = file.rewind().and_then(|()| file.read_to_string(&mut table));
        read.map_err(|error| table_fault(&error))?;
        let row = table
            .lines()
            .find_map(|line| line.trim_start().strip_prefix(&*self.plan.device)?.strip_prefix(':'));
        // Eight columns of receiving, then bytes, packets, errs, drop of sending.
        let dropped = row.and_then(|row| row.split_whitespace().nth(11)?.parse().ok());
        dropped.ok_or_else(|| self.fault(Errno::ENODEV))
    }

    fn fault(&self, error: Errno) -> Error {
        let Plan { namespace, device, .. } = &self.plan;
        Error::System(format!("TUN device {device} in {}: {error}", namespace.display()))
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
