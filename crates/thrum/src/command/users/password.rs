//! The source of a password. It is never an argument, because every user of the machine can read
//! the command line.

use std::io::{BufRead as _, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use clap::Args;
use thrum_access::Secret;
use thrum_auth::Credential;
use thrum_auth::users::{PasswordHash, User};

use crate::command::Failure;

/// Most bytes of a password: as many as CONNECT can hold.
const PASSWORD_BYTES_MAX: u64 = 65_535;

/// The source of the password.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(in crate::command) struct PasswordArgs {
    /// File with the password; a line feed at the end is not part of it.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// The first line of standard input is the password.
    #[arg(long)]
    password_stdin: bool,
}

impl PasswordArgs {
    /// Reads the password, or asks for it twice.
    pub(in crate::command) fn read(&self) -> anyhow::Result<Secret> {
        let password = match &self.password_file {
            Some(file) => of_file(file)?,
            None if self.password_stdin => of_stdin()?,
            None => ask()?,
        };
        if password.expose().is_empty() {
            return Err(Failure::usage("the password is empty"));
        }
        if password.expose().len() as u64 > PASSWORD_BYTES_MAX {
            return Err(Failure::usage("the password is longer than 65,535 bytes"));
        }
        Ok(password)
    }
}

/// Sets the user's password, and a credential for SCRAM if requested.
pub(super) fn set(user: &mut User, password: &Secret, with_scram: bool) -> anyhow::Result<()> {
    user.password = Some(PasswordHash::of(password.expose())?);
    user.scram = None;
    if with_scram {
        let text = password.expose_str();
        let text = text.ok_or_else(|| Failure::usage("a password for SCRAM is text in UTF-8"))?;
        user.scram = Some(Credential::of(text).map_err(Failure::usage)?);
    }
    Ok(())
}

fn of_file(path: &Path) -> anyhow::Result<Secret> {
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(path);
    let read = opened.and_then(|file| file.take(PASSWORD_BYTES_MAX + 2).read_to_end(&mut bytes));
    read.map_err(|error| {
        Failure::usage(format!(
            "--password-file: cannot read {}: {error}",
            path.display()
        ))
    })?;
    Ok(without_line_end(bytes))
}

fn of_stdin() -> anyhow::Result<Secret> {
    let mut bytes = Vec::new();
    let stdin = std::io::stdin().lock();
    stdin
        .take(PASSWORD_BYTES_MAX + 2)
        .read_until(b'\n', &mut bytes)?;
    Ok(without_line_end(bytes))
}

fn without_line_end(mut bytes: Vec<u8>) -> Secret {
    let end = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let password = Secret::new(end.strip_suffix(b"\r").unwrap_or(end));
    bytes.fill(0);
    password
}

fn ask() -> anyhow::Result<Secret> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage(
            "no terminal to ask for the password; give it with --password-file FILE or --password-stdin",
        ));
    }
    let first = Secret::from(rpassword::prompt_password("Password: ")?.as_str());
    let second = Secret::from(rpassword::prompt_password("Again: ")?.as_str());
    if first.expose() != second.expose() {
        return Err(Failure::usage(
            "the two are not the same, nothing was changed",
        ));
    }
    Ok(first)
}
