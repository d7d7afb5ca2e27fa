//! Filters whose messages are counted: their list, their changes, and their file.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::Path;
use std::sync::{Arc, Weak};

use thrum_codec::TopicFilter;
use thrum_engine::observation::{TOPIC_METRICS_MAX, TopicMetricFigures};
use thrum_files::Folder;

use super::QueryError;
use super::sender::QuerySender;
use super::tasks::{QueuedTask, TaskProgress, TaskStatus, WorkerTask};
use crate::mailbox::Mail;
use crate::node::Node;
use crate::traffic::Traffic;

/// Name of the file in the data directory: a filter on each line.
const FILE: &str = "topic-metrics.txt";
/// Bytes of a file that is read: as many filters as there may be, each of 64 KiB.
const BYTES_MAX: u64 = TOPIC_METRICS_MAX as u64 * 65_536;

/// A filter, and what was counted for it.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicMetric {
    /// When counting began, in milliseconds of the Unix epoch: when the filter was added, or the
    /// broker started.
    pub since: u64,
    /// The counts since then.
    pub figures: TopicMetricFigures,
}

/// See [`Queries::topic_metrics`](super::Queries::topic_metrics).
pub(super) fn list(sender: &QuerySender) -> Vec<TopicMetric> {
    let node = sender.node();
    let now = node.clock.now();
    let all = node.state.topic_metrics.current();
    let figures = all.iter().map(|one| one.figures(now));
    figures
        .map(|figures| TopicMetric {
            since: node.state.wall.millis(figures.began),
            figures,
        })
        .collect()
}

/// See [`Queries::add_topic_metric`](super::Queries::add_topic_metric).
pub(super) fn add(sender: &QuerySender, filter: &str) -> Result<bool, QueryError> {
    check(filter).map_err(QueryError::Invalid)?;
    // It is listed and saved by then: a caller that goes away does not stop it half-way.
    let sender = &sender.uncancelled();
    let mut later = sender.control.topic_metrics();
    let node = sender.node();
    let metrics = &node.state.topic_metrics;
    let is_there = metrics.current().iter().any(|one| one.filter() == filter);
    if is_there {
        return Ok(false);
    }
    if !metrics.add(filter, node.workers(), node.clock.now()) {
        return Err(QueryError::TooManyTopicMetrics);
    }
    if let Err(error) = save(sender) {
        metrics.remove(filter);
        return Err(error);
    }
    if let Err(error) = sender.query_all(|| SetTopicMetrics) {
        // No worker has to count it, so that it is not listed, and can be added again.
        take_back(sender, &mut later, filter);
        if let Err(unsaved) = save(sender) {
            let error = unsaved.to_string();
            tracing::warn!(
                filter,
                error,
                "a filter that is not counted stays in {FILE}"
            );
        }
        return Err(error);
    }
    Ok(true)
}

/// See [`Queries::remove_topic_metric`](super::Queries::remove_topic_metric).
pub(super) fn remove(sender: &QuerySender, filter: &str) -> Result<bool, QueryError> {
    let sender = &sender.uncancelled();
    let mut later = sender.control.topic_metrics();
    if !sender.node().state.topic_metrics.remove(filter) {
        return Ok(false);
    }
    // It is no longer counted in any case.
    let saved = save(sender);
    let set = sender.query_all(|| SetTopicMetrics);
    set.inspect_err(|_| set_later(sender, &mut later))?;
    saved.map(|()| true)
}

/// Counts a filter no longer, which some workers count already.
fn take_back(sender: &QuerySender, under_way: &mut SettingLater, filter: &str) {
    sender.node().state.topic_metrics.remove(filter);
    set_later(sender, under_way);
}

/// The tasks of [`set_later`] under way, by worker.
pub(in crate::control) type SettingLater = Vec<Weak<()>>;

/// Makes all workers count the filters of the node as soon as they can: the tasks of a query that
/// failed are abandoned by those that have not begun. A worker with such a task under way needs no
/// other one, so that there is one for each at most.
fn set_later(sender: &QuerySender, under_way: &mut SettingLater) {
    under_way.resize(sender.node().workers(), Weak::new());
    for (worker, task) in sender.workers().zip(under_way) {
        if task.strong_count() == 0 {
            let mark = Arc::new(());
            *task = Arc::downgrade(&mark);
            let later = Box::new(SetLater { mark: Some(mark) });
            sender.node().mailbox(worker).push(Mail::Query(later));
        }
    }
}

/// The reason why a filter cannot be counted.
fn check(filter: &str) -> Result<(), String> {
    match TopicFilter::parse(filter) {
        Err(_) => Err(format!(
            "{filter:?} is no topic filter; it is like site/+/temperature or site/#"
        )),
        Ok(parsed) if parsed.shared().is_some() => Err(format!(
            "{filter:?} is the filter of a shared group; leave $share/GROUP/ out"
        )),
        Ok(_) if filter.contains(['\n', '\r']) => {
            Err("a filter that is counted is one line of a file; it has no line break".to_owned())
        }
        Ok(_) => Ok(()),
    }
}

/// Writes the filters into the data directory, if there is one.
fn save(sender: &QuerySender) -> Result<(), QueryError> {
    let data_dir = sender
        .control
        .with_config(|config| config.node.data_dir.clone());
    if data_dir.as_os_str().is_empty() {
        return Ok(());
    }
    let all = sender.node().state.topic_metrics.current();
    let written = Folder::open(&data_dir).and_then(|folder| {
        folder.replace(OsStr::new(FILE), |to| {
            for one in all.iter() {
                writeln!(to, "{}", one.filter())?;
            }
            Ok(())
        })
    });
    written.map_err(|error| {
        let path = data_dir.join(FILE);
        QueryError::NotSaved(format!("cannot write {}: {error}", path.display()))
    })
}

/// Counts the filters of the file in a data directory, before the workers begin. A file that cannot
/// be read keeps nobody from starting.
pub(crate) fn restore_topic_metrics(node: &Node, data_dir: &Path) {
    if data_dir.as_os_str().is_empty() {
        return;
    }
    let text = match read(data_dir) {
        Ok(text) => text,
        Err(error) => {
            let path = data_dir.join(FILE);
            let path = path.display();
            tracing::warn!(%path, %error, "the filters of topic metrics cannot be read: none is counted");
            return;
        }
    };
    let metrics = &node.state.topic_metrics;
    for line in text.lines().filter(|line| !line.is_empty()) {
        let taken = check(line).map(|()| metrics.add(line, node.workers(), node.clock.now()));
        match taken {
            Ok(true) => {}
            Ok(false) => tracing::warn!(
                filter = line,
                "a filter of topic metrics is there twice, or there are more than {TOPIC_METRICS_MAX}"
            ),
            Err(error) => tracing::warn!(error, "a line of {FILE} is left out"),
        }
    }
}

fn read(data_dir: &Path) -> io::Result<String> {
    let folder = Folder::open(data_dir)?;
    match folder.read(OsStr::new(FILE)) {
        Ok(file) => {
            let mut text = String::new();
            file.take(BYTES_MAX).read_to_string(&mut text)?;
            Ok(text)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error),
    }
}

/// Makes a worker count the filters of the node.
#[derive(Debug)]
struct SetTopicMetrics;

impl WorkerTask for SetTopicMetrics {
    type Answer = ();

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<()> {
        set(traffic);
        TaskProgress::Done(())
    }
}

fn set(traffic: &mut Traffic) {
    let core = &mut traffic.engine.core;
    let metrics = core.node.topic_metrics.current();
    core.observation.set_metrics(metrics);
}

/// The same without a caller.
#[derive(Debug)]
struct SetLater {
    /// Tells that the task has not begun.
    mark: Option<Arc<()>>,
}

impl QueuedTask for SetLater {
    fn is_abandoned(&self) -> bool {
        false
    }

    fn advance(&mut self, traffic: &mut Traffic) -> TaskStatus {
        // A change from here on has a task of its own.
        self.mark = None;
        set(traffic);
        TaskStatus::Done
    }
}

/// Adds a filter whose addition fails when some workers have had their turn.
#[cfg(test)]
pub(super) fn add_in_vain(sender: &QuerySender, filter: &str, turn: impl FnOnce()) {
    let node = sender.node();
    let mut later = sender.control.topic_metrics();
    let metrics = &node.state.topic_metrics;
    assert!(metrics.add(filter, node.workers(), node.clock.now()));
    let asked = sender.send(sender.workers(), || SetTopicMetrics);
    turn();
    drop(asked);
    take_back(sender, &mut later, filter);
}
