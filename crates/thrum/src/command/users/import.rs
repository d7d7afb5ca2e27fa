//! `thrum users import`.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use thrum_auth::hash::{Algorithm, SaltPosition, Scheme};
use thrum_auth::users::import::{
    Imported, ImportedPassword, emqx_csv, emqx_json, merge, mosquitto,
};
use thrum_auth::users::{LockedStore, PasswordHash, UserStore, read, read_from};
use thrum_migrate::mosquitto::dynsec;

use super::place::Place;
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

/// Reads all of it, then changes the store.
pub(super) fn run(args: &ImportArgs) -> anyhow::Result<()> {
    let scheme = args.scheme();
    let shown = args.file.display();
    let users = match args.format {
        Format::Jsonl => {
            let other = read(&args.file).map_err(Failure::usage)?;
            return merge_store(args.place.open()?, &other);
        }
        Format::MosquittoDynsec => return dynamic_security(args),
        Format::Mosquitto => mosquitto(&text(&args.file)?),
        Format::EmqxCsv => emqx_csv(&text(&args.file)?, &scheme),
        Format::EmqxJson => emqx_json(&text(&args.file)?, &scheme),
    };
    let users = users.map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
    let hashed: Vec<(Imported, PasswordHash)> = users
        .into_iter()
        .map(|user| Ok((hash(&user)?, user)))
        .map(|hashed: anyhow::Result<_>| hashed.map(|(hash, user)| (user, hash)))
        .collect::<anyhow::Result<_>>()?;
    let mut locked = args.place.open()?;
    let before = locked.store.users().len();
    let count = hashed.len();
    for (user, hash) in hashed {
        merge(&mut locked.store, &user.name, hash, user.is_superuser);
    }
    let added = locked.store.users().len() - before;
    locked.save()?;
    report(count, added)
}

impl ImportArgs {
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

/// The hash unchanged, or the hash of a clear-text password.
fn hash(user: &Imported) -> anyhow::Result<PasswordHash> {
    match &user.password {
        ImportedPassword::Hash(hash) => Ok(hash.clone()),
        ImportedPassword::Plain(password) => Ok(PasswordHash::of(password.expose())?),
    }
}

/// Groups and roles are imported with the users, and differences are reported.
fn dynamic_security(args: &ImportArgs) -> anyhow::Result<()> {
    let shown = args.file.display();
    let found = dynsec::users(&text(&args.file)?).map_err(|error| {
        Failure::usage(format!(
            "{shown} is not a file of the dynamic security plugin: {error}"
        ))
    })?;
    let lines = found.lines.join("\n");
    let other = read_from(lines.as_bytes(), &args.file).map_err(Failure::usage)?;
    merge_store(args.place.open()?, &other)?;
    let mut errors = std::io::stderr().lock();
    for note in &found.notes {
        writeln!(errors, "note: {note}")?;
    }
    Ok(())
}

/// Everything of the other store replaces what has the same name here.
fn merge_store(mut locked: LockedStore, other: &UserStore) -> anyhow::Result<()> {
    let before = locked.store.users().len();
    for (name, user) in other.users() {
        locked.store.set_user(name, user.clone());
    }
    for (name, group) in other.groups() {
        locked.store.set_group(name, group.clone());
    }
    for (name, role) in other.roles() {
        locked.store.set_role(name, role.clone());
    }
    let added = locked.store.users().len() - before;
    locked.save()?;
    report(other.users().len(), added)
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
        let shown = path.display();
        let file = std::fs::File::open(path).with_context(|| format!("cannot read {shown}"))?;
        file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)
    };
    let read = read.with_context(|| format!("cannot read {}", path.display()))?;
    if read as u64 > FILE_BYTES_MAX {
        return Err(Failure::usage("the file has more than 1 GiB"));
    }
    Ok(text)
}
