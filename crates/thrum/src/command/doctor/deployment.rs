//! What a configuration names on this machine: the data directory and its disk, certificates,
//! keys, ports.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::fstatfs;
use thrum_broker::config::{Bind, ListenerConfig, Transport};
use thrum_files::Folder;
use thrum_transport::validity_of_file;

use super::exposure::{Door, Exposure};
use super::finding::Finding;
use crate::assemble;
use crate::command::serve;
use crate::command::shown::now;
use crate::config::Loaded;

/// Writes that time the disk, unless they take longer together than [`SYNC_TIME_MAX`].
const SYNCS: usize = 20;
const SYNC_TIME_MAX: Duration = Duration::from_secs(2);
/// Bytes of each.
const SYNC_BYTES: usize = 4096;
/// Name of the file that is written.
const PROBE_FILE: &str = "doctor.probe";
/// Files of the data directory whose modes are looked at.
const FILES_MAX: usize = 1000;
/// Days before its end from which on a certificate is to be renewed.
const DAYS_LEFT_MIN: u64 = 14;
/// The control socket of a broker that runs.
const CONTROL_SOCKET: &str = "control.sock";
/// The file of administrators.
const ADMINISTRATORS: &str = "administrators.jsonl";

/// Kinds of file systems by their numbers, as statfs(2) lists them.
const KINDS: [(u64, &str); 12] = [
    (0xef53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0x2fc1_2fc1, "zfs"),
    (0xf2f5_2010, "f2fs"),
    (0x6969, "nfs"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x6573_5546, "fuse"),
    (0x0102_1994, "tmpfs"),
    (0x8584_58f6, "ramfs"),
    (0x794c_7630, "overlayfs"),
];

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Deployment {
    pub(super) disk: Disk,
    pub(super) exposure: Exposure,
    /// Findings that need no judgement on figures.
    pub(super) findings: Vec<Finding>,
}

/// The disk of the data directory; what is not known is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Disk {
    pub(super) path: String,
    pub(super) kind: Option<String>,
    pub(super) free_bytes: Option<u64>,
    pub(super) sync: Option<SyncTimes>,
}

/// Times until some bytes are on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SyncTimes {
    pub(super) median: Duration,
    pub(super) longest: Duration,
    pub(super) tries: usize,
}

/// Looks at everything that a configuration names.
pub(super) fn read(loaded: &Loaded) -> Deployment {
    let config = &loaded.config;
    let mut deployment = Deployment::default();
    let data_dir = &config.node.data_dir;
    let mut has_administrator = None;
    let mut is_running = false;
    if data_dir.as_os_str().is_empty() {
        deployment.findings.push(Finding::warn(
            "data directory",
            "there is none: nothing is kept",
            "sessions and retained messages are lost with the broker, and no command can ask it",
            "node.data_dir = \"/var/lib/thrum\"",
        ));
    } else {
        is_running = runs(data_dir);
        has_administrator = has_contents(&data_dir.join(ADMINISTRATORS));
        deployment.findings.extend(data_directory(data_dir));
        deployment.disk = disk(data_dir);
    }
    let prepared = assemble::prepare(config);
    // If it is not known, it is not judged.
    let has_users = prepared
        .as_ref()
        .map_or(true, assemble::Prepared::has_users);
    match &prepared {
        Ok(prepared) => {
            let warnings = prepared.warnings().iter();
            deployment.findings.extend(warnings.map(|warning| {
                Finding::warn(
                    "configuration",
                    warning.clone(),
                    "it works, but is probably not meant so",
                    "thrum config check --strict shows it too",
                )
            }));
        }
        Err(problems) => deployment.findings.push(Finding::fail(
            "configuration",
            problems.to_string(),
            "the broker does not start with it",
            "correct the file; thrum config check shows the same errors",
        )),
    }
    if !is_running {
        deployment.findings.push(ports(loaded));
    }
    for (name, listener) in &config.listeners {
        deployment.findings.extend(certificate(name, listener));
    }
    let doors = config.listeners.iter();
    let doors = doors.map(|(name, listener)| door(name, listener));
    deployment.exposure = Exposure {
        listeners: doors.collect(),
        anonymous: config.auth.anonymous,
        has_users,
        has_administrator,
    };
    deployment
}

/// A broker has the data directory.
fn runs(data_dir: &Path) -> bool {
    let folder = Folder::open(data_dir);
    folder.is_ok_and(|folder| folder.connect(OsStr::new(CONTROL_SOCKET)).is_ok())
}

/// Whether a file has contents; none if it cannot be seen.
fn has_contents(path: &Path) -> Option<bool> {
    match std::fs::metadata(path) {
        Ok(found) => Some(found.len() > 0),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(false),
        Err(_) => None,
    }
}

fn data_directory(data_dir: &Path) -> Vec<Finding> {
    const CHECK: &str = "data directory";
    let shown = data_dir.display();
    let found = match std::fs::metadata(data_dir) {
        Ok(found) => found,
        Err(error) => {
            return vec![Finding::fail(
                CHECK,
                format!("{shown}: {error}"),
                "the broker keeps its state there",
                format!("mkdir -p -m 700 {shown}, owned by the user of the broker"),
            )];
        }
    };
    if !found.is_dir() {
        return vec![Finding::fail(
            CHECK,
            format!("{shown} is no directory"),
            "the broker keeps its state there",
            "name another one with node.data_dir",
        )];
    }
    if found.mode() & 0o007 != 0 {
        return vec![Finding::warn(
            CHECK,
            format!("every user of this machine may look into {shown}"),
            "it has messages, users and keys",
            format!("chmod 700 {shown}"),
        )];
    }
    let open = open_files(data_dir);
    if open.is_empty() {
        return vec![Finding::ok(CHECK, format!("{shown} is closed to others"))];
    }
    let names = open.into_iter().collect::<Vec<_>>().join(" ");
    vec![Finding::warn(
        CHECK,
        format!("every user of this machine may read files in {shown}: {names}"),
        "they may have messages, users and keys",
        format!("cd {shown} && chmod 600 {names}"),
    )]
}

/// Files directly in a directory that others may read.
fn open_files(data_dir: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(data_dir).into_iter().flatten();
    let open = entries.take(FILES_MAX).filter_map(|entry| {
        let entry = entry.ok()?;
        let found = entry.metadata().ok()?;
        let is_open = found.is_file() && found.mode() & 0o006 != 0;
        is_open.then(|| entry.file_name().to_string_lossy().into_owned())
    });
    open.collect()
}

fn disk(data_dir: &Path) -> Disk {
    let folder = Folder::open(data_dir).ok();
    Disk {
        path: data_dir.display().to_string(),
        kind: kind(data_dir),
        free_bytes: folder.and_then(|folder| folder.free_bytes().ok()),
        sync: time_sync(data_dir).ok(),
    }
}

fn kind(data_dir: &Path) -> Option<String> {
    let opened = File::open(data_dir).ok()?;
    let number = fstatfs(opened).ok()?.f_type;
    // The kernel's number has 32 bits, the field has the size of a word and may be signed.
    let number = number.cast_unsigned() & 0xffff_ffff;
    let mut kinds = KINDS.iter();
    let found = kinds.find(|(known, _)| *known == number);
    Some(found.map_or_else(
        || format!("kind {number:#x}"),
        |(_, kind)| (*kind).to_owned(),
    ))
}

/// Writes some bytes to the disk, again and again.
#[expect(
    clippy::disallowed_methods,
    reason = "the time of the disk is measured"
)]
fn time_sync(data_dir: &Path) -> std::io::Result<SyncTimes> {
    let path = data_dir.join(PROBE_FILE);
    let mut options = OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(0o600).open(&path);
    let mut file = match opened {
        // One that was killed has left it.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            std::fs::remove_file(&path)?;
            options.open(&path)?
        }
        opened => opened?,
    };
    let mut times = Vec::new();
    let began = Instant::now();
    let mut write = || -> std::io::Result<()> {
        while times.len() < SYNCS && began.elapsed() < SYNC_TIME_MAX {
            let before = Instant::now();
            file.write_all(&[0; SYNC_BYTES])?;
            file.sync_data()?;
            times.push(before.elapsed());
        }
        Ok(())
    };
    let written = write();
    std::fs::remove_file(&path)?;
    written?;
    times.sort_unstable();
    let none = || std::io::Error::other("nothing was written");
    Ok(SyncTimes {
        median: times.get(times.len() / 2).copied().ok_or_else(none)?,
        longest: times.last().copied().ok_or_else(none)?,
        tries: times.len(),
    })
}

/// Tries the ports of a broker that does not run.
fn ports(loaded: &Loaded) -> Finding {
    const CHECK: &str = "listeners";
    match serve::try_addresses(&loaded.config, loaded.optional_listener()) {
        Ok(()) => Finding::ok(CHECK, "every address can be listened on"),
        Err(refused) => Finding::fail(
            CHECK,
            refused.replace("\nerror: ", "; "),
            "the broker does not start",
            "ss -ltnp shows who listens; stop that, or choose other addresses",
        ),
    }
}

fn certificate(name: &str, listener: &ListenerConfig) -> Vec<Finding> {
    const CHECK: &str = "certificate";
    let tls = &listener.tls;
    if tls.cert.as_os_str().is_empty() {
        return Vec::new();
    }
    let shown = tls.cert.display();
    let mut findings = Vec::new();
    match validity_of_file(&tls.cert) {
        // Thrum's own check of the configuration reports it.
        Err(_) => {}
        Ok(validity) => {
            let left = validity.until.saturating_sub(now() / 1000) / 86_400;
            let words = format!(
                "that of {name} ({shown}) is valid until {}, for {left} days",
                validity.until_date
            );
            findings.push(if left < DAYS_LEFT_MIN {
                Finding::warn(
                    CHECK,
                    words,
                    "clients refuse an expired certificate, all of them at the same time",
                    "renew it; the broker reads it again by itself (tls.reload_interval)",
                )
            } else {
                Finding::ok(CHECK, words)
            });
        }
    }
    let key = if tls.key.as_os_str().is_empty() {
        &tls.cert
    } else {
        &tls.key
    };
    let is_open = std::fs::metadata(key).is_ok_and(|found| found.mode() & 0o006 != 0);
    if is_open {
        let key = key.display();
        findings.push(Finding::fail(
            CHECK,
            format!("every user of this machine may read the private key {key}"),
            "whoever has the key can pass for the broker",
            format!("chmod 600 {key}, or chgrp to the group of the broker and chmod 640"),
        ));
    }
    findings
}

fn door(name: &str, listener: &ListenerConfig) -> Door {
    let mut open = listener.bind.iter().filter_map(|bind| match bind {
        Bind::Address(address) if !address.ip().is_loopback() => Some(address.to_string()),
        Bind::Address(_) | Bind::Unix(_) => None,
    });
    let has_tls = !listener.tls.cert.as_os_str().is_empty() || !listener.tls_from.is_empty();
    Door {
        name: name.to_owned(),
        open_address: open.next(),
        is_tls: has_tls || listener.transport == Transport::Quic,
        is_http: listener.transport == Transport::Http,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_data_directory_is_closed_to_others_with_its_files() {
        let folder = std::env::temp_dir().join(format!("thrum-doctor-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let set = |path: &Path, mode| {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        };
        let said = || data_directory(&folder)[0].cure.clone();
        set(&folder, 0o755);
        assert!(said().starts_with("chmod 700"), "{}", said());
        set(&folder, 0o700);
        assert_eq!(said(), "");
        let file = folder.join("users.jsonl");
        std::fs::write(&file, "x").unwrap();
        set(&file, 0o644);
        assert!(said().ends_with("chmod 600 users.jsonl"), "{}", said());
        let times = time_sync(&folder).unwrap();
        assert!(times.median <= times.longest && times.tries > 0);
        assert!(!folder.join(PROBE_FILE).exists());
        assert!(kind(&folder).is_some());
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(data_directory(&folder)[0].cure.starts_with("mkdir -p"));
    }
}
