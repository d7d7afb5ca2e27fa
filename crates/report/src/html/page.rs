//! One run as one page.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

use super::comparison::ComparisonTable;
use super::embed::embed;
use super::view::View;
use crate::result::RunResult;
use crate::svg::POINTS_MAX;

/// Largest page for any length of run: small enough for a mail and a chat.
pub const PAGE_BYTES_MAX: usize = 400 * 1024;

/// Room that is kept for the figures as JSON before charts get more points.
const JSON_BYTES_KEPT: usize = 32 * 1024;

/// Points per line to try, until the page is small enough.
const POINTS: [usize; 5] = [POINTS_MAX, 800, 500, 250, 100];

/// The default template.
pub const TEMPLATE: &str = include_str!("report.html.j2");

/// The parts of a page besides its run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageOptions {
    /// The comparison with other runs.
    pub comparison: Option<ComparisonTable>,
    /// The text that the button copies; no button if it is empty.
    pub markdown: String,
    /// Text of another template than [`TEMPLATE`], in the language of Jinja.
    pub template: Option<String>,
}

/// Why a page cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The template is wrong.
    #[error(
        "the report template does not work: {reason}; the variables are listed in docs/guide/report-template.md"
    )]
    Template {
        /// The error and its line.
        reason: String,
    },
}

/// Draws the page of a run. The same run gives the same bytes.
///
/// # Errors
///
/// If the template of the options does not parse, or uses what does not exist.
pub fn page(result: &RunResult, options: &PageOptions) -> Result<String, PageError> {
    let source = options.template.as_deref().unwrap_or(TEMPLATE);
    let mut view = View::new(result, options);
    let mut bytes = PAGE_BYTES_MAX;
    for points_max in POINTS {
        view.draw(result, points_max);
        bytes = render(source, &view)?.len();
        if bytes + JSON_BYTES_KEPT <= PAGE_BYTES_MAX {
            break;
        }
    }
    view.json = embed(result, PAGE_BYTES_MAX.saturating_sub(bytes));
    render(source, &view)
}

/// Renders a template; text that is not marked as markup is escaped.
pub(super) fn render(source: &str, view: &impl Serialize) -> Result<String, PageError> {
    let failed = |error: minijinja::Error| PageError::Template {
        reason: error.to_string(),
    };
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build();
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(syntax.map_err(failed)?);
    environment
        .render_named_str("report.html", source, Serde(view))
        .map_err(failed)
}
