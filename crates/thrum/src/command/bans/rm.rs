//! `thrum bans rm`.

use std::io::Write as _;

use clap::Args;
use thrum_broker::BanFile;
use thrum_protection::{BanList, Subject};

use super::place::{BanFiles, Bans, Place, failure, load};
#[cfg(feature = "management")]
use super::remote;
use super::subject::{SubjectArgs, shown};
use crate::command::Failure;
use crate::command::shown::now;

/// Arguments of `thrum bans rm`.
#[derive(Debug, Args)]
pub(super) struct RmArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    #[command(flatten)]
    place: Place,
}

/// Lifts a ban of any origin.
pub(super) fn run(args: &RmArgs) -> anyhow::Result<()> {
    let subject = args.subject.subject()?;
    match args.place.bans()? {
        Bans::Files(files) => remove_from_files(&subject, &files)?,
        #[cfg(feature = "management")]
        Bans::Broker(broker) => remote::lift(&broker, &subject)?,
    }
    writeln!(
        std::io::stderr(),
        "{} is not banned any more",
        shown(&subject)
    )?;
    Ok(())
}

fn remove_from_files(subject: &Subject, files: &BanFiles) -> anyhow::Result<()> {
    let mut is_lifted = lift(&files.listed, subject)?;
    if let Some(temporary) = &files.temporary {
        is_lifted |= lift(temporary, subject)?;
    }
    if !is_lifted {
        return Err(unknown(subject, &files.listed, &load(&files.listed)?));
    }
    Ok(())
}

/// True if it was in the file and in force.
fn lift(file: &BanFile, subject: &Subject) -> anyhow::Result<bool> {
    let now = now() / 1000;
    let lifted = file.edit(|list| {
        let ended = list.remove_ended(now);
        let is_lifted = list.remove(subject).is_some();
        (is_lifted || ended > 0, is_lifted)
    });
    lifted.map_err(failure)
}

fn unknown(subject: &Subject, file: &BanFile, list: &BanList) -> anyhow::Error {
    let path = file.path().display();
    let wider = match subject {
        Subject::Network(network) => list.find_address(network.address(), now() / 1000),
        Subject::ClientId(_)
        | Subject::Username(_)
        | Subject::ClientOfUser { .. }
        | Subject::ClientFrom { .. } => None,
    };
    let hint = wider.map_or_else(
        || "thrum bans ls lists the bans".to_owned(),
        |ban| format!("{} is: lift that", shown(&ban.subject)),
    );
    let what = format!("{} is not banned in {path}; {hint}", shown(subject));
    Failure::with_code(Failure::NOT_FOUND, what)
}
