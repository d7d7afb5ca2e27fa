//! Certificates made for one test, and the files that options name.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertificateRevocationListParams, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, RevokedCertParams, SerialNumber,
    date_time_ymd,
};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

/// Signs certificates.
pub(crate) struct Authority {
    pub(crate) certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key.
pub(crate) struct Identity {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) key: KeyPair,
}

impl Authority {
    pub(crate) fn new() -> Self {
        Self::named("an authority")
    }

    pub(crate) fn named(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self {
            certificate: certificate.der().clone(),
            issuer: Issuer::new(params, key),
        }
    }

    pub(crate) fn sign(&self, name: &str) -> Identity {
        self.sign_with(name, |_| {})
    }

    pub(crate) fn sign_with(
        &self,
        name: &str,
        adjust: impl FnOnce(&mut CertificateParams),
    ) -> Identity {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        adjust(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate: Certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity {
            certificate: certificate.der().clone(),
            key,
        }
    }

    /// A list of the certificates with these serial numbers, valid until a year.
    pub(crate) fn revocation_list(&self, serials: &[u64], until_year: i32) -> PathBuf {
        let revoked = serials.iter().map(|serial| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: date_time_ymd(2024, 1, 1),
            reason_code: None,
            invalidity_date: None,
        });
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2024, 1, 1),
            next_update: date_time_ymd(until_year, 1, 1),
            crl_number: SerialNumber::from(1_u64),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = list.signed_by(&self.issuer).unwrap();
        write(&pem("X509 CRL", list.der()))
    }

    pub(crate) fn file(&self) -> PathBuf {
        write(&pem("CERTIFICATE", &self.certificate))
    }

    fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        Arc::new(roots)
    }
}

impl Identity {
    pub(crate) fn cert_file(&self) -> PathBuf {
        write(&pem("CERTIFICATE", &self.certificate))
    }

    pub(crate) fn key_file(&self) -> PathBuf {
        write(&pem("PRIVATE KEY", self.key.serialized_der()))
    }

    pub(crate) fn private_key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::try_from(self.key.serialize_der()).unwrap()
    }

    /// A server with this certificate; it requires client certificates that `clients` has signed.
    pub(crate) fn server(&self, clients: Option<&Authority>) -> ServerConfig {
        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match clients {
            Some(authority) => builder.with_client_cert_verifier(
                WebPkiClientVerifier::builder_with_provider(authority.roots(), provider)
                    .build()
                    .unwrap(),
            ),
            None => builder.with_no_client_auth(),
        };
        builder
            .with_single_cert(vec![self.certificate.clone()], self.private_key())
            .unwrap()
    }
}

pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}

/// A new file with this text in cargo's folder for tests.
pub(crate) fn write(text: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("transport-{}-{number}.pem", std::process::id());
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}
