//! `ackademyd quic`: files over QUIC, under a controller of this project, over real paths.
//!
//! A client opens a stream for its request (`protocol`) and gets the file in pieces, a stream each, in order.
use crate::error::Error;
use crate::interrupt;
use clap::{Args, Subcommand};
use noq::{Endpoint, EndpointConfig, ServerConfig, TransportConfig, VarInt};
use std::fmt::Display;
use std::net::UdpSocket;
use std::time::Duration;

mod fetch;
mod identity;
mod protocol;
mod serve;

/// Arguments of the command.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Serve the files of a folder, until Ctrl-C; prints the pin of its key, and a line for each transfer
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(serve::Arguments),
    /// Fetch a file; continues one of which a part is there
    #[command(after_help = FETCH_EXAMPLES)]
    Fetch(fetch::Arguments),
}

const SERVE_EXAMPLES: &str = "\
Examples:
  ackademyd quic serve /srv/files --cc bbr3
  ackademyd quic serve . --cc policy --param policy=data/policies/flagship --listen 0.0.0.0:8443
  ackademyd quic serve . --certificate chain.pem --key key.pem

Without a certificate the server has a new key each time, whose pin it prints: `fetch` takes it. The controller governs the
data, so it is the server's. Files outside of the folder are not served, nor are links to them.";

const FETCH_EXAMPLES: &str = "\
Examples:
  ackademyd quic fetch quic://server:4433/big.iso --pin 3f5b…
  ackademyd quic fetch quic://server.example/big.iso --out copy.iso      the certificate is of a known authority

A part of the file stays when a transfer ends early, as `.NAME.….part`: the same command continues there.";

/// Runs the command.
///
/// # Errors
///
/// One line for a person.
pub fn run(arguments: Arguments) -> Result<(), Error> {
    interrupt::watch();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::System(format!("tokio: {error}")))?;
    match arguments.command {
        Command::Serve(arguments) => runtime.block_on(serve::run(arguments)),
        Command::Fetch(arguments) => runtime.block_on(fetch::run(arguments)),
    }
}

/// Largest payload of a datagram.
#[derive(Args, Clone, Copy, Debug)]
struct Mtu {
    /// Largest payload of a datagram, in bytes: what the path takes less the headers of IP and UDP
    #[arg(long, value_name = "BYTES", default_value_t = 1452, value_parser = clap::value_parser!(u16).range(1200..=65_527))]
    mtu: u16,
}

impl Mtu {
    fn endpoint(self, socket: UdpSocket, server: Option<ServerConfig>) -> Result<Endpoint, Error> {
        let mut config = EndpointConfig::default();
        config
            .max_udp_payload_size(self.mtu)
            .map_err(|error| Error::Input(format!("--mtu {}: {error}", self.mtu)))?;
        let system = |error: &dyn Display| Error::System(format!("a socket of QUIC: {error}"));
        let runtime = noq::default_runtime().ok_or_else(|| system(&"it needs tokio"))?;
        Endpoint::new(config, server, socket, runtime).map_err(|error| system(&error))
    }

    /// Without MTU discovery: a controller begins with the size of its packets.
    fn transport(self) -> TransportConfig {
        let mut transport = TransportConfig::default();
        transport
            .initial_mtu(self.mtu)
            .mtu_discovery_config(None)
            .max_idle_timeout(Some(VarInt::from_u32(IDLE.as_millis() as u32).into()))
            .stream_receive_window(VarInt::from_u32(2 * protocol::PIECE_BYTES as u32))
            .receive_window(VarInt::from_u32(WINDOW_BYTES))
            .send_window(u64::from(WINDOW_BYTES))
            .max_concurrent_uni_streams(VarInt::from_u32(PIECES_MAX))
            .max_concurrent_bidi_streams(VarInt::from_u32(1));
        transport
    }
}

/// An error of the system or of noq with what it comes from.
fn system(error: impl std::error::Error) -> Error {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    Error::System(text)
}

/// Until Ctrl-C, SIGTERM or SIGHUP.
async fn interrupted() {
    while !interrupt::came() {
        tokio::time::sleep(LOOK).await;
    }
}

/// After so long without a packet, the peer is gone.
const IDLE: Duration = Duration::from_secs(30);
/// How often a signal is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// Most data on its way, and in memory at each end.
const WINDOW_BYTES: u32 = 64 << 20;
/// Most pieces on their way.
const PIECES_MAX: u32 = 128;
