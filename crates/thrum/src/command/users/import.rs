//! `thrum users import`.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use thrum_auth::hash::{Algorithm, SaltPosition, Scheme};
use thrum_auth::users::import::{
    Imported, ImportedPassword, emqx_csv, emqx_json, merge, mosquitto,
};
use thrum_auth::users::{LockedStore, PasswordHash, UserStore, read_from};
use thrum_migrate::mosquitto::dynsec;

use super::place::{Place, Store};
#[cfg(feature = "management")]
use super::remote;
use crate::command::Failure;
use crate::command::shown::counted;

/// Most bytes of a file.
const FILE_BYTES_MAX: u64 = 1 << 30;

const HASHES: &str = "\
Hashes are kept as they are and verified by every login; thrum users passwd makes an Argon2id hash of a new password.
A user that is there already gets the imported password and keeps its roles, groups and rules.
EMQX does not record the scheme of its hashes: --algorithm, --salt-position and --iterations have to be those of
its password_hash_algorithm.";

/// Arguments of `thrum users import`.
#[derive(Debug, Args)]
#[command(after_help = HASHES)]
pub(super) struct ImportArgs {
    /// File to read, or - for standard input.
    file: PathBuf,
    /// Form of the file.
    #[arg(long, value_enum)]
    format: Format,
    #[command(flatten)]
    place: Place,
    /// Algorithm of EMQX's hashes.
    #[arg(long, value_enum, default_value = "sha256")]
    algorithm: HashAlgorithm,
    /// Position of the salt in EMQX.
    #[arg(long, value_enum, default_value = "suffix")]
    salt_position: Position,
    /// Iterations of EMQX's PBKDF2.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4096,
        value_parser = clap::value_parser!(u32).range(1..=10_000_000),
    )]
    iterations: u32,
}

/// Form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Password file of Mosquitto.
    Mosquitto,
    /// File of Mosquitto's dynamic security plugin: users, groups and roles.
    MosquittoDynsec,
    /// Users of EMQX's built-in database, as CSV.
    EmqxCsv,
    /// Users of EMQX's built-in database, as JSON.
    EmqxJson,
    /// Another user store of thrum: users, groups and roles.
    Jsonl,
}

/// Algorithm of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum HashAlgorithm {
    Sha256,
    Sha512,
    Bcrypt,
    Pbkdf2Sha1,
    Pbkdf2Sha256,
    Pbkdf2Sha512,
}

/// Position of the salt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Position {
    Prefix,
    Suffix,
    None,
}

/// Users of a file.
struct Read {
    users: Users,
    /// Lines of a store in the place of the file, if a running broker cannot read its form.
    #[cfg_attr(
        not(feature = "management"),
        expect(dead_code, reason = "a running broker is asked with it")
    )]
    lines: Option<String>,
    /// Differences to tell.
    notes: Vec<String>,
}

enum Users {
    Passwords(Vec<Imported>),
    /// With groups and roles.
    Store(UserStore),
}

/// Reads all of it, then changes the store.
pub(super) fn run(args: &ImportArgs) -> anyhow::Result<()> {
    let text = text(&args.file)?;
    let read = args.read(&text)?;
    match args.place.store()? {
        Store::File(file) => {
            let hashed = read.users.hashed()?;
            put_into(file.open()?, &hashed)?;
        }
        #[cfg(feature = "management")]
        Store::Broker(broker) => {
            let body = read.lines.as_deref().unwrap_or(&text);
            let shown = args.file.display().to_string();
            let imported = remote::import(&broker, &args.query(), body.as_bytes(), &shown)?;
            report(imported.added + imported.replaced, imported.added)?;
        }
    }
    let mut errors = std::io::stderr().lock();
    for note in &read.notes {
        writeln!(errors, "note: {note}")?;
    }
    Ok(())
}

impl ImportArgs {
    /// Reads the file; an error names the place in it.
    fn read(&self, text: &str) -> anyhow::Result<Read> {
        let shown = self.file.display();
        let scheme = self.scheme();
        let (mut lines, mut notes) = (None, Vec::new());
        let passwords = match self.format {
            Format::Jsonl | Format::MosquittoDynsec => None,
            Format::Mosquitto => Some(mosquitto(text)),
            Format::EmqxCsv => Some(emqx_csv(text, &scheme)),
            Format::EmqxJson => Some(emqx_json(text, &scheme)),
        };
        if self.format == Format::MosquittoDynsec {
            let found = dynsec::users(text).map_err(|error| {
                Failure::usage(format!(
                    "{shown} is not a file of the dynamic security plugin: {error}"
                ))
            })?;
            lines = Some(found.lines.join("\n"));
            notes = found.notes;
        }
        let users = if let Some(users) = passwords {
            let users = users.map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
            Users::Passwords(users)
        } else {
            let lines = lines.as_deref().unwrap_or(text);
            let store = read_from(lines.as_bytes(), &self.file);
            Users::Store(store.map_err(Failure::usage)?)
        };
        Ok(Read {
            users,
            lines,
            notes,
        })
    }

    /// The form of what is sent to a running broker.
    #[cfg(feature = "management")]
    fn query(&self) -> String {
        if self.format == Format::MosquittoDynsec {
            return "format=jsonl".to_owned();
        }
        format!(
            "format={}&algorithm={}&salt_position={}&iterations={}",
            name_of(&self.format),
            name_of(&self.algorithm),
            name_of(&self.salt_position),
            self.iterations
        )
    }

    fn scheme(&self) -> Scheme {
        Scheme {
            algorithm: match self.algorithm {
                HashAlgorithm::Sha256 => Algorithm::Sha256,
                HashAlgorithm::Sha512 => Algorithm::Sha512,
                HashAlgorithm::Bcrypt => Algorithm::Auto,
                HashAlgorithm::Pbkdf2Sha1 => Algorithm::Pbkdf2Sha1,
                HashAlgorithm::Pbkdf2Sha256 => Algorithm::Pbkdf2Sha256,
                HashAlgorithm::Pbkdf2Sha512 => Algorithm::Pbkdf2Sha512,
            },
            salt_position: match self.salt_position {
                Position::Prefix => SaltPosition::Prefix,
                Position::Suffix => SaltPosition::Suffix,
                Position::None => SaltPosition::None,
            },
            iterations: self.iterations,
        }
    }
}

/// The name of a value of an option.
#[cfg(feature = "management")]
fn name_of(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Users as they are stored.
enum Hashed {
    Passwords(Vec<(Imported, PasswordHash)>),
    Store(UserStore),
}

impl Users {
    /// Hashes passwords in clear text, which takes time, before the store is locked.
    fn hashed(self) -> anyhow::Result<Hashed> {
        let users = match self {
            Self::Store(store) => return Ok(Hashed::Store(store)),
            Self::Passwords(users) => users,
        };
        let hashed = users.into_iter().map(|user| {
            let hash = match &user.password {
                ImportedPassword::Hash(hash) => hash.clone(),
                ImportedPassword::Plain(password) => PasswordHash::of(password.expose())?,
            };
            Ok((user, hash))
        });
        Ok(Hashed::Passwords(hashed.collect::<anyhow::Result<_>>()?))
    }
}

/// Adds users; a store replaces everything that has the same name here.
fn put_into(mut locked: LockedStore, users: &Hashed) -> anyhow::Result<()> {
    let before = locked.store.users().len();
    let count = match users {
        Hashed::Passwords(users) => {
            for (user, hash) in users {
                merge(
                    &mut locked.store,
                    &user.name,
                    hash.clone(),
                    user.is_superuser,
                );
            }
            users.len()
        }
        Hashed::Store(other) => {
            for (name, user) in other.users() {
                locked.store.set_user(name, user.clone());
            }
            for (name, group) in other.groups() {
                locked.store.set_group(name, group.clone());
            }
            for (name, role) in other.roles() {
                locked.store.set_role(name, role.clone());
            }
            other.users().len()
        }
    };
    let added = locked.store.users().len() - before;
    locked.save()?;
    report(count, added)
}

fn report(count: usize, added: usize) -> anyhow::Result<()> {
    let users = counted(count, "user", "users");
    let replaced = count - added.min(count);
    writeln!(
        std::io::stderr(),
        "imported {users}: {added} new, {replaced} replaced"
    )?;
    Ok(())
}

fn text(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        let stdin = std::io::stdin().lock();
        stdin.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)
    } else {
        let opened = std::fs::File::open(path);
        opened.and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text))
    };
    let read =
        read.map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
    if read as u64 > FILE_BYTES_MAX {
        return Err(Failure::usage("the file has more than 1 GiB"));
    }
    Ok(text)
}
