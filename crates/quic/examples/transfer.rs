//! Sends 20 MB over QUIC on this machine, governed by a controller of Ackademy:
//! `cargo run --release --package ackademy-quic --example transfer -- bbr3`.
use ackademy::scheme::Scheme;
use ackademy_quic::{Factory, tls};
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq::{ClientConfig, Endpoint, ServerConfig, TransportConfig};
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

/// Sends data to a server, and returns when the server has it.
pub(crate) async fn send(
    server: SocketAddr,
    pin: tls::Pin,
    controller: &str,
    data: &[u8],
) -> Result<(), Box<dyn Error>> {
    let factory = Factory::new(&Scheme::resolve(controller, &[])?)?;
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(factory));
    let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls::client(pin)?)?));
    client.transport_config(Arc::new(transport));
    let endpoint = Endpoint::client("127.0.0.1:0".parse()?)?;
    let connection = endpoint.connect_with(client, server, "server")?.await?;
    let mut stream = connection.open_uni().await?;
    stream.write_all(data).await?;
    stream.finish()?;
    stream.stopped().await?;
    Ok(())
}

/// A server on this machine, and the key that its clients trust.
pub(crate) fn server() -> Result<(Endpoint, tls::Pin), Box<dyn Error>> {
    let (config, pin) = tls::server([7; 32])?; // a program of yours draws the seed of its key
    let config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(config)?));
    Ok((Endpoint::server(config, "127.0.0.1:0".parse()?)?, pin))
}

/// Receives the first stream of the next connection.
pub(crate) async fn receive(server: Endpoint) -> Result<Vec<u8>, Box<dyn Error>> {
    let connection = server.accept().await.ok_or("no connection")?.await?;
    let data = connection.accept_uni().await?.read_to_end(usize::MAX).await?;
    connection.closed().await;
    Ok(data)
}

fn main() -> Result<(), Box<dyn Error>> {
    let controller = std::env::args().nth(1).unwrap_or("cubic".to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (endpoint, pin) = server()?;
        let address = endpoint.local_addr()?;
        let data = vec![1; 20_000_000];
        let (sent, received) =
            tokio::join!(send(address, pin, &controller, &data), receive(endpoint));
        sent?;
        println!("{controller}: {} bytes arrived", received?.len());
        Ok(())
    })
}
