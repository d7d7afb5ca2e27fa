//! The variables of the template: text and finished drawings, no figures to compute with.

use serde::Serialize;

use super::charts::charts;
use super::comparison::ComparisonTable;
use super::disclosure::{Section, disclosure, health, mark_rows};
use super::embed::Embedded;
use super::page::PageOptions;
use super::words::{self, Badge, ErrorRow, ThresholdRow, Tile};
use crate::latencies::{self, LatencyTable};
use crate::result::RunResult;
use crate::svg::{Palette, STYLE};

/// Longest Markdown text of the copy button.
const MARKDOWN_BYTES_MAX: usize = 32 * 1024;

/// Longest form of a markup character after escaping.
const ESCAPED_BYTES: usize = 6;

/// Longest heading in bytes, escaped.
pub(super) const NAME_MAX: usize = 120;

/// The variables of the template; docs/guide/report-template.md describes them.
#[derive(Debug, Serialize)]
pub(super) struct View {
    title: String,
    subtitle: String,
    badges: Vec<Badge>,
    summary: String,
    faults: Vec<String>,
    validity_limits: Vec<Advice>,
    thresholds: Vec<ThresholdRow>,
    tiles: Vec<Tile>,
    latencies: LatencyTable,
    charts: Vec<ChartView>,
    marks: Vec<(String, String)>,
    errors: Vec<ErrorRow>,
    errors_omitted: usize,
    comparison: Option<ComparisonTable>,
    health: Section,
    disclosure: Vec<Section>,
    pub(super) json: Embedded,
    markdown: String,
    style: String,
    script: &'static str,
}

#[derive(Debug, Serialize)]
struct ChartView {
    id: &'static str,
    title: String,
    caption: String,
    svg: String,
    /// Whether it stands at the top.
    main: bool,
    /// Whether what it shows may be the generator's.
    void: bool,
}

#[derive(Debug, Serialize)]
struct Advice {
    limit: String,
    advice: String,
}

impl View {
    /// Everything but the charts and the JSON, which depend on the room that is left.
    pub(super) fn new(result: &RunResult, options: &PageOptions) -> Self {
        let limits = result
            .validity
            .limits
            .iter()
            .enumerate()
            .take(20)
            .map(|(index, limit)| Advice {
                limit: brief(limit, NAME_MAX * 2),
                advice: result
                    .validity
                    .advice
                    .get(index)
                    .map_or_else(String::new, |text| brief(text, NAME_MAX * 2)),
            });
        let (errors, errors_omitted) = words::errors(result);
        Self {
            title: brief(&result.scenario.name, NAME_MAX),
            subtitle: words::subtitle(result),
            badges: words::badges(result),
            summary: words::paragraph(result),
            faults: result
                .verdict
                .faults
                .iter()
                .take(20)
                .map(|fault| brief(fault, NAME_MAX * 2))
                .collect(),
            validity_limits: limits.collect(),
            thresholds: words::thresholds(result),
            tiles: words::tiles(result),
            latencies: bounded(latencies::table(result)),
            charts: Vec::new(),
            marks: mark_rows(result),
            errors,
            errors_omitted,
            comparison: options.comparison.as_ref().map(ComparisonTable::bounded),
            health: health(result),
            disclosure: disclosure(result),
            json: Embedded::default(),
            markdown: cut(&options.markdown, MARKDOWN_BYTES_MAX),
            style: style(),
            script: include_str!("report.js"),
        }
    }

    /// Draws the charts with this many points per line.
    pub(super) fn draw(&mut self, result: &RunResult, points_max: usize) {
        let mut charts = charts(result, points_max);
        charts.sort_by_key(|chart| chart.main_place(result).unwrap_or(usize::MAX));
        let views = charts.into_iter().map(|chart| ChartView {
            main: chart.main_place(result).is_some(),
            void: chart.is_void,
            id: chart.id,
            title: chart.drawing.title.clone(),
            caption: chart.caption,
            svg: chart.drawing.inline(),
        });
        self.charts = views.collect();
    }
}

/// The table with its notes within the limits of a page.
fn bounded(mut table: LatencyTable) -> LatencyTable {
    for note in &mut table.notes {
        *note = brief(note, NAME_MAX * 2);
    }
    table
}

/// The style sheet of a page: light and dark, screen and paper.
pub(super) fn style() -> String {
    let light = Palette::LIGHT.declarations();
    let dark = Palette::DARK.declarations();
    format!(
        ":root{{color-scheme:light dark;{light}}}\
         @media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n{STYLE}{}",
        include_str!("report.css")
    )
}

/// A text of one line of at most this many bytes when escaped, then an ellipsis.
pub(super) fn brief(text: &str, bytes_max: usize) -> String {
    match fitting(text, bytes_max) {
        short if short.len() == text.len() => short.to_owned(),
        short => format!("{short}…"),
    }
}

/// A text of at most this many bytes when escaped, with a note of what was cut off.
pub(super) fn cut(text: &str, bytes_max: usize) -> String {
    match fitting(text, bytes_max) {
        short if short.len() == text.len() => short.to_owned(),
        short => format!("{short}\n… cut off here: {} bytes in all", text.len()),
    }
}

/// The beginning of a text, at most this many bytes when escaped.
fn fitting(text: &str, bytes_max: usize) -> &str {
    let mut used = 0;
    for (at, character) in text.char_indices() {
        used += match character {
            '<' | '>' | '&' | '"' | '\'' | '/' => ESCAPED_BYTES,
            other => other.len_utf8(),
        };
        if used > bytes_max {
            return &text[..at];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_by_its_escaped_size_with_a_note() {
        assert_eq!(cut("name = 1", 100), "name = 1");
        let text = cut(&"<".repeat(1_000), 600);
        assert!(text.starts_with(&"<".repeat(100)) && !text.starts_with(&"<".repeat(101)));
        assert!(text.ends_with("1000 bytes in all"));
    }
}
