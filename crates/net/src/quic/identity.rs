//! Who a server is, and whom a client trusts.
use super::protocol::ALPN;
use crate::error::Error;
use crate::files;
use ackademy_quic::tls::{self, Pin};
use clap::Args;
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq::rustls::crypto::ring;
use noq::rustls::pki_types::pem::PemObject;
use noq::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use noq::rustls::version::TLS13;
use noq::rustls::{self, RootCertStore};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Of a server.
#[derive(Args, Debug)]
pub(super) struct Own {
    /// Certificate of the server and those that lead to its authority, PEM
    #[arg(long, value_name = "FILE", requires = "key")]
    certificate: Option<PathBuf>,
    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
}

impl Own {
    /// The server's side of TLS, and its pin if it has no certificate.
    pub(super) fn config(&self) -> Result<(Arc<QuicServerConfig>, Option<Pin>), Error> {
        let certified = self.certificate.as_ref().zip(self.key.as_ref());
        let certified = certified.map(|(certificate, key)| certified_by(certificate, key));
        let (mut config, pin) = if let Some(config) = certified.transpose()? {
            (config, None)
        } else {
            let (config, pin) = tls::server(random()?).map_err(|error| system(&error))?;
            (config, Some(pin))
        };
        config.alpn_protocols = vec![ALPN.to_vec()];
        let config = QuicServerConfig::try_from(config).map_err(|error| system(&error))?;
        Ok((Arc::new(config), pin))
    }
}

/// A server with a certificate.
fn certified_by(certificate: &Path, key: &Path) -> Result<rustls::ServerConfig, Error> {
    let chain = certificates("--certificate", certificate)?;
    let wrong = |why: &str| Error::Input(format!("--key {}: {why}", key.display()));
    let text = files::read(key, PEM_BYTES_MAX)
        .map_err(|allowed| wrong(&format!("allowed is {allowed}")))?;
    let private = PrivateKeyDer::from_pem_slice(&text)
        .map_err(|_| wrong("allowed is a file with a private key in PEM"))?;
    builder_of_server()?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| wrong(&format!("it is not the key of the certificate ({error})")))
}

fn builder_of_server()
-> Result<rustls::ConfigBuilder<rustls::ServerConfig, rustls::WantsVerifier>, Error> {
    rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| system(&error))
}

/// The certificates of a file, at least one.
fn certificates(option: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let wrong =
        |allowed: &str| Error::Input(format!("{option} {}: allowed is {allowed}", path.display()));
    let text = files::read(path, PEM_BYTES_MAX).map_err(|allowed| wrong(&allowed))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.ok().filter(|found| !found.is_empty());
    found.ok_or_else(|| wrong("a file with certificates in PEM"))
}

/// Of a client: what it trusts.
#[derive(Args, Debug)]
pub(super) struct Trust {
    /// Pin of the server's key, as `serve` prints it
    #[arg(long, value_name = "HEX", value_parser = pin, conflicts_with = "ca")]
    pin: Option<Pin>,
    /// Certificates of the authorities that are trusted, PEM
    #[arg(long, value_name = "FILE", default_value = "/etc/ssl/certs/ca-certificates.crt")]
    ca: PathBuf,
}

impl Trust {
    /// The client's side of TLS.
    pub(super) fn config(&self) -> Result<Arc<QuicClientConfig>, Error> {
        let mut config = if let Some(pin) = self.pin {
            tls::client(pin).map_err(|error| system(&error))?
        } else {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(certificates("--ca", &self.ca)?);
            rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
                .with_protocol_versions(&[&TLS13])
                .map_err(|error| system(&error))?
                .with_root_certificates(roots)
                .with_no_client_auth()
        };
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(Arc::new(QuicClientConfig::try_from(config).map_err(|error| system(&error))?))
    }
}

/// 64 hexadecimal digits.
fn pin(text: &str) -> Result<Pin, String> {
    let digit =
        |at: usize| text.get(2 * at..2 * at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
    let bytes: Option<Vec<u8>> = (0..32).map(digit).collect();
    let pin = bytes.filter(|_| text.len() == 64).and_then(|bytes| bytes.try_into().ok());
    pin.map(Pin)
        .ok_or_else(|| "allowed are the 64 hexadecimal digits that `serve` prints".to_owned())
}

/// As `--pin` takes it.
pub(super) fn hex(pin: Pin) -> String {
    pin.0
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)]))
        .collect()
}

fn random() -> Result<[u8; 32], Error> {
    let mut seed = [0; 32];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut seed))
        .map_err(|error| Error::System(format!("/dev/urandom: {error}")))?;
    Ok(seed)
}

fn system(error: &dyn std::error::Error) -> Error {
    Error::System(format!("TLS: {error}"))
}

const PEM_BYTES_MAX: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_read_as_it_is_printed_and_nothing_else_is_one() {
        let given = Pin(std::array::from_fn(|index| 7 * index as u8));
        assert_eq!(pin(&hex(given)), Ok(given));
        for wrong in ["", "00", &"0".repeat(63), &"0".repeat(66), &"g0".repeat(32), &"é".repeat(32)]
        {
            assert!(pin(wrong).is_err(), "{wrong}");
        }
    }
}
