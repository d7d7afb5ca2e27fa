//! The runs that are kept: `DIR/benchmarks/ID/` with `run.json`, `samples.jsonl`, the scenario of
//! the caller and the folder that `thrum bench` made.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use thrum_files::Folder;
use thrum_management::api::{BenchmarkRunInFull, KeptSamples};
use thrum_management::{BenchmarkRefusal, OpenRunFile, ProgramError, Thing};

use super::arguments::RESULTS_FOLDER;
use super::ending::{CUT_OFF, CUT_OFF_REMEDY};
use super::identifier::{is_id, next_id};
use super::lines::ProgressLine;
use super::temporary::TemporaryFolder;
use crate::command::shown::{now, time};

/// Runs that are kept: a week of some a day. Older ones make room, unless they are baselines.
pub(super) const RUNS_MAX: usize = 50;
/// Folder in the data directory.
const FOLDER: &str = "benchmarks";
/// What is known of a run.
const RUN: &str = "run.json";
/// Its samples.
const SAMPLES: &str = "samples.jsonl";
/// Bytes of a line of them.
pub(super) const LINE_BYTES_MAX: u64 = 64 * 1024;
/// Bytes of the samples of a run, a day of seconds; later ones are in memory only.
const SAMPLES_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Mode of files.
const FILE_MODE: u32 = 0o600;

/// The files that are handed out.
pub(super) const FILES: [&str; 8] = [
    "report.html",
    "report.md",
    "result.json",
    "series.csv",
    "run.toml",
    "latency.hgrm",
    "junit.xml",
    "env.json",
];

/// The runs of a broker.
#[derive(Debug)]
pub(super) struct Store {
    /// Empty if the broker has none.
    data_dir: PathBuf,
    /// The folder of a broker without a data directory, made with its first run.
    temporary: OnceLock<TemporaryFolder>,
    /// The identifier that was given last, also if its run is gone. Held while a folder is made.
    last_id: Mutex<String>,
    /// Held while what is known of a run is read, changed and written down, or a run is removed:
    /// two changes at once would write the same file, and a file that is written meanwhile would
    /// keep a part of what is removed.
    changes: Mutex<()>,
    /// The runs that have a folder and have not begun: for everybody else they are not there. Held
    /// for moments.
    beginning: Mutex<BTreeSet<String>>,
}

/// The folder of a new run, which is removed again unless the run begins.
#[derive(Debug)]
pub(super) struct NewFolder<'a> {
    store: &'a Store,
    id: String,
    path: PathBuf,
    is_kept: bool,
}

impl NewFolder<'_> {
    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The run has begun.
    pub(super) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for NewFolder<'_> {
    fn drop(&mut self) {
        if !self.is_kept
            && let Err(error) = fs::remove_dir_all(&self.path)
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!(%error, "the folder of a benchmark that did not begin is not removed");
        }
        lock(&self.store.beginning).remove(&self.id);
    }
}

impl Store {
    /// Those in a data directory, which is empty if there is none. A run that was under way when
    /// the broker ended has failed.
    pub(super) fn open(data_dir: &Path) -> Self {
        let store = Self {
            data_dir: data_dir.to_owned(),
            temporary: OnceLock::new(),
            last_id: Mutex::default(),
            changes: Mutex::default(),
            beginning: Mutex::default(),
        };
        store.remove_unfinished();
        for mut run in store.list() {
            let is_open = matches!(run.run.state.as_str(), "preparing" | "running");
            if !is_open {
                continue;
            }
            cut_off(&mut run);
            if let Err(error) = store.write(&run) {
                tracing::warn!(%error, run = run.run.id, "the end of a benchmark is not written down");
            }
        }
        store
    }

    /// All of them, the newest first; what cannot be read is left out.
    pub(super) fn list(&self) -> Vec<BenchmarkRunInFull> {
        let Some(folder) = self.existing() else {
            return Vec::new();
        };
        let mut ids = ids_in(&folder);
        let beginning = lock(&self.beginning).clone();
        ids.retain(|id| !beginning.contains(id) && folder.join(id).join(RUN).is_file());
        ids.sort_unstable_by(|one, other| other.cmp(one));
        ids.truncate(2 * RUNS_MAX);
        ids.iter().filter_map(|id| self.read(id).ok()).collect()
    }

    /// Removes the folders of runs that another life of the broker did not get to begin.
    fn remove_unfinished(&self) {
        let Some(folder) = self.existing() else {
            return;
        };
        for id in ids_in(&folder) {
            let path = folder.join(id);
            if path.join(RUN).exists() {
                continue;
            }
            if let Err(error) = fs::remove_dir_all(&path) {
                tracing::warn!(%error, path = %path.display(), "the folder of a benchmark that did not begin is not removed");
            }
        }
    }

    /// A run.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub(super) fn read(&self, id: &str) -> Result<BenchmarkRunInFull, ProgramError> {
        let folder = self.folder_of(id)?;
        let text = fs::read_to_string(folder.join(RUN)).map_err(|error| missing_or(&error, id))?;
        let mut run: BenchmarkRunInFull = serde_json::from_str(&text)
            .map_err(|error| ProgramError::Io(format!("{RUN} of the run {id}: {error}")))?;
        run.run.files = self.files(id);
        Ok(run)
    }

    /// The files of a run that can be handed out.
    pub(super) fn files(&self, id: &str) -> Vec<String> {
        let Ok(folder) = self.folder_of(id) else {
            return Vec::new();
        };
        let has = |name: &&&str| result_file(&folder, name).is_some();
        let names = FILES.iter().filter(has);
        names.map(|name| (*name).to_owned()).collect()
    }

    /// Makes the folder of a new run, and gives it its identifier and its beginning.
    ///
    /// # Errors
    /// The file system refuses, or all runs that are kept are baselines. Nothing is left then.
    pub(super) fn create(
        &self,
        run: &mut BenchmarkRunInFull,
    ) -> Result<NewFolder<'_>, ProgramError> {
        self.surplus(1, None)?;
        let parent = self.folder()?;
        let began = now();
        run.run.began_at = time(began);
        let mut last = lock(&self.last_id);
        let newest = self.list().first().map(|run| run.run.id.clone());
        let id = next_id(began, newest.unwrap_or_default().max(last.clone()));
        lock(&self.beginning).insert(id.clone());
        let folder = NewFolder {
            store: self,
            path: parent.path().join(&id),
            id: id.clone(),
            is_kept: false,
        };
        let made = parent.open_or_create_directory(&id);
        made.map_err(|error| failed(&error))?;
        last.clone_from(&id);
        run.run.id = id;
        self.write(run)?;
        Ok(folder)
    }

    /// Removes the oldest runs that are too many, once a new one has begun, which stays: all others
    /// may have become baselines meanwhile.
    pub(super) fn make_room(&self, begun: &str) {
        let oldest = self.surplus(0, Some(begun)).unwrap_or_default();
        for id in oldest {
            if let Err(error) = self.remove(&id) {
                tracing::warn!(%error, run = id, "an old benchmark is not removed");
            }
        }
    }

    /// Writes down what is known of a run.
    ///
    /// # Errors
    /// The file system refuses.
    pub(super) fn write(&self, run: &BenchmarkRunInFull) -> Result<(), ProgramError> {
        let _held = lock(&self.changes);
        self.replace(run)
    }

    /// Changes a run that nobody watches.
    ///
    /// # Errors
    /// There is none, or the file system refuses.
    pub(super) fn change(
        &self,
        id: &str,
        change: impl FnOnce(&mut BenchmarkRunInFull),
    ) -> Result<(), ProgramError> {
        let _held = lock(&self.changes);
        let mut run = self.read(id)?;
        change(&mut run);
        self.replace(&run)
    }

    /// Replaces the file of a run as a whole.
    fn replace(&self, run: &BenchmarkRunInFull) -> Result<(), ProgramError> {
        let id = &run.run.id;
        let folder = self.folder_of(id)?;
        let text = serde_json::to_vec(run).map_err(|error| ProgramError::Io(error.to_string()))?;
        let part = folder.join(format!("{RUN}.part"));
        let written = create(&part).and_then(|mut file| {
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&part, folder.join(RUN))
        });
        written.map_err(|error| missing_or(&error, id))
    }

    /// Removes a run with its files.
    ///
    /// # Errors
    /// There is none, or the file system refuses.
    pub(super) fn remove(&self, id: &str) -> Result<(), ProgramError> {
        let folder = self.folder_of(id)?;
        if lock(&self.beginning).contains(id) {
            return Err(missing(id));
        }
        let _held = lock(&self.changes);
        fs::remove_dir_all(folder).map_err(|error| missing_or(&error, id))
    }

    /// The samples of a run.
    ///
    /// # Errors
    /// They cannot be read.
    pub(super) fn samples(&self, id: &str) -> Result<KeptSamples, ProgramError> {
        let mut kept = KeptSamples::default();
        let file = match File::open(self.folder_of(id)?.join(SAMPLES)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(kept),
            opened => opened.map_err(|error| failed(&error))?,
        };
        for line in BufReader::new(file.take(SAMPLES_BYTES_MAX)).lines() {
            let line = line.map_err(|error| failed(&error))?;
            // The last one may be half a line.
            if let Ok(ProgressLine::Sample(sample)) = serde_json::from_str(&line) {
                kept.push(*sample);
            }
        }
        kept.finish();
        Ok(kept)
    }

    /// Opens a file of a run.
    ///
    /// # Errors
    /// It is not there, or cannot be opened.
    pub(super) fn open_file(&self, id: &str, name: &str) -> Result<OpenRunFile, ProgramError> {
        let folder = self.folder_of(id)?;
        if !folder.join(RUN).is_file() {
            return Err(missing(id));
        }
        let is_known = FILES.contains(&name);
        let path = result_file(&folder, name).filter(|_| is_known);
        let path = path.ok_or_else(|| ProgramError::Missing {
            what: Thing::FileOfRun,
            name: name.to_owned(),
        })?;
        let opened = File::open(path).and_then(|file| {
            let bytes = file.metadata()?.len();
            Ok(OpenRunFile { file, bytes })
        });
        opened.map_err(|error| failed(&error))
    }

    /// The folder of a run with its `result.json`, as it is called in that of all runs.
    pub(super) fn results_of(&self, id: &str) -> Option<String> {
        let file = result_file(&self.folder_of(id).ok()?, "result.json")?;
        let name = file.parent()?.file_name()?.to_str()?;
        Some(format!("{id}/{RESULTS_FOLDER}/{name}"))
    }

    /// The folder of all runs.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn path(&self) -> Result<PathBuf, ProgramError> {
        Ok(self.folder()?.path().to_owned())
    }

    /// The oldest runs, so many as are too many with some more; one that stays is not among them.
    ///
    /// # Errors
    /// They are baselines.
    fn surplus(&self, more: usize, stays: Option<&str>) -> Result<Vec<String>, ProgramError> {
        let runs = self.list();
        let surplus = (runs.len() + more).saturating_sub(RUNS_MAX);
        let may_go = |run: &BenchmarkRunInFull| {
            !run.run.baseline && stays.is_none_or(|stays| run.run.id != stays)
        };
        let others = runs.into_iter().rev().filter(may_go);
        let oldest: Vec<String> = others.take(surplus).map(|run| run.run.id).collect();
        if oldest.len() < surplus {
            return Err(ProgramError::Benchmark {
                refusal: BenchmarkRefusal::AllBaselines,
                why: format!("all {RUNS_MAX} runs that are kept are baselines"),
            });
        }
        Ok(oldest)
    }

    fn folder(&self) -> Result<Folder, ProgramError> {
        let made = if self.data_dir.as_os_str().is_empty() {
            self.temporary_folder().and_then(Folder::open)
        } else {
            let opened = Folder::open(&self.data_dir);
            opened.and_then(|folder| folder.open_or_create_directory(FOLDER))
        };
        made.map_err(|error| failed(&error))
    }

    fn temporary_folder(&self) -> io::Result<&Path> {
        if self.temporary.get().is_none() {
            // Another thread may have been faster, and this one is removed again.
            self.temporary.set(TemporaryFolder::create()?).ok();
        }
        let made = self.temporary.get().map(TemporaryFolder::path);
        made.ok_or_else(|| io::Error::from(ErrorKind::NotFound))
    }

    /// The folder of all runs, if there is one.
    fn existing(&self) -> Option<PathBuf> {
        if self.data_dir.as_os_str().is_empty() {
            return self.temporary.get().map(|of| of.path().to_owned());
        }
        let path = self.data_dir.join(FOLDER);
        path.is_dir().then_some(path)
    }

    fn folder_of(&self, id: &str) -> Result<PathBuf, ProgramError> {
        let parent = self.existing().filter(|_| is_id(id));
        parent
            .map(|parent| parent.join(id))
            .ok_or_else(|| missing(id))
    }
}

/// Writes samples down as they come.
#[derive(Debug)]
pub(super) struct SampleFile {
    file: Option<File>,
    left: u64,
}

impl SampleFile {
    /// In the folder of a run.
    pub(super) fn create(folder: &Path) -> Self {
        let file = create(&folder.join(SAMPLES));
        if let Err(error) = &file {
            tracing::warn!(%error, "the samples of a benchmark are not written down");
        }
        Self {
            file: file.ok(),
            left: SAMPLES_BYTES_MAX,
        }
    }

    /// Adds a line with its end. One that cannot be written ends the file: memory has all of them.
    pub(super) fn add(&mut self, line: &[u8]) {
        let len = line.len() as u64;
        let Some(file) = &mut self.file else { return };
        let written = if len > self.left {
            Err(io::Error::other(format!(
                "they have {SAMPLES_BYTES_MAX} bytes already"
            )))
        } else {
            file.write_all(line)
        };
        match written {
            Ok(()) => self.left -= len,
            Err(error) => {
                tracing::warn!(%error, "further samples of a benchmark are not written down");
                self.file = None;
            }
        }
    }
}

/// Marks a run that nobody watches any longer.
pub(super) fn cut_off(run: &mut BenchmarkRunInFull) {
    "failed".clone_into(&mut run.run.state);
    run.run.stage = None;
    run.run.ended_at = Some(time(now()));
    run.run.error = Some(CUT_OFF.to_owned());
    run.run.remedy = Some(CUT_OFF_REMEDY.to_owned());
}

/// Makes or empties a file.
pub(super) fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(FILE_MODE);
    options.open(path)
}

/// A file of the one folder that `thrum bench` has made for a run.
fn result_file(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder.join(RESULTS_FOLDER)).ok()?;
    let files = entries.flatten().map(|entry| entry.path().join(name));
    files.take(2).find(|path| path.is_file())
}

/// The folders of runs, also of those that did not begin.
fn ids_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| is_id(name)).collect()
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn missing(id: &str) -> ProgramError {
    ProgramError::Missing {
        what: Thing::BenchmarkRun,
        name: id.chars().take(64).collect(),
    }
}

fn missing_or(error: &io::Error, id: &str) -> ProgramError {
    if error.kind() == ErrorKind::NotFound {
        return missing(id);
    }
    failed(error)
}

pub(super) fn failed(error: &io::Error) -> ProgramError {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            ProgramError::NoRoom(error.to_string())
        }
        _ => ProgramError::Io(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_memory() -> Store {
        Store::open(Path::new(""))
    }

    fn add(store: &Store, state: &str) -> String {
        let mut run = BenchmarkRunInFull::default();
        run.run.state = state.to_owned();
        store.create(&mut run).unwrap().keep();
        store.make_room(&run.run.id);
        run.run.id
    }

    #[test]
    fn a_run_is_kept_with_its_files_and_removed_with_them() {
        let store = in_memory();
        assert!(store.list().is_empty());
        let id = add(&store, "done");
        let results = store.path().unwrap().join(&id).join("results/one");
        fs::create_dir_all(&results).unwrap();
        fs::write(results.join("report.md"), "# x").unwrap();
        let run = store.read(&id).unwrap();
        assert_eq!(
            (run.run.files, run.run.state.as_str()),
            (vec!["report.md".to_owned()], "done")
        );
        assert_eq!(store.open_file(&id, "report.md").unwrap().bytes, 3);
        for name in ["series.csv", "../../run.json", "run.json"] {
            assert!(
                matches!(
                    store.open_file(&id, name),
                    Err(ProgramError::Missing { .. })
                ),
                "{name}"
            );
        }
        store.remove(&id).unwrap();
        assert!(matches!(store.read(&id), Err(ProgramError::Missing { .. })));
        let folder = store.path().unwrap();
        drop(store);
        assert!(!folder.exists());
    }

    #[test]
    fn an_identifier_is_never_a_path() {
        let store = in_memory();
        add(&store, "done");
        for id in [
            "..",
            "",
            "20261126T221500Z-0/",
            "20261126T221500Z-0.",
            "/etc",
        ] {
            assert!(
                matches!(store.remove(id), Err(ProgramError::Missing { .. })),
                "{id}"
            );
        }
    }

    #[test]
    fn old_runs_make_room_and_baselines_stay() {
        let store = in_memory();
        let first = add(&store, "done");
        let mut run = store.read(&first).unwrap();
        run.run.baseline = true;
        store.write(&run).unwrap();
        let second = add(&store, "done");
        for _ in 2..=RUNS_MAX {
            add(&store, "done");
        }
        let ids: Vec<String> = store.list().into_iter().map(|run| run.run.id).collect();
        assert_eq!(ids.len(), RUNS_MAX);
        assert!(ids.contains(&first) && !ids.contains(&second));
        assert!(ids.windows(2).all(|pair| pair[0] > pair[1]));
    }

    #[test]
    fn there_is_no_room_for_a_run_beside_baselines_alone() {
        let store = in_memory();
        for _ in 0..RUNS_MAX {
            let id = add(&store, "done");
            store.change(&id, |run| run.run.baseline = true).unwrap();
        }
        let refused = store.create(&mut BenchmarkRunInFull::default());
        let refusal = BenchmarkRefusal::AllBaselines;
        assert!(
            matches!(refused, Err(ProgramError::Benchmark { refusal: of, .. }) if of == refusal)
        );
        assert_eq!(ids_in(&store.path().unwrap()).len(), RUNS_MAX);
    }

    #[test]
    fn a_run_that_does_not_begin_leaves_nothing_and_removes_nothing() {
        let store = in_memory();
        let kept: Vec<String> = (0..RUNS_MAX).map(|_| add(&store, "done")).collect();
        let mut run = BenchmarkRunInFull::default();
        let folder = store.create(&mut run).unwrap();
        let path = folder.path().to_owned();
        assert!(path.is_dir());
        drop(folder);
        assert!(!path.exists());
        assert_eq!(store.list().len(), kept.len());
        assert!(store.read(&kept[0]).is_ok(), "the oldest one stays");
    }

    #[test]
    fn folders_of_runs_that_did_not_begin_hide_no_run_and_go_with_the_next_start() {
        let folder = std::env::temp_dir().join(format!("thrum-unfinished-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let store = Store::open(&folder);
        let id = add(&store, "done");
        let runs = store.path().unwrap();
        let unfinished = (0..4 * RUNS_MAX).map(|number| format!("99991231T{number:06}Z-00"));
        let unfinished: Vec<PathBuf> = unfinished.map(|id| runs.join(id)).collect();
        for path in &unfinished {
            fs::create_dir(path).unwrap();
        }
        let ids = |store: &Store| -> Vec<String> {
            store.list().into_iter().map(|run| run.run.id).collect()
        };
        assert_eq!(ids(&store), [id.as_str()]);
        drop(store);
        let store = Store::open(&folder);
        assert_eq!(ids(&store), [id.as_str()]);
        assert!(unfinished.iter().all(|path| !path.exists()));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn changes_at_the_same_time_are_all_made() {
        let store = in_memory();
        let id = add(&store, "done");
        let add_some = || {
            let adds = (0..20).map(|_| store.change(&id, |run| run.run.clients += 1));
            adds.for_each(Result::unwrap);
        };
        std::thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(add_some))));
        assert_eq!(store.read(&id).unwrap().run.clients, 160);
    }

    #[test]
    fn a_run_is_removed_when_nobody_writes_its_file() {
        let store = in_memory();
        let id = add(&store, "done");
        let held = lock(&store.changes);
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let remove = || done.send(store.remove(&id));
            scope.spawn(remove);
            let early = is_done.recv_timeout(std::time::Duration::from_millis(100));
            drop(held);
            assert!(early.is_err(), "a file is written meanwhile");
        });
        is_done.recv().unwrap().unwrap();
    }

    #[test]
    fn a_run_that_was_cut_off_has_failed_at_the_next_start() {
        let folder = std::env::temp_dir().join(format!("thrum-cut-off-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let store = Store::open(&folder);
        let (running, done) = (add(&store, "running"), add(&store, "done"));
        drop(store);
        let store = Store::open(&folder);
        let run = store.read(&running).unwrap().run;
        assert_eq!(
            (run.state.as_str(), run.error.as_deref()),
            ("failed", Some(CUT_OFF))
        );
        assert_eq!(store.read(&done).unwrap().run.state, "done");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn samples_are_read_up_to_a_line_that_was_cut_off() {
        let store = in_memory();
        let id = add(&store, "running");
        let mut file = SampleFile::create(&store.path().unwrap().join(&id));
        let sample = thrum_management::api::BenchmarkSample {
            n: 1,
            ..Default::default()
        };
        let mut line = serde_json::to_value(&sample).unwrap();
        line["type"] = "sample".into();
        file.add(format!("{line}\n").as_bytes());
        file.add(b"{\"type\":\"sam");
        let samples = store.samples(&id).unwrap();
        assert_eq!(samples.after(0, 10), [sample]);
    }
}
