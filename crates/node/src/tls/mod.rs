//! TLS 1.3 with raw public keys (RFC 7250) both ways: rustls makes the connection, [`record`]
//! then protects what flows on it.
//!
//! A node may hold many keys (one per content it shares, one per job it fetches), so a dialler
//! names the key it wants in the server name: a hash of the key, which tells a stranger nothing.
//! A listener without that key ends the handshake.

pub(crate) mod handshake;
pub(crate) mod record;

use crate::identity::Identity;
use anabranch_proto::id::PeerId;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs};
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer,
    UnixTime,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme,
};
use std::sync::{Arc, LazyLock};

/// The protocol both ends must name: without it there is no connection.
const ALPN: &[u8] = b"anabranch/1";

/// The DER of an Ed25519 public key (RFC 8410) is this and the key's 32 bytes.
const SPKI_PREFIX: [u8; 12] =
    [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// The DER of an Ed25519 private key (RFC 8410) is this and the seed's 32 bytes.
const PKCS8_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// The few algorithms links use. AES-128 first: it has hardware nearly everywhere and is the
/// fastest there; ChaCha20 for the rest.
static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| {
    let suites = [
        aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256,
        aws_lc_rs::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    ];
    Arc::new(CryptoProvider {
        cipher_suites: suites.to_vec(),
        kx_groups: vec![aws_lc_rs::kx_group::X25519MLKEM768, aws_lc_rs::kx_group::X25519],
        ..aws_lc_rs::default_provider()
    })
});

/// A key in the form that handshakes use.
pub(crate) fn certified_key(identity: &Identity) -> Result<Arc<CertifiedKey>, Error> {
    let spki: Vec<u8> = [&SPKI_PREFIX[..], &identity.id().0].concat();
    let pkcs8: Vec<u8> = [&PKCS8_PREFIX[..], identity.seed()].concat();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pkcs8));
    let key = PROVIDER.key_provider.load_private_key(key)?;
    Ok(Arc::new(CertifiedKey::new(vec![CertificateDer::from(spki)], key)))
}

/// The peer with this raw public key; only Ed25519 keys name peers.
fn peer_of(spki: &[u8]) -> Result<PeerId, Error> {
    let key = spki.strip_prefix(&SPKI_PREFIX[..]).and_then(|key| key.try_into().ok());
    key.map(PeerId).ok_or(Error::InvalidCertificate(CertificateError::BadEncoding))
}

/// What a dialler calls the peer in the clear: 32 hexadecimal digits.
pub(crate) fn server_name(peer: &PeerId) -> String {
    let hash = blake3::Hash::from_bytes(blake3::derive_key("anabranch 1 server name", &peer.0));
    hash.to_hex()[..32].to_string()
}

/// The listener's configuration; `keys` finds the key for a server name.
pub(crate) fn server_config(keys: Arc<dyn ResolvesServerCert>) -> Result<Arc<ServerConfig>, Error> {
    let mut config = ServerConfig::builder_with_provider(PROVIDER.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(Arc::new(AnyPeer))
        .with_cert_resolver(keys);
    config.alpn_protocols = vec![ALPN.to_vec()];
    // A listener says nothing before the join proof, session tickets included.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.enable_secret_extraction = true;
    Ok(Arc::new(config))
}

/// A dialler's configuration for reaching `peer` and nobody else.
pub(crate) fn client_config(
    key: Arc<CertifiedKey>,
    peer: PeerId,
) -> Result<Arc<ClientConfig>, Error> {
    let mut config = ClientConfig::builder_with_provider(PROVIDER.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(OnePeer(peer)))
        .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(key)));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = Resumption::disabled();
    config.enable_secret_extraction = true;
    Ok(Arc::new(config))
}

fn algorithms() -> &'static WebPkiSupportedAlgorithms {
    &PROVIDER.signature_verification_algorithms
}

fn verify_signature(
    message: &[u8],
    spki: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, Error> {
    let spki = SubjectPublicKeyInfoDer::from(spki.as_ref());
    rustls::crypto::verify_tls13_signature_with_raw_key(message, &spki, signature, algorithms())
}

fn no_tls12() -> Error {
    Error::PeerIncompatible(rustls::PeerIncompatible::Tls12NotOfferedOrEnabled)
}

/// A listener takes any Ed25519 key: who belongs to the group shows in the hello.
#[derive(Debug)]
struct AnyPeer;

impl ClientCertVerifier for AnyPeer {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }
    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        peer_of(end_entity).map(|_| ClientCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(no_tls12())
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_signature(message, cert, dss)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// A dialler takes one key only.
#[derive(Debug)]
struct OnePeer(PeerId);

impl ServerCertVerifier for OnePeer {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if peer_of(end_entity)? != self.0 {
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
        Err(no_tls12())
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_signature(message, cert, dss)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
