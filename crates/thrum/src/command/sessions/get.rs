//! `thrum sessions get`.

use std::io::Write as _;
use std::path::Path;

use clap::Args;
use thrum_settings::nearest;

use super::detail::Detail;
use super::row::{Row, rows};
use crate::command::Failure;
use crate::command::data_dir::DataDir;
use crate::command::shown::json_line;

/// Arguments of `thrum sessions get`.
#[derive(Debug, Args)]
pub(super) struct GetArgs {
    /// Client identifier.
    client_id: String,
    #[command(flatten)]
    data_dir: DataDir,
    /// Most deliveries that are shown.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// Shows.
pub(super) fn run(args: &GetArgs) -> anyhow::Result<()> {
    let state = args.data_dir.read()?;
    let rows = rows(&state);
    let row = find(&rows, &args.client_id, args.data_dir.path())?;
    let detail = Detail {
        row,
        state: &state,
        limit: args.limit,
    };
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", json_line(&detail.json())?)?;
    } else {
        write!(out, "{}", detail.text())?;
    }
    Ok(())
}

/// The session of that client.
pub(super) fn find<'a, 'b>(
    rows: &'b [Row<'a>],
    client_id: &str,
    data_dir: &Path,
) -> anyhow::Result<&'b Row<'a>> {
    let found = rows.iter().find(|row| &*row.session.client_id == client_id);
    found.ok_or_else(|| {
        let ids = rows.iter().map(|row| &*row.session.client_id);
        let shown = data_dir.display();
        let hint = nearest(client_id, ids).map_or_else(
            || format!("thrum sessions ls --data-dir {shown} lists them"),
            |id| format!("did you mean '{id}'?"),
        );
        Failure::with_code(
            Failure::NOT_FOUND,
            format!("no session of client '{client_id}' in {shown}; {hint}"),
        )
    })
}
