//! Results: printing, storing, and the reports made from them.

use std::fs;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use thrum_report::compare::Comparison;
use thrum_report::compat::Compat;
use thrum_report::folder::{self, Files, RunFolder};
use thrum_report::html::{self, ComparisonTable, PageOptions};
use thrum_report::{RunResult, Style, junit, markdown, png, summary_styled, window};

use super::complaint::Complaint;
use super::engine::Finished;
use super::folders::Kept;

/// The summary of a run, with its baseline if there is one.
pub(super) fn summary(finished: &Finished, baseline: Option<&Kept>) -> String {
    let comparison = baseline.map(|kept| compared(kept, &finished.result));
    summary_styled(&finished.result, comparison.as_ref(), style())
}

fn compared(baseline: &Kept, run: &RunResult) -> Comparison {
    Comparison::new(
        std::slice::from_ref(&baseline.result),
        std::slice::from_ref(run),
    )
}

/// Colour only on a terminal, and without `NO_COLOR`.
pub(super) fn style() -> Style {
    let is_unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    Style {
        colour: std::io::stdout().is_terminal() && !is_unwanted,
    }
}

/// Where a run is stored, and what is stored with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// The folder of its folder.
    pub(super) parent: &'a Path,
    /// The run that it is compared with.
    pub(super) baseline: Option<&'a Kept>,
    /// Template of the page.
    pub(super) template: Option<&'a Path>,
    /// The figures of another tool.
    pub(super) compat: Option<&'a Compat>,
}

impl<'a> Place<'a> {
    /// With nothing but the run.
    pub(super) const fn under(parent: &'a Path) -> Self {
        Self {
            parent,
            baseline: None,
            template: None,
            compat: None,
        }
    }
}

/// Stores a run in a new folder.
pub(super) fn keep(finished: &Finished, place: &Place<'_>) -> anyhow::Result<PathBuf> {
    let result = &finished.result;
    let folder = RunFolder::create(place.parent, &result.started, &result.scenario.name)?;
    let page = page(result, place.baseline, place.template)?;
    let files = Files {
        html: Some(&page),
        hlog: finished.latency_log.as_deref(),
        compat: place.compat,
    };
    folder.write(result, &files)?;
    if let Some(error) = &finished.log_error {
        bail!("cannot write the histograms of every second: {error}");
    }
    Ok(folder.path().to_owned())
}

fn page(
    result: &RunResult,
    baseline: Option<&Kept>,
    template: Option<&Path>,
) -> anyhow::Result<String> {
    let template = template.map(|path| {
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
    });
    let options = PageOptions {
        comparison: baseline
            .map(|kept| ComparisonTable::new(&compared(kept, result), &kept.name())),
        markdown: markdown(result),
        template: template.transpose()?,
    };
    html::page(result, &options).map_err(|error| Complaint::usage(error).into())
}

/// A form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Html,
    Markdown,
    Png,
    Junit,
}

/// The requested reports of `thrum bench report`.
#[derive(Clone, Debug)]
pub(super) struct Forms<'a> {
    pub(super) asked: Vec<Form>,
    /// Of report.html.
    pub(super) template: Option<&'a Path>,
    /// Part of the hold.
    pub(super) window: Option<(std::time::Duration, std::time::Duration)>,
}

/// Name and content of each requested report.
pub(super) fn reports(kept: &Kept, forms: &Forms<'_>) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let (result, suffix) = match forms.window {
        None => (kept.result.clone(), String::new()),
        Some((from, to)) => (
            cut(kept, from.as_secs_f64(), to.as_secs_f64())?,
            format!("-{}s-{}s", from.as_secs(), to.as_secs()),
        ),
    };
    let mut reports = Vec::new();
    for form in &forms.asked {
        let (name, content) = match form {
            Form::Html => ("report", page(&result, None, forms.template)?.into_bytes()),
            Form::Markdown => ("report", markdown(&result).into_bytes()),
            Form::Png => ("report", png::report(&result).map_err(Complaint::usage)?),
            Form::Junit => ("junit", junit(std::slice::from_ref(&result)).into_bytes()),
        };
        let ending = match form {
            Form::Html => "html",
            Form::Markdown => "md",
            Form::Png => "png",
            Form::Junit => "xml",
        };
        reports.push((format!("{name}{suffix}.{ending}"), content));
    }
    Ok(reports)
}

/// A part of the hold; its times count from the start of the hold.
fn cut(kept: &Kept, from: f64, to: f64) -> anyhow::Result<RunResult> {
    let log = folder::read_hlog(&kept.folder).map_err(Complaint::usage)?;
    let log = log.ok_or_else(|| {
        Complaint::usage(format!(
            "{} has no latency.hlog to cut from",
            kept.folder.display()
        ))
    })?;
    let hold = kept
        .result
        .series
        .iter()
        .find(|second| second.stage == thrum_report::result::Stage::Hold);
    let start = hold.map_or(0.0, |second| second.at);
    Ok(window::run(&kept.result, &log, start + from, start + to).map_err(Complaint::usage)?)
}
