//! `thrum context add`.

use std::io::{BufRead as _, Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;

use super::store::{self, Context, Contexts, parse_name, token_file, write_text};
use crate::command::Failure;
use crate::command::running::Url;

/// Bytes of standard input that are read for a key.
const TOKEN_BYTES_MAX: u64 = 4096;

/// Arguments of `thrum context add`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(super) struct AddArgs {
    /// Name for the broker.
    #[arg(value_parser = parse_name)]
    name: String,
    /// URL of the broker's HTTP port, such as `https://broker.example:8080`.
    #[arg(long, value_name = "URL", value_parser = Url::parse,
          required_unless_present = "data_dir", conflicts_with = "data_dir")]
    url: Option<Url>,
    /// Data directory of a broker of this machine, in place of a URL.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// File with the API key; it is read with each command, and stays where it is.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["token_stdin", "data_dir"])]
    token_file: Option<PathBuf>,
    /// Read the API key from standard input and store it in a file of its own.
    #[arg(long, conflicts_with = "data_dir")]
    token_stdin: bool,
    /// Certificates in PEM of the authorities that may have signed the broker's.
    #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
    cafile: Option<PathBuf>,
    /// Name that the broker's certificate must contain [default: the host].
    #[arg(long, value_name = "NAME", conflicts_with = "data_dir")]
    server_name: Option<String>,
    /// Accept any certificate: encrypted, but the broker is not verified.
    #[arg(long, conflicts_with_all = ["cafile", "data_dir"])]
    insecure: bool,
    /// Ask this broker from now on.
    #[arg(long = "use")]
    is_current: bool,
    /// Replace an existing context of this name.
    #[arg(long)]
    force: bool,
}

/// Adds.
pub(super) fn run(args: &AddArgs) -> anyhow::Result<()> {
    let folder = store::own_folder()?;
    let mut contexts = Contexts::read_from(&folder)?;
    let name = &args.name;
    if contexts.contexts.contains_key(name) && !args.force {
        return Err(Failure::with_code(
            Failure::CONFLICT,
            format!("there is a context '{name}' already; --force replaces it"),
        ));
    }
    let token = if args.token_stdin {
        Some(store_token(&folder, name)?)
    } else {
        args.token_file.as_deref().map(checked_token).transpose()?
    };
    let absolute = |path: &Option<PathBuf>| path.as_deref().map(std::path::absolute).transpose();
    let context = Context {
        url: args.url.as_ref().map(ToString::to_string),
        data_dir: absolute(&args.data_dir)?,
        token_file: token,
        ca_file: absolute(&args.cafile)?,
        server_name: args.server_name.clone(),
        insecure: args.insecure,
    };
    let token = context.token_file.clone();
    contexts.contexts.insert(name.clone(), context);
    if args.is_current {
        contexts.current = Some(name.clone());
    }
    contexts.write_to(&folder)?;
    // The one of the context that it replaces.
    store::remove_token(&folder, name, token.as_deref())?;
    let hint = if args.is_current {
        "commands ask it from now on".to_owned()
    } else {
        format!("thrum context use {name} makes it the one that commands ask")
    };
    writeln!(std::io::stderr(), "{name} is noted; {hint}")?;
    Ok(())
}

/// The absolute path of a file with a key.
fn checked_token(path: &Path) -> anyhow::Result<PathBuf> {
    store::read_token(path)?;
    Ok(std::path::absolute(path)?)
}

fn store_token(folder: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let mut line = String::new();
    let stdin = std::io::stdin().lock();
    stdin.take(TOKEN_BYTES_MAX).read_line(&mut line)?;
    let token = store::token("standard input", line.trim_end())?;
    let file = token_file(name);
    write_text(folder, &file, token.expose_str().unwrap_or_default())?;
    Ok(folder.join(file))
}
