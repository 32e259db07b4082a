//! The client: it fetches a file, and continues one of which it has a part.
use super::identity::Trust;
use super::protocol::{self, ALPN, Answer};
use super::{Mtu, interrupted, system};
use crate::clock;
use crate::error::Error;
use crate::output::hint;
use ackademy::units::{Span, Time};
use nix::fcntl::OFlag;
use noq::{ClientConfig, Connection, ConnectionError, Endpoint, PathId, VarInt};
use std::fs::{self, File, OpenOptions};
use std::io::{IsTerminal, Write};
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// `quic://HOST:PORT/FILE`; the port is 4433 if there is none
    #[arg(value_name = "URL")]
    url: Url,
    #[command(flatten)]
    trust: Trust,
    /// File to be made [default: the last part of the URL, here]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    mtu: Mtu,
}

/// Where a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Url {
    host: String,
    port: u16,
    /// Below the server's folder.
    file: String,
}

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "allowed is quic://HOST:PORT/FILE".to_owned();
        let (place, file) =
            text.strip_prefix("quic://").and_then(|rest| rest.split_once('/')).ok_or_else(wrong)?;
        // An IPv6 address has colons itself, and is in brackets.
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| wrong())?)
            }
            _ => (place, PORT),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_file = !file.is_empty() && !file.ends_with('/') && file.len() <= protocol::NAME_MAX;
        if host.is_empty() || !is_file {
            return Err(wrong());
        }
        Ok(Self { host: host.to_owned(), port, file: file.to_owned() })
    }
}

impl Url {
    fn address(&self) -> Result<SocketAddr, Error> {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let address = found.as_ref().ok().and_then(|addresses| addresses.clone().next());
        address
            .ok_or_else(|| Error::Input(format!("{}: allowed is a host that is known", self.host)))
    }

    /// What the file is called here.
    fn name(&self) -> Result<&str, Error> {
        let last = self.file.rsplit('/').next().unwrap_or_default();
        let allowed = !["", ".", ".."].contains(&last) && !last.contains('\0');
        allowed
            .then_some(last)
            .ok_or_else(|| Error::Input(format!("{}: name the file by --out", self.file)))
    }
}

pub(super) async fn run(arguments: Arguments) -> Result<(), Error> {
    let Arguments { url, trust, out, mtu } = arguments;
    let out = match out {
        Some(out) => out,
        None => url.name()?.into(),
    };
    check_out(&out)?;
    let mut config = ClientConfig::new(trust.config()?);
    config.transport_config(Arc::new(mtu.transport()));
    let address = url.address()?;
    let endpoint = endpoint(mtu, address)?;
    let connecting = endpoint.connect_with(config, address, &url.host);
    let connecting = connecting.map_err(|error| Error::Input(format!("{}: {error}", url.host)))?;
    let connection = tokio::select! {
        connected = tokio::time::timeout(CONNECTING, connecting) => match connected {
            Ok(connected) => connected.map_err(|error| refused(&url, &error))?,
            Err(_) => return Err(Error::System(format!("{address} does not answer within {CONNECTING:?}"))),
        },
        () = interrupted() => return Err(Error::Interrupted),
    };
    let fetched = tokio::select! {
        fetched = fetch(&connection, &url, &out) => fetched,
        () = interrupted() => Err(Error::Interrupted),
    };
    connection.close(VarInt::from_u32(u32::from(fetched.is_err())), b"");
    let _ = tokio::time::timeout(CLOSING, endpoint.wait_idle()).await;
    fetched
}

/// A new file, in a folder that is there.
fn check_out(out: &Path) -> Result<(), Error> {
    let wrong =
        |allowed: &str| Error::Input(format!("--out {}: allowed is {allowed}", out.display()));
    if fs::symlink_metadata(out).is_ok() {
        return Err(wrong("a name that is free"));
    }
    let folder = folder_of(out);
    if out.file_name().is_none() || !folder.is_dir() {
        return Err(wrong("a name in a folder that is there"));
    }
    nix::unistd::access(&folder, nix::unistd::AccessFlags::W_OK)
        .map_err(|error| wrong(&format!("a name in a folder that can be written ({error})")))
}

fn folder_of(out: &Path) -> PathBuf {
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

fn endpoint(mtu: Mtu, to: SocketAddr) -> Result<Endpoint, Error> {
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).map_err(system)?;
    mtu.endpoint(socket, None)
}

async fn fetch(connection: &Connection, url: &Url, out: &Path) -> Result<(), Error> {
    let (mut request, mut reply) = connection.open_bi().await.map_err(system)?;
    request.write_all(&protocol::text(&url.file)).await.map_err(system)?;
    let (size, tag) = match Answer::read(&mut reply).await.map_err(system)? {
        Answer::Found { size, tag } => (size, tag),
        Answer::Refused(why) => return Err(Error::Input(format!("{}: {why}", url.file))),
    };
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    let part = folder_of(out).join(format!(".{name}.{tag:016x}.part"));
    let wrong = |error: std::io::Error| Error::System(format!("{}: {error}", part.display()));
    let own = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let opened = OpenOptions::new().append(true).create(true).custom_flags(own.bits()).open(&part);
    let mut file = opened.map_err(wrong)?;
    let mut from = file.metadata().map_err(wrong)?.len();
    if from > size {
        file.set_len(0).map_err(wrong)?;
        from = 0;
    }
    request.write_all(&from.to_be_bytes()).await.map_err(system)?;
    request.finish().map_err(system)?;
    let begun = clock::now();
    receive(connection, &mut file, (from, size)).await.map_err(|error| match error {
        Error::System(why) => {
            Error::System(format!("{why}; {} stays, run again to continue", part.display()))
        }
        other => other,
    })?;
    // The server has read what it was asked for, and sent all.
    reply.read_to_end(0).await.map_err(system)?;
    file.sync_all().map_err(wrong)?;
    fs::hard_link(&part, out).and_then(|()| fs::remove_file(&part)).map_err(wrong)?;
    let (took, bytes) = (clock::now().since(begun).as_secs_f64().max(1e-9), size - from);
    let rtt = connection.rtt(PathId::ZERO).unwrap_or_default().as_secs_f64() * 1e3;
    let before = if from > 0 { format!(", after {from} that were here") } else { String::new() };
    say!(
        "{}: {bytes} bytes{before} in {took:.3} s, {:.3} Mb/s; RTT {rtt:.2} ms at the end",
        out.display(),
        bytes as f64 * 8e-6 / took
    )
}

/// Appends what arrives, piece after piece.
async fn receive(
    connection: &Connection,
    file: &mut File,
    (from, size): (u64, u64),
) -> Result<(), Error> {
    let mut at = from;
    let mut bar = Bar::new(from, size);
    while at < size {
        let mut piece = connection.accept_uni().await.map_err(system)?;
        while let Some(chunk) = piece.read_chunk(CHUNK_MAX).await.map_err(system)? {
            if chunk.len() as u64 > size - at {
                return Err(Error::System("the server sends more than it said".to_owned()));
            }
            file.write_all(&chunk).map_err(system)?;
            at += chunk.len() as u64;
            bar.show(at);
        }
    }
    bar.clear();
    Ok(())
}

/// How far a transfer is, on a terminal.
struct Bar {
    from: u64,
    size: u64,
    begun: Time,
    next: Time,
    shows: bool,
}

impl Bar {
    fn new(from: u64, size: u64) -> Self {
        let begun = clock::now();
        Self { from, size, begun, next: begun, shows: std::io::stderr().is_terminal() }
    }

    fn show(&mut self, at: u64) {
        let now = clock::now();
        if !self.shows || now < self.next {
            return;
        }
        self.next = now + BAR_EVERY;
        let share = at as f64 / self.size.max(1) as f64;
        let done = (share * BAR_LETTERS as f64) as usize;
        let seconds = now.since(self.begun).as_secs_f64().max(1e-9);
        let rate = (at - self.from) as f64 * 8e-6 / seconds;
        let (full, empty) = ("#".repeat(done), ".".repeat(BAR_LETTERS - done));
        hint(format_args!("\r{full}{empty} {:.0} % {rate:.1} Mb/s ", 100.0 * share));
    }

    fn clear(&self) {
        if self.shows {
            hint(format_args!("\r\x1b[K"));
        }
    }
}

/// The server is not who it should be, speaks something else, or is not there.
fn refused(url: &Url, error: &ConnectionError) -> Error {
    let place = format!("{}:{}", url.host, url.port);
    match error {
        ConnectionError::TransportError(error) if u64::from(error.code) == NO_PROTOCOL => {
            let known = String::from_utf8_lossy(ALPN);
            Error::Input(format!(
                "{place}: allowed is a server of {known}, as `ackademyd quic serve`"
            ))
        }
        ConnectionError::TransportError(error) if CRYPTO.contains(&u64::from(error.code)) => {
            let why = &error.reason;
            Error::Input(format!(
                "{place}: the server is not one that --pin or --ca trusts ({why})"
            ))
        }
        other => Error::System(format!("{place}: {other}")),
    }
}

const PORT: u16 = 4433;
/// Errors of TLS (RFC 9001 section 4.8), and that of no common protocol.
const CRYPTO: std::ops::Range<u64> = 0x100..0x200;
const NO_PROTOCOL: u64 = 0x178;
const CONNECTING: Duration = Duration::from_secs(10);
const CLOSING: Duration = Duration::from_secs(1);
/// Written at a time.
const CHUNK_MAX: usize = 1 << 17;
const BAR_EVERY: Span = Span::from_millis(200);
const BAR_LETTERS: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_host_port_and_file() {
        let url = |text: &str| text.parse::<Url>();
        let parts = |url: Url| (url.host, url.port, url.file);
        let found = url("quic://server:8443/a/b.iso").map(parts);
        assert_eq!(found, Ok(("server".to_owned(), 8443, "a/b.iso".to_owned())));
        let found = url("quic://[::1]/b").map(parts);
        assert_eq!(found, Ok(("::1".to_owned(), 4433, "b".to_owned())));
        for wrong in
            ["", "http://a/b", "quic://a", "quic://a/", "quic:///b", "quic://a:x/b", "quic://a/b/"]
        {
            assert!(url(wrong).is_err(), "{wrong}");
        }
    }
}
