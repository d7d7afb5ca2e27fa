//! From options to the state that all sessions of a listener share.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};

use crate::acceptor::{AcceptorError, ServerCertificate};
use crate::certificate::{identity, is_revocation_list, list_overdue, out_of_date, validity};
use crate::tls::chain::completed;
use crate::tls::client_verifier::ClientVerifier;
use crate::tls::pem::{
    FileError, authorities, certificates, key_pair_fault, private_key, revocation_lists,
};
use crate::tls::resumption::{Resumption, Trust};
use crate::tls::server_names::ServerNames;
use crate::tls::{ClientCertificate, KeyPairFiles, ServerTlsOptions};

/// The initial state of sessions.
pub(crate) struct ServerTls {
    pub(crate) config: Arc<ServerConfig>,
    /// The listener's certificates.
    pub(crate) certificates: Vec<ServerCertificate>,
    resumption: Resumption,
}

/// Authorities of clients, and their revocation lists.
struct Authorities {
    roots: Arc<RootCertStore>,
    lists: Vec<CertificateRevocationListDer<'static>>,
    trust: Trust,
}

impl ServerTls {
    /// Reads the files that the options name, and adds to `warnings`.
    pub(crate) fn new(
        options: &ServerTlsOptions,
        previous: Option<&Self>,
        warnings: &mut Vec<String>,
    ) -> Result<Self, AcceptorError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut certificates = Vec::new();
        let mut notes = Notes {
            certificates: &mut certificates,
            warnings,
        };
        let names = server_names(options, &provider, &mut notes)?;
        let authorities = Authorities::read(options, warnings)?;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(options.min_version.and_newer())
            .map_err(AcceptorError::Tls)?;
        let builder = match verifier(options, &authorities, &provider)? {
            Some(verifier) => builder.with_client_cert_verifier(verifier),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(Arc::new(names));
        let previous = previous.map(|tls| &tls.resumption);
        let resumption = Resumption::new(authorities.trust, options.session_tickets, previous)
            .map_err(AcceptorError::Tls)?;
        resumption.apply(&mut config);
        Ok(Self {
            config: Arc::new(config),
            certificates,
            resumption,
        })
    }
}

/// Information about the certificates that were read.
struct Notes<'a> {
    certificates: &'a mut Vec<ServerCertificate>,
    /// Warnings.
    warnings: &'a mut Vec<String>,
}

fn server_names(
    options: &ServerTlsOptions,
    provider: &CryptoProvider,
    notes: &mut Notes<'_>,
) -> Result<ServerNames, AcceptorError> {
    let more = options
        .chain_file
        .as_deref()
        .map(certificates)
        .transpose()?;
    let more = more.unwrap_or_default();
    let default = certified_key(&options.files, &more, provider, notes)?;
    let mut names = ServerNames::new(default);
    for files in &options.sni {
        if !names.add(certified_key(files, &more, provider, notes)?) {
            notes.warnings.push(format!(
                "the certificate '{}' is never chosen: it has no DNS name among its subject \
                 alternative names; issue it with the names of its hosts",
                files.cert_file.display()
            ));
        }
    }
    Ok(names)
}

fn certified_key(
    files: &KeyPairFiles,
    more: &[CertificateDer<'static>],
    provider: &CryptoProvider,
    notes: &mut Notes<'_>,
) -> Result<CertifiedKey, AcceptorError> {
    let chain = completed(certificates(&files.cert_file)?, more);
    let key = private_key(&files.key_file)?;
    let valid = chain.first().and_then(|own| Some((own, validity(own)?)));
    notes
        .certificates
        .extend(valid.map(|(own, validity)| ServerCertificate {
            file: files.cert_file.clone(),
            validity,
            identity: identity(own),
        }));
    if let Some(own) = chain.first()
        && let Some(cause) = out_of_date(own, UnixTime::now())
    {
        notes.warnings.push(format!(
            "clients will refuse the certificate '{}': {cause}; renew it, or set the clock",
            files.cert_file.display()
        ));
    }
    CertifiedKey::from_der(chain, key, provider).map_err(|error| AcceptorError::KeyPair {
        cert_file: files.cert_file.clone(),
        key_file: files.key_file.clone(),
        cause: key_pair_fault(&error),
    })
}

impl Authorities {
    fn read(options: &ServerTlsOptions, warnings: &mut Vec<String>) -> Result<Self, AcceptorError> {
        if options.client_certificate == ClientCertificate::None {
            if options.ca_file.is_some() || !options.crl_files.is_empty() {
                warnings.push(
                    "ca and crl mean nothing: clients are not asked for certificates; set \
                     client_cert to 'optional' or 'required'"
                        .to_owned(),
                );
            }
            return Ok(Self {
                roots: Arc::new(RootCertStore::empty()),
                lists: Vec::new(),
                trust: Trust::of([].into_iter()),
            });
        }
        let ca_file = options.ca_file.as_ref().ok_or(AcceptorError::NoAuthority)?;
        let roots = authorities(ca_file)?;
        let mut lists = Vec::new();
        for path in &options.crl_files {
            lists.extend(revocation_list(path, warnings)?);
        }
        let mode: &[u8] = match options.client_certificate {
            ClientCertificate::Required => b"required",
            ClientCertificate::Optional | ClientCertificate::None => b"optional",
        };
        let anchors = certificates(ca_file)?;
        let parts = [mode].into_iter();
        let parts = parts.chain(anchors.iter().map(AsRef::as_ref));
        let trust = Trust::of(
            parts
                .chain([b"".as_slice()])
                .chain(lists.iter().map(AsRef::as_ref)),
        );
        Ok(Self {
            roots: Arc::new(roots),
            lists,
            trust,
        })
    }
}

fn revocation_list(
    path: &Path,
    warnings: &mut Vec<String>,
) -> Result<Vec<CertificateRevocationListDer<'static>>, AcceptorError> {
    let lists = revocation_lists(path)?;
    for list in &lists {
        if !is_revocation_list(list) {
            let cause = "it holds a revocation list that cannot be read";
            return Err(FileError::new(path, &cause).into());
        }
        if let Some(due) = list_overdue(list, UnixTime::now()) {
            warnings.push(format!(
                "clients of the authority of '{}' are refused: the next revocation list was due \
                 on {due}; fetch it and reload",
                path.display()
            ));
        }
    }
    Ok(lists)
}

/// Requires a certificate that the authorities have signed; none if no certificate is required.
///
/// Every certificate of a chain must be covered by a list as soon as there are lists, and a list
/// that is out of date covers nothing: an attacker who withholds a newer list from the server must
/// not gain by it.
fn verifier(
    options: &ServerTlsOptions,
    authorities: &Authorities,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, AcceptorError> {
    let (roots, provider) = (Arc::clone(&authorities.roots), Arc::clone(provider));
    let builder = WebPkiClientVerifier::builder_with_provider(roots, provider)
        .with_crls(authorities.lists.iter().cloned())
        .enforce_revocation_expiration();
    let builder = match options.client_certificate {
        ClientCertificate::None => return Ok(None),
        ClientCertificate::Optional => builder.allow_unauthenticated(),
        ClientCertificate::Required => builder,
    };
    let verifier = builder.build().map_err(|error| match error {
        VerifierBuilderError::InvalidCrl(cause) => {
            AcceptorError::RevocationList(format!("{cause:?}"))
        }
        error => AcceptorError::Tls(rustls::Error::General(error.to_string())),
    })?;
    Ok(Some(Arc::new(ClientVerifier(verifier))))
}
