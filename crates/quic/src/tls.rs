//! Keys of both ends. A raw public key (RFC 7250) takes the place of a certificate, and an Ed25519
//! signature has one length: equal seeds give datagrams of equal sizes.
use ::ring::digest::{SHA256, digest};
use noq_proto::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use noq_proto::rustls::crypto::{CryptoProvider, ring, verify_tls13_signature_with_raw_key};
use noq_proto::rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use noq_proto::rustls::server::AlwaysResolvesServerRawPublicKeys;
use noq_proto::rustls::sign::CertifiedKey;
use noq_proto::rustls::version::TLS13;
use noq_proto::rustls::{
    self, CertificateError, DigitallySignedStruct, Error, PeerMisbehaved, SignatureScheme,
};
use std::sync::Arc;

/// What a server and its clients use.
pub(crate) struct Keys {
    pub(crate) server: Arc<rustls::ServerConfig>,
    pub(crate) client: Arc<rustls::ClientConfig>,
}

impl Keys {
    /// The keys of a seed.
    ///
    /// # Errors
    ///
    /// Those of rustls, for a provider without Ed25519.
    pub(crate) fn new(seed: [u8; 32]) -> Result<Self, Error> {
        let (server, pin) = server(seed)?;
        Ok(Self { server: Arc::new(server), client: Arc::new(client(pin)?) })
    }
}

/// SHA-256 of a public key (of its `SubjectPublicKeyInfo`, RFC 7469 section 2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin(pub [u8; 32]);

impl Pin {
    fn of(public: &[u8]) -> Self {
        let mut pin = [0; 32];
        pin.copy_from_slice(digest(&SHA256, public).as_ref());
        Self(pin)
    }
}

/// A server with the Ed25519 key of a seed, without a certificate, and what its clients pin.
///
/// # Errors
///
/// Those of rustls, for a provider without Ed25519.
pub fn server(seed: [u8; 32]) -> Result<(rustls::ServerConfig, Pin), Error> {
    let provider = Arc::new(ring::default_provider());
    let der = PrivatePkcs8KeyDer::from([&PKCS8_ED25519[..], &seed].concat());
    let key = ring::sign::any_eddsa_type(&der)?;
    let public = key.public_key().ok_or(Error::General("no public key".to_owned()))?;
    let pin = Pin::of(&public);
    let own = Arc::new(CertifiedKey::new(vec![CertificateDer::from(public.to_vec())], key));
    let server = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(own)));
    Ok((server, pin))
}

/// A client that trusts the one server with this key.
///
/// # Errors
///
/// Those of rustls, for a provider without TLS 1.3.
pub fn client(pin: Pin) -> Result<rustls::ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    Ok(rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned { pin, provider }))
        .with_no_client_auth())
}

/// Trusts one public key.
#[derive(Debug)]
struct Pinned {
    pin: Pin,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if Pin::of(end_entity) != self.pin {
            return Err(Error::InvalidCertificate(CertificateError::UnknownIssuer));
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into()) // QUIC has TLS 1.3 alone
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let public = SubjectPublicKeyInfoDer::from(cert.as_ref());
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &public, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// PKCS #8 before the 32 bytes of an Ed25519 private key (RFC 8410 section 7).
const PKCS8_ED25519: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
