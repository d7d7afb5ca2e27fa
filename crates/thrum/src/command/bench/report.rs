//! `thrum bench report`.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::results::{Form, Forms};
use super::{folders, session, values};

const EXAMPLES: &str = "\
Examples:
  thrum bench report latest --md                             report.md in the run's folder
  thrum bench report latest --html --png --junit
  thrum bench report latest --html --window 10s..30s         only a part of the hold";

/// Arguments of `thrum bench report`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct ReportArgs {
    /// The run: its folder, its name or `latest`.
    #[arg(value_name = "RUN")]
    run: String,
    /// Write report.html, one self-contained file [the default].
    #[arg(long)]
    html: bool,
    /// Write report.md.
    #[arg(long)]
    md: bool,
    /// Write report.png.
    #[arg(long)]
    png: bool,
    /// Write junit.xml.
    #[arg(long)]
    junit: bool,
    /// Template of report.html instead of the built-in one.
    #[arg(long, value_name = "FILE")]
    template: Option<PathBuf>,
    /// Only this part of the hold.
    #[arg(long, value_name = "FROM..TO", value_parser = values::window)]
    window: Option<(Duration, Duration)>,
    /// Folder of the run folders.
    #[arg(long, value_name = "DIR", default_value = folders::RUNS)]
    out: PathBuf,
}

/// Writes the reports.
pub(super) fn run(args: &ReportArgs) -> anyhow::Result<u8> {
    let kept = folders::find(&args.run, &args.out)?;
    let forms = Forms {
        asked: args.forms(),
        template: args.template.as_deref(),
        window: args.window,
    };
    let mut out = std::io::stdout().lock();
    for path in session::write_forms(&kept, &forms)? {
        writeln!(out, "{}", path.display())?;
    }
    Ok(0)
}

impl ReportArgs {
    /// The requested reports; HTML by default.
    fn forms(&self) -> Vec<Form> {
        let asked = [
            (self.html, Form::Html),
            (self.md, Form::Markdown),
            (self.png, Form::Png),
            (self.junit, Form::Junit),
        ];
        let forms = asked.into_iter().filter(|(is_asked, _)| *is_asked);
        let forms: Vec<Form> = forms.map(|(_, form)| form).collect();
        if forms.is_empty() {
            vec![Form::Html]
        } else {
            forms
        }
    }
}
