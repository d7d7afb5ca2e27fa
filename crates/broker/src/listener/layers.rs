//! From the configuration of a listener to its TLS and WebSocket.

use std::path::{Path, PathBuf};

use thrum_transport::{
    Acceptor, ClientCertificate, KeyPairFiles, ServerTlsOptions, WebSocketOptions,
};

use super::{NamedListener, StartError, unix};
use crate::config::{
    CertificateName, ClientCert, Config, ListenerConfig, TlsConfig, TlsVersion, Transport,
};

/// The TLS settings that apply to a listener: its own, or those of the listener that it names.
pub(super) fn tls_of<'c>(
    config: &'c Config,
    listener: &'c ListenerConfig,
) -> Option<&'c TlsConfig> {
    let tls = if listener.tls_from.is_empty() {
        &listener.tls
    } else {
        &config.listeners.get(&listener.tls_from)?.tls
    };
    tls.is_on().then_some(tls)
}

/// Reads the files that the listener needs; `before` is its present acceptor.
pub(super) fn acceptor(
    config: &Config,
    of: NamedListener<'_>,
    before: Option<&Acceptor>,
) -> Result<Acceptor, StartError> {
    let NamedListener {
        name,
        config: listener,
    } = of;
    let refused = |cause: String| StartError::Listener {
        listener: name.to_owned(),
        cause,
    };
    check_certificates(config, listener).map_err(refused)?;
    unix::check(&listener.bind, &config.node.data_dir).map_err(refused)?;
    if listener.accept_protocol_versions.is_empty() {
        let cause = "accept_protocol_versions names no version; leave it out to accept all of them";
        return Err(refused(cause.to_owned()));
    }
    let is_http = listener.transport == Transport::Http;
    // TLS of an HTTP listener ends before a client of MQTT is known as one.
    let tls = tls_of(config, listener).filter(|_| !is_http);
    let tls = tls.map(tls_options);
    let has_websocket = is_http || listener.transport == Transport::WebSocket;
    let websocket = has_websocket.then(|| WebSocketOptions {
        path: listener.path.clone(),
        origins: listener.origins.clone(),
        ..WebSocketOptions::default()
    });
    let (tls, websocket) = (tls.as_ref(), websocket.as_ref());
    let acceptor = match before {
        None => Acceptor::new(tls, websocket),
        Some(before) => before.renewed(tls, websocket),
    };
    acceptor.map_err(|error| refused(error.to_string()))
}

/// Reads the files of an HTTP listener's TLS; `before` is its present acceptor.
pub(super) fn tls_acceptor(
    config: &Config,
    of: NamedListener<'_>,
    before: Option<&Acceptor>,
) -> Result<Acceptor, StartError> {
    let tls = tls_of(config, of.config).map(tls_options);
    let acceptor = match before {
        None => Acceptor::new(tls.as_ref(), None),
        Some(before) => before.renewed(tls.as_ref(), None),
    };
    acceptor.map_err(|error| StartError::Listener {
        listener: of.name.to_owned(),
        cause: error.to_string(),
    })
}

/// A listener with TLS settings has a certificate: without one it would accept plain connections.
fn check_certificates(config: &Config, listener: &ListenerConfig) -> Result<(), String> {
    let from = &listener.tls_from;
    if !from.is_empty() {
        let Some(other) = config.listeners.get(from) else {
            return Err(format!("tls_from names no listener: there is no {from:?}"));
        };
        if !other.tls.is_on() {
            return Err(format!(
                "tls_from names the listener {from:?}, which has no certificate: set tls.cert there"
            ));
        }
    }
    let key = key_of_tls(&listener.tls);
    match key.filter(|_| !listener.tls.is_on()) {
        None => Ok(()),
        Some(key) if from.is_empty() => Err(format!(
            "{key} means nothing without tls.cert, and the listener has no TLS: set tls.cert"
        )),
        Some(key) => Err(format!(
            "{key} means nothing beside tls_from: it holds what the listener {from:?} has; set it there"
        )),
    }
}

/// The first key that has an effect only with a certificate.
fn key_of_tls(tls: &TlsConfig) -> Option<&'static str> {
    let is_set = |path: &Path| !path.as_os_str().is_empty();
    let keys = [
        ("tls.ca", is_set(&tls.ca)),
        ("tls.client_cert", tls.client_cert == ClientCert::Optional),
        ("tls.crl", !tls.crl.is_empty()),
        ("tls.username", tls.username != CertificateName::None),
        ("tls.key", is_set(&tls.key)),
        ("tls.chain", is_set(&tls.chain)),
        ("tls.sni", !tls.sni.is_empty()),
        ("tls.min_version", tls.min_version != TlsVersion::V12),
    ];
    keys.into_iter().find_map(|(key, is)| is.then_some(key))
}

/// TLS options of a listener.
pub(super) fn tls_options(tls: &TlsConfig) -> ServerTlsOptions {
    let has_ca = !tls.ca.as_os_str().is_empty();
    ServerTlsOptions {
        files: pair(&tls.cert, &tls.key),
        sni: tls
            .sni
            .values()
            .map(|one| pair(&one.cert, &one.key))
            .collect(),
        client_certificate: match tls.client_cert {
            ClientCert::Required if has_ca => ClientCertificate::Required,
            ClientCert::Optional if has_ca => ClientCertificate::Optional,
            ClientCert::None | ClientCert::Optional | ClientCert::Required => {
                ClientCertificate::None
            }
        },
        chain_file: (!tls.chain.as_os_str().is_empty()).then(|| tls.chain.clone()),
        ca_file: has_ca.then(|| tls.ca.clone()),
        crl_files: tls.crl.clone(),
        min_version: match tls.min_version {
            TlsVersion::V12 => thrum_transport::TlsVersion::V1_2,
            TlsVersion::V13 => thrum_transport::TlsVersion::V1_3,
        },
        session_tickets: tls.session_tickets,
    }
}

/// Without a file name for the key, the key is in the file of the certificate.
fn pair(cert: &Path, key: &Path) -> KeyPairFiles {
    let key_file: PathBuf = if key.as_os_str().is_empty() {
        cert.to_owned()
    } else {
        key.to_owned()
    };
    KeyPairFiles {
        cert_file: cert.to_owned(),
        key_file,
    }
}
