//! The server's certificates, chosen by the requested name.

use std::collections::HashMap;
use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::certificate::host_names;
use crate::tls::notes;

/// Certificates of one listener.
#[derive(Debug)]
pub(super) struct ServerNames {
    /// For clients that request no name or an unknown one.
    default: Arc<CertifiedKey>,
    /// Several for one name may differ in the kind of their key.
    by_name: HashMap<String, Vec<Arc<CertifiedKey>>>,
}

impl ServerNames {
    pub(super) fn new(default: CertifiedKey) -> Self {
        let mut names = Self {
            default: Arc::new(default),
            by_name: HashMap::new(),
        };
        names.register(&Arc::clone(&names.default));
        names
    }

    /// A further certificate, for its names; false if it contains none.
    pub(super) fn add(&mut self, key: CertifiedKey) -> bool {
        self.register(&Arc::new(key))
    }

    fn register(&mut self, key: &Arc<CertifiedKey>) -> bool {
        let names = key.cert.first().map(host_names).unwrap_or_default();
        let is_named = !names.is_empty();
        for name in names {
            self.by_name.entry(name).or_default().push(Arc::clone(key));
        }
        is_named
    }

    fn named(&self, name: &str) -> &[Arc<CertifiedKey>] {
        let name = name.to_ascii_lowercase();
        let found = self.by_name.get(&name).or_else(|| {
            // RFC 6125 section 6.4.3: a star stands for one label, the first.
            let (_, domain) = name.split_once('.')?;
            self.by_name.get(&format!("*.{domain}"))
        });
        found.map_or(&[], Vec::as_slice)
    }
}

impl ResolvesServerCert for ServerNames {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        notes::note_server_name(hello.server_name());
        let named = hello.server_name().map(|name| self.named(name));
        let mut candidates = named.unwrap_or_default().iter().chain([&self.default]);
        let first = candidates.clone().next();
        let fits =
            |key: &&Arc<CertifiedKey>| key.key.choose_scheme(hello.signature_schemes()).is_some();
        candidates.find(fits).or(first).cloned()
    }
}
