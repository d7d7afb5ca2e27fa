//! `thrum users passwd`.

use std::io::Write as _;

use clap::Args;

use super::change::unknown;
use super::password::{PasswordArgs, set};
use super::place::{Place, Store};
#[cfg(feature = "management")]
use super::remote;
use super::store_file::StoreFile;
#[cfg(feature = "management")]
use crate::command::Failure;

/// Arguments of `thrum users passwd`.
#[derive(Debug, Args)]
pub(super) struct PasswdArgs {
    /// User name.
    name: String,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    password: PasswordArgs,
    /// Also allow login with SCRAM-SHA-256; a user that has it keeps it.
    #[arg(long)]
    scram: bool,
    /// Disconnect the user's clients, which have logged in with the old password; only a running
    /// broker can.
    #[cfg(feature = "management")]
    #[arg(long, conflicts_with = "users")]
    disconnect: bool,
}

/// Gives the user another password.
pub(super) fn run(args: &PasswdArgs) -> anyhow::Result<()> {
    let said = match args.place.store()? {
        #[cfg(feature = "management")]
        Store::File(_) if args.disconnect => {
            return Err(Failure::with_code(
                Failure::UNREACHABLE,
                "--disconnect asks a running broker, and none runs here: leave it out, nobody is connected",
            ));
        }
        Store::File(file) => {
            set_in_file(args, &file)?;
            String::new()
        }
        #[cfg(feature = "management")]
        Store::Broker(broker) => {
            // Before the user types a password in vain.
            remote::user(&broker, &args.name)?;
            let login = remote::NewLogin {
                password: &args.password.read()?,
                with_scram: args.scram,
            };
            remote::set_password(&broker, &args.name, &login, args.disconnect)?
        }
    };
    writeln!(std::io::stderr(), "{} has a new password{said}", args.name)?;
    Ok(())
}

fn set_in_file(args: &PasswdArgs, file: &StoreFile) -> anyhow::Result<()> {
    let name = &args.name;
    let store = file.read()?;
    if store.user(name).is_none() {
        return Err(unknown(name, &store));
    }
    let password = args.password.read()?;
    let mut locked = file.open()?;
    let Some(mut user) = locked.store.remove_user(name) else {
        return Err(unknown(name, &locked.store));
    };
    let with_scram = args.scram || user.scram.is_some();
    set(&mut user, &password, with_scram)?;
    locked.store.set_user(name, user);
    locked.save()?;
    Ok(())
}
