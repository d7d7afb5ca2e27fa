//! `thrum users passwd`.

use std::io::Write as _;

use clap::Args;

use super::change::unknown;
use super::password::{PasswordArgs, set};
use super::place::Place;

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
}

/// Gives the user another password.
pub(super) fn run(args: &PasswdArgs) -> anyhow::Result<()> {
    let name = &args.name;
    let store = args.place.read()?;
    if store.user(name).is_none() {
        return Err(unknown(name, &store));
    }
    let password = args.password.read()?;
    let mut locked = args.place.open()?;
    let Some(mut user) = locked.store.remove_user(name) else {
        return Err(unknown(name, &locked.store));
    };
    let with_scram = args.scram || user.scram.is_some();
    set(&mut user, &password, with_scram)?;
    locked.store.set_user(name, user);
    locked.save()?;
    writeln!(std::io::stderr(), "{name} has a new password")?;
    Ok(())
}
