//! `thrum users rm`.

use std::io::Write as _;

use clap::Args;

use super::change::unknown;
use super::place::{Place, Store};
#[cfg(feature = "management")]
use super::remote;
use super::store_file::StoreFile;
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
    let mut names = args.names.clone();
    names.sort_unstable();
    names.dedup();
    let said = match args.place.store()? {
        Store::File(file) => {
            remove_from_file(&names, &file)?;
            "; a broker that runs disconnects their clients".to_owned()
        }
        #[cfg(feature = "management")]
        Store::Broker(broker) => remote::remove(&broker, &names)?,
    };
    let users = counted(names.len(), "user", "users");
    writeln!(std::io::stderr(), "removed {users}{said}")?;
    Ok(())
}

fn remove_from_file(names: &[String], file: &StoreFile) -> anyhow::Result<()> {
    let mut locked = file.open()?;
    for name in names {
        if locked.store.remove_user(name).is_none() {
            return Err(unknown(name, &locked.store));
        }
    }
    locked.save()?;
    Ok(())
}
