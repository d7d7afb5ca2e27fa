//! TLS files that are read again after a change, and certificates that are about to expire.

use std::collections::BTreeMap;
use std::path::PathBuf;

use thrum_files::Stamp;
use thrum_protocol::Time;
use thrum_transport::{ServerCertificate, Validity};

use super::{OpenListeners, StartError, layers};
use crate::config::{Config, TlsConfig};

/// The log warns of a certificate's expiry this long before it: time to renew it.
const WARNING_SECS: u64 = 14 * 86_400;
/// A short-lived certificate is renewed late: its warning begins after two thirds of its time.
const WARNING_PART: u64 = 3;

/// The last seen state of the files of all listeners, and of the certificates in them.
#[derive(Debug, Default)]
pub(crate) struct CertificateWatch {
    listeners: CertificateFiles,
    /// The last warning about the certificate in a file, with the certificate's expiry.
    warned: BTreeMap<PathBuf, (u64, Age)>,
}

/// The state of each listener's files at the last check.
pub(crate) type CertificateFiles = BTreeMap<String, Files>;

/// The files of one listener.
#[derive(Debug, Default)]
pub(crate) struct Files {
    stamps: Vec<(PathBuf, Option<Stamp>)>,
    /// The reason why they could not be used.
    failure: Option<String>,
}

/// The distance of a certificate from its expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Age {
    Fresh,
    Old,
    Over,
}

impl CertificateWatch {
    /// The state of the files now; taken before they are read, so that no change is missed.
    pub(crate) fn files_of(config: &Config) -> CertificateFiles {
        let stamps = |tls| Files {
            stamps: stamps(tls),
            failure: None,
        };
        let listeners = config.listeners.iter();
        let with_tls = listeners.filter_map(|(name, listener)| {
            let tls = layers::tls_of(config, listener)?;
            Some((name.clone(), stamps(tls)))
        });
        with_tls.collect()
    }

    /// All files were read.
    pub(crate) fn record_files(
        &mut self,
        files: CertificateFiles,
        standing: &OpenListeners,
        now: Time,
    ) {
        self.listeners = files;
        self.warn_of_ends(standing, now);
    }

    /// Reads the files of each listener with a changed file again: all of them, or none. A listener
    /// whose files cannot be used keeps its present ones; the log contains the reason once, and the
    /// next check tries again.
    pub(crate) fn check(&mut self, config: &Config, standing: &OpenListeners, now: Time) {
        for (name, found) in Self::files_of(config) {
            let known = self.listeners.entry(name.clone()).or_default();
            let changed = known.changed(&found);
            if changed.is_empty() && known.failure.is_none() {
                continue;
            }
            known.stamps = found.stamps;
            match standing.renew_tls(config, &name) {
                Ok(()) => {
                    known.failure = None;
                    log_renewed(&name, &changed, &standing.certificates(&name));
                }
                Err(error) => known.failed(error.to_string()),
            }
        }
        self.warn_of_ends(standing, now);
    }

    /// Reads the files of each listener again; returns the reasons for those that cannot be used.
    pub(crate) fn renew_all(
        &mut self,
        config: &Config,
        standing: &OpenListeners,
        now: Time,
    ) -> Vec<StartError> {
        let mut failures = Vec::new();
        for (name, found) in Self::files_of(config) {
            let known = self.listeners.entry(name.clone()).or_default();
            known.stamps = found.stamps;
            match standing.renew_tls(config, &name) {
                Ok(()) => {
                    known.failure = None;
                    log_renewed(&name, &[], &standing.certificates(&name));
                }
                Err(error) => {
                    known.failed(error.to_string());
                    failures.push(error);
                }
            }
        }
        self.warn_of_ends(standing, now);
        failures
    }

    fn warn_of_ends(&mut self, standing: &OpenListeners, now: Time) {
        let names = self.listeners.keys();
        let shown: Vec<ServerCertificate> =
            names.flat_map(|name| standing.certificates(name)).collect();
        self.warned
            .retain(|file, _| shown.iter().any(|one| one.file == *file));
        for certificate in &shown {
            match self.news_of(certificate, now) {
                Some(Age::Old) => tracing::warn!(
                    file = %certificate.file.display(),
                    valid_until = certificate.validity.until_date,
                    "a certificate ends soon; renew it: the new file is read by itself (tls.reload_interval) or at SIGHUP"
                ),
                Some(Age::Over) => tracing::error!(
                    file = %certificate.file.display(),
                    valid_until = certificate.validity.until_date,
                    "a certificate has expired: clients refuse it; renew it"
                ),
                Some(Age::Fresh) | None => {}
            }
        }
    }

    /// The state of a certificate that has not been reported yet.
    fn news_of(&mut self, certificate: &ServerCertificate, now: Time) -> Option<Age> {
        let until = certificate.validity.until;
        let age = age(&certificate.validity, now);
        let before = self.warned.insert(certificate.file.clone(), (until, age));
        let warned = match before {
            Some((known, warned)) if known == until => warned,
            // The log warned of it when it was read, already expired.
            _ if age == Age::Over => age,
            _ => Age::Fresh,
        };
        (age > warned).then_some(age)
    }
}

impl Files {
    /// The files cannot be used; logged once.
    fn failed(&mut self, failure: String) {
        if self.failure.as_ref() != Some(&failure) {
            tracing::error!(
                "files of TLS have changed and cannot be used, the old ones stay in force: {failure}"
            );
        }
        self.failure = Some(failure);
    }

    /// The files that have changed.
    fn changed(&self, found: &Self) -> Vec<String> {
        let is_new = |one: &&(PathBuf, Option<Stamp>)| !self.stamps.contains(one);
        let changed = found.stamps.iter().filter(is_new);
        changed
            .map(|(path, _)| path.display().to_string())
            .collect()
    }
}

fn log_renewed(listener: &str, changed: &[String], certificates: &[ServerCertificate]) {
    let ends: Vec<&str> = certificates
        .iter()
        .map(|one| &*one.validity.until_date)
        .collect();
    tracing::info!(
        listener,
        files = changed.join(", "),
        valid_until = ends.join(", "),
        "certificates read again, for connections from now on"
    );
}

fn stamps(tls: &TlsConfig) -> Vec<(PathBuf, Option<Stamp>)> {
    let more = tls.sni.values().flat_map(|one| [&one.cert, &one.key]);
    let one = [&tls.cert, &tls.key, &tls.chain, &tls.ca].into_iter();
    let all = one.chain(more).chain(&tls.crl);
    let named = all.filter(|path| !path.as_os_str().is_empty());
    named
        .map(|path| (path.clone(), Stamp::of(path).ok().flatten()))
        .collect()
}

/// The warning about a certificate that is valid, but not for long.
pub(super) fn ends_soon(certificate: &ServerCertificate, now: Time) -> Option<String> {
    let file = certificate.file.display();
    let until = &certificate.validity.until_date;
    (age(&certificate.validity, now) == Age::Old)
        .then(|| format!("the certificate '{file}' ends soon, at {until}; renew it"))
}

fn age(validity: &Validity, now: Time) -> Age {
    let now = now.as_millis() / 1000;
    let lifetime = validity.until.saturating_sub(validity.since);
    let warning = WARNING_SECS.min(lifetime / WARNING_PART);
    if now >= validity.until {
        Age::Over
    } else if now >= validity.until - warning {
        Age::Old
    } else {
        Age::Fresh
    }
}

#[cfg(test)]
mod tests {
    use thrum_transport::CertificateIdentity;

    use super::*;

    const DAY: u64 = 86_400;

    fn certificate(since_day: u64, until_day: u64) -> ServerCertificate {
        ServerCertificate {
            file: "cert.pem".into(),
            validity: Validity {
                since: since_day * DAY,
                until: until_day * DAY,
                until_date: String::new(),
            },
            identity: CertificateIdentity::default(),
        }
    }

    /// The log about a certificate on each of these days.
    fn said(certificate: &ServerCertificate, days: &[u64]) -> Vec<Option<Age>> {
        let mut watch = CertificateWatch::default();
        let at = |day| Time::from_millis(day * DAY * 1000);
        let said = days.iter().map(|day| watch.news_of(certificate, at(day)));
        said.collect()
    }

    #[test]
    fn a_certificate_is_warned_about_once_before_its_end_and_once_behind_it() {
        let days = [10, 75, 76, 77, 89, 90, 91];
        let expected = [
            None,
            None,
            Some(Age::Old),
            None,
            None,
            Some(Age::Over),
            None,
        ];
        assert_eq!(said(&certificate(0, 90), &days), expected);
    }

    #[test]
    fn one_that_is_not_valid_for_long_is_warned_about_late() {
        let expected = [None, None, Some(Age::Old), Some(Age::Over)];
        assert_eq!(
            said(&certificate(100, 106), &[100, 103, 104, 106]),
            expected
        );
    }

    #[test]
    fn one_that_has_expired_already_was_warned_about_when_it_was_read() {
        assert_eq!(said(&certificate(0, 90), &[95, 96]), [None, None]);
    }

    #[test]
    fn a_renewed_one_is_warned_about_anew() {
        let mut watch = CertificateWatch::default();
        let at = |day: u64| Time::from_millis(day * DAY * 1000);
        assert_eq!(watch.news_of(&certificate(0, 90), at(80)), Some(Age::Old));
        assert_eq!(watch.news_of(&certificate(80, 170), at(80)), None);
        assert_eq!(
            watch.news_of(&certificate(80, 170), at(160)),
            Some(Age::Old)
        );
    }
}
