//! The server: it reads files of one folder, and sends them under its controller.
use super::identity::{Own, hex};
use super::protocol::{self, Answer, PIECE_BYTES};
use super::{Mtu, interrupted, system};
use crate::clock;
use crate::error::Error;
use crate::files;
use ackademy::controllers;
use ackademy::params::ParamValue;
use ackademy::scheme::{Entry, Scheme};
use ackademy::units::Span;
use ackademy_capture::qlog::Numbered;
use ackademy_capture::{Failure, Output};
use ackademy_quic::virtual_time::NOQ_NAMES;
use ackademy_quic::{Factory, Watch};
use bytes::Bytes;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::Mode;
use noq::congestion::{Bbr3Config, ControllerFactory, CubicConfig, NewRenoConfig};
use noq::crypto::rustls::QuicServerConfig;
use noq::{
    Connection, ConnectionError, Incoming, PathId, PathStats, SendStream, ServerConfig, VarInt,
};
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// Folder whose files are served
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Address and port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "[::]:4433")]
    listen: SocketAddr,
    #[command(flatten)]
    own: Own,
    /// Controller of the data, a name of `ackademy list`, or noq:NAME
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    cc: String,
    /// A setting of --cc
    #[arg(long, value_name = "NAME=VALUE", value_parser = crate::kernel::cli::setting)]
    param: Vec<(String, ParamValue)>,
    /// Write what the sender of each transfer does to this new file (qlog), while it does it
    #[arg(long, value_name = "FILE")]
    qlog: Option<PathBuf>,
    #[command(flatten)]
    mtu: Mtu,
}

/// What makes the controllers of a connection.
type Governor = Arc<dyn ControllerFactory + Send + Sync>;

/// What every connection needs.
struct Server {
    folder: File,
    tls: Arc<QuicServerConfig>,
    governor: Box<dyn Fn() -> Result<Governor, Error> + Send + Sync>,
    mtu: Mtu,
    qlog: Option<Numbered>,
    begun: Instant,
}

pub(super) async fn run(arguments: Arguments) -> Result<(), Error> {
    let Arguments { folder, listen, own, cc, param, qlog, mtu } = arguments;
    let (tls, pin) = own.config()?;
    let folder_open = open_folder(&folder)?;
    let governor = governor(&cc, &param)?;
    governor()?;
    let socket = UdpSocket::bind(listen).map_err(|error| {
        let allowed = "an address of this machine and a free port";
        Error::Input(format!("--listen {listen}: allowed is {allowed} ({error})"))
    })?;
    let failure = Failure::default();
    let about = format!("{}, {cc}", folder.display());
    let qlog = qlog.map(|path| new_qlog(&path, &about, &failure)).transpose()?;
    #[expect(
        clippy::disallowed_methods,
        reason = "the clock of noq's calls, as time 0 of the qlog"
    )]
    let begun = Instant::now();
    let server = Server { folder: folder_open, tls, governor, mtu, qlog: qlog.clone(), begun };
    let server = Arc::new(server);
    let config = server.config("nobody")?.0;
    let endpoint = mtu.endpoint(socket, Some(config))?;
    let at = endpoint.local_addr().unwrap_or(listen);
    let pinned = pin.map_or_else(String::new, |pin| format!(", pin {}", hex(pin)));
    say!("serving {} at {at} under {cc}{pinned}", folder.display())?;
    loop {
        tokio::select! {
            incoming = endpoint.accept() => match incoming {
                Some(incoming) => accept(&server, incoming, endpoint.open_connections()),
                None => break,
            },
            () = interrupted() => break,
        }
    }
    endpoint.close(VarInt::from_u32(0), b"the server ends");
    let _ = tokio::time::timeout(CLOSING, endpoint.wait_idle()).await;
    qlog.iter().for_each(Numbered::flush);
    match failure.take() {
        Some(error) => Err(Error::System(format!("--qlog: {error}"))),
        None => Ok(()),
    }
}

/// A new file for qlog, and what goes wrong with it later.
fn new_qlog(path: &Path, about: &str, failure: &Failure) -> Result<Numbered, Error> {
    let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| {
        Error::Input(format!("--qlog {}: allowed is a new file ({error})", path.display()))
    })?;
    Ok(Numbered::new(Output::new(Box::new(file), failure.clone()), about, None))
}

/// A connection runs beside the others; above the bound it is refused.
fn accept(server: &Arc<Server>, incoming: Incoming, open: usize) {
    if open > CONNECTIONS_MAX {
        return incoming.refuse();
    }
    let server = Arc::clone(server);
    tokio::spawn(async move {
        let peer = incoming.remote_address();
        if let Err(error) = server.serve(incoming).await {
            note!("ackademyd: {peer}: {error}");
        }
    });
}

impl Server {
    /// A configuration for the connection of a peer, and what its sender sees.
    fn config(&self, peer: &str) -> Result<(ServerConfig, Watch), Error> {
        let watch = Watch::default();
        if let Some(qlog) = &self.qlog {
            watch.log(qlog.flow(peer), self.begun);
        }
        let mut transport = self.mtu.transport();
        transport.congestion_controller_factory(watch.factory((self.governor)()?));
        let mut config = ServerConfig::with_crypto(Arc::clone(&self.tls) as _);
        config.transport_config(Arc::new(transport));
        Ok((config, watch))
    }

    async fn serve(&self, incoming: Incoming) -> Result<(), Error> {
        let peer = incoming.remote_address();
        let (config, watch) = self.config(&peer.to_string())?;
        let connection =
            incoming.accept_with(Arc::new(config)).map_err(system)?.await.map_err(system)?;
        let (mut reply, mut request) = connection.accept_bi().await.map_err(system)?;
        let name = protocol::read_text(&mut request).await.map_err(system)?;
        let file = match self.open(&name) {
            Ok(file) => file,
            Err(why) => {
                reply.write_all(&Answer::Refused(why.clone()).bytes()).await.map_err(system)?;
                let _ = reply.finish();
                let _ = tokio::time::timeout(CLOSING, connection.closed()).await;
                return Err(Error::Input(format!("{name:?}: {why}")));
            }
        };
        let about = file.metadata().map_err(system)?;
        let size = about.len();
        let found = Answer::Found { size, tag: tag(&about) };
        reply.write_all(&found.bytes()).await.map_err(system)?;
        let from = protocol::read_number(&mut request).await.map_err(system)?;
        let begun = clock::now();
        send(&connection, &file, from.min(size)..size).await?;
        reply.finish().map_err(system)?;
        // The client closes when it has all.
        match connection.closed().await {
            ConnectionError::ApplicationClosed(close)
                if close.error_code == VarInt::from_u32(0) => {}
            other => return Err(system(other)),
        }
        let sent = size.saturating_sub(from);
        let took = clock::now().since(begun);
        if let Some(qlog) = &self.qlog {
            qlog.flush();
        }
        let stats = connection.path_stats(PathId::ZERO).unwrap_or_default();
        say!("{peer} {name}: {}", summary(sent, took, &watch, &stats))
    }

    /// A regular file below the folder, also through links that stay below it.
    fn open(&self, name: &str) -> Result<File, String> {
        let how = OpenHow::new()
            .flags(OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY)
            .mode(Mode::empty())
            .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS);
        let refused = |_| NO_FILE.to_owned();
        let file = File::from(openat2(&self.folder, name, how).map_err(refused)?);
        let is_file = file.metadata().is_ok_and(|about| about.is_file());
        is_file.then_some(file).ok_or_else(|| NO_FILE.to_owned())
    }
}

/// Sends a part of a file in pieces; earlier ones first.
async fn send(
    connection: &Connection,
    file: &File,
    part: std::ops::Range<u64>,
) -> Result<(), Error> {
    let mut at = part.start;
    let mut priority = 0;
    while at < part.end {
        let end = part.end.min(at + PIECE_BYTES);
        let mut stream = connection.open_uni().await.map_err(system)?;
        priority -= 1;
        stream.set_priority(priority).map_err(system)?;
        while at < end {
            at += send_block(&mut stream, file, at, end).await?;
        }
        stream.finish().map_err(system)?;
    }
    Ok(())
}

/// Reads and sends a block; returns how long it is.
async fn send_block(stream: &mut SendStream, file: &File, at: u64, end: u64) -> Result<u64, Error> {
    let mut block = vec![0; (end - at).min(BLOCK_BYTES) as usize];
    let read = file.read_at(&mut block, at).map_err(system)?;
    if read == 0 {
        return Err(Error::System("the file is shorter than it was".to_owned()));
    }
    block.truncate(read);
    stream.write_chunk(Bytes::from(block)).await.map_err(system)?;
    Ok(read as u64)
}

/// How a transfer went, on one line.
fn summary(bytes: u64, took: Span, watch: &Watch, stats: &PathStats) -> String {
    let seconds = took.as_secs_f64().max(1e-9);
    let rate = bytes as f64 * 8e-6 / seconds;
    let (rtt_min_ms, rtt_mean_ms) = watch.rtt_ms();
    let (lost, sent) = (stats.lost_packets, stats.udp_tx.datagrams);
    format!(
        "{bytes} bytes in {seconds:.3} s, {rate:.3} Mb/s; RTT {rtt_min_ms:.2} ms at least, {rtt_mean_ms:.2} on average; \
         {lost} of {sent} packets lost"
    )
}

/// A number that changes when the file is written.
fn tag(about: &std::fs::Metadata) -> u64 {
    let parts = [about.ino(), about.len(), about.mtime() as u64, about.mtime_nsec() as u64];
    parts.iter().fold(ackademy::digest::EMPTY, |tag, part| {
        ackademy::digest::fnv1a(tag, &part.to_le_bytes())
    })
}

/// The folder, open: its name may mean another one later.
fn open_folder(path: &Path) -> Result<File, Error> {
    let wrong = |why: &dyn Display| {
        Error::Input(format!("{}: allowed is a folder that can be read ({why})", path.display()))
    };
    std::fs::read_dir(path).map_err(|error| wrong(&error))?;
    File::open(path).map_err(|error| wrong(&error))
}

/// What makes the controllers of each connection.
fn governor(
    cc: &str,
    given: &[(String, ParamValue)],
) -> Result<Box<dyn Fn() -> Result<Governor, Error> + Send + Sync>, Error> {
    let own: Option<Governor> = match cc {
        "noq:bbr3" => Some(Arc::new(Bbr3Config::default())),
        "noq:cubic" => Some(Arc::new(CubicConfig::default())),
        "noq:new_reno" => Some(Arc::new(NewRenoConfig::default())),
        _ => None,
    };
    if let Some(own) = own {
        return match given.first() {
            Some((name, _)) => Err(Error::Input(format!("--param {name}: {cc} has no settings"))),
            None => Ok(Box::new(move || Ok(Arc::clone(&own)))),
        };
    }
    let spec = controllers::find(&cc.replace('-', "_")).ok_or_else(|| {
        let known: Vec<&str> =
            controllers::ALL.iter().map(|spec| spec.name).chain(NOQ_NAMES).collect();
        Error::Input(format!("--cc {cc}: allowed is one of {}", known.join(", ")))
    })?;
    let mut load = |name: &str, bytes_max| files::read(Path::new(name), bytes_max);
    let scheme = Scheme::open(Entry::Plain(spec), given, &mut load)
        .map_err(|error| Error::Input(format!("--param of {}: {error}", spec.name)))?;
    Ok(Box::new(move || {
        let factory = Factory::new(&scheme).map_err(|error| Error::Input(error.0))?;
        Ok(Arc::new(factory))
    }))
}

const NO_FILE: &str = "no such file here";
/// Most connections at a time; each may take the memory of a window.
const CONNECTIONS_MAX: usize = 64;
/// Read at a time.
const BLOCK_BYTES: u64 = 1 << 17;
/// For goodbyes.
const CLOSING: Duration = Duration::from_secs(1);
