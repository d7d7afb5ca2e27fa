//! `thrum users rm`.

use std::io::Write as _;

use clap::Args;

use super::change::unknown;
use super::place::Place;
use crate::command::shown::counted;

/// Arguments of `thrum users rm`.
#[derive(Debug, Args)]
pub(super) struct RmArgs {
    /// User names.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    place: Place,
}

/// Removes all of them, or none.
pub(super) fn run(args: &RmArgs) -> anyhow::Result<()> {
    let mut locked = args.place.open()?;
    for name in &args.names {
        if locked.store.remove_user(name).is_none() {
            return Err(unknown(name, &locked.store));
        }
    }
    locked.save()?;
    let users = counted(args.names.len(), "user", "users");
    writeln!(
        std::io::stderr(),
        "removed {users}; a broker that runs disconnects their clients"
    )?;
    Ok(())
}
