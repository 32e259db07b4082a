//! QUIC over sockets of this machine: our CUBIC beside noq's own in alternating runs, and the memory of connections that
//! open and close. `make bench-quic`; arguments: `runs=N`, `mb=N`, `connections=N`.
#![expect(clippy::disallowed_methods, reason = "a benchmark")]
use ackademy::scheme::Scheme;
use ackademy_quic::{Factory, tls};
use noq::congestion::{ControllerFactory, CubicConfig};
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq::{ClientConfig, Endpoint, ServerConfig, TransportConfig};
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

type Done<T> = Result<T, Box<dyn Error>>;
type Governor = Arc<dyn ControllerFactory + Send + Sync>;

fn main() -> Done<()> {
    let (mut runs, mut megabytes, mut connections) = (10, 400, 20_000);
    for word in std::env::args().skip(1) {
        match word.split_once('=') {
            Some(("runs", given)) => runs = given.parse()?,
            Some(("mb", given)) => megabytes = given.parse()?,
            Some(("connections", given)) => connections = given.parse()?,
            _ => {}
        }
    }
    beside(runs, megabytes)?;
    flat(connections)
}

/// Goodput of both, run by run.
fn beside(runs: usize, megabytes: usize) -> Done<()> {
    let (mut own, mut theirs) = (Vec::new(), Vec::new());
    println!("run cubic_mbps noq_cubic_mbps");
    for run in 1..=runs {
        own.push(mbps(Arc::new(Factory::new(&Scheme::resolve("cubic", &[])?)?), megabytes)?);
        theirs.push(mbps(Arc::new(CubicConfig::default()), megabytes)?);
        println!("{run} {:.0} {:.0}", own[run - 1], theirs[run - 1]);
    }
    let (own, theirs) = (median(own), median(theirs));
    println!("medians {own:.0} {theirs:.0}, {:.1} % of noq's", own / theirs * 100.0);
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    f64::midpoint(values[values.len() / 2], values[(values.len() - 1) / 2])
}

fn mbps(governor: Governor, megabytes: usize) -> Done<f64> {
    let (address, pin) = serve()?;
    block(async {
        let (client, data) = (client(pin, governor)?, vec![1; 1_000_000]);
        let connection = client.connect(address, "server")?.await?;
        let began = Instant::now();
        let mut stream = connection.open_uni().await?;
        for _ in 0..megabytes {
            stream.write_all(&data).await?;
        }
        stream.finish()?;
        stream.stopped().await?;
        let took = began.elapsed().as_secs_f64();
        connection.close(0u8.into(), b"");
        Ok(megabytes as f64 * 8.0 / took)
    })
}

/// Opens connections one after the other and prints what the process holds.
fn flat(connections: usize) -> Done<()> {
    let (address, pin) = serve()?;
    block(async {
        let governor = Arc::new(Factory::new(&Scheme::resolve("cubic", &[])?)?);
        let client = client(pin, governor)?;
        println!("connections resident_mib");
        for number in 1..=connections {
            let connection = client.connect(address, "server")?.await?;
            let mut stream = connection.open_uni().await?;
            stream.write_all(&[1; 1000]).await?;
            stream.finish()?;
            stream.stopped().await?;
            connection.close(0u8.into(), b"");
            if number % (connections / 10).max(1) == 0 {
                println!("{number} {:.1}", resident_mib()?);
            }
        }
        client.wait_idle().await;
        println!("closed {:.1}", resident_mib()?);
        Ok(())
    })
}

fn resident_mib() -> Done<f64> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    let resident: f64 = pages.split(' ').nth(1).unwrap_or_default().parse()?;
    Ok(resident * 4096.0 / 1_048_576.0)
}

fn block<T>(work: impl Future<Output = Done<T>>) -> Done<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

fn client(pin: tls::Pin, governor: Governor) -> Done<Endpoint> {
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls::client(pin)?)?));
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(governor);
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::client("127.0.0.1:0".parse()?)?;
    endpoint.set_default_client_config(config);
    Ok(endpoint)
}

/// A server on a thread of its own, which reads every stream.
fn serve() -> Done<(SocketAddr, tls::Pin)> {
    let (config, pin) = tls::server([7; 32])?;
    let config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(config)?));
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let served = block(async {
            let endpoint = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
            tell.send(endpoint.local_addr()?)?;
            while let Some(incoming) = endpoint.accept().await {
                tokio::spawn(async move {
                    let Ok(connection) = incoming.await else { return };
                    while let Ok(mut stream) = connection.accept_uni().await {
                        while let Ok(Some(_)) = stream.read_chunk(1 << 20).await {}
                    }
                });
            }
            Ok(())
        });
        served.expect("a server");
    });
    Ok((told.recv()?, pin))
}
