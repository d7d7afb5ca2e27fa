//! What the system tells about this process: its CPU time, memory and open files.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

/// This process at one moment. A figure that the system does not tell is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessFigures {
    /// CPU time of all its threads, in milliseconds.
    pub cpu_millis: Option<u64>,
    /// Resident memory in bytes.
    pub resident_bytes: Option<u64>,
    /// Address space in bytes.
    pub virtual_bytes: Option<u64>,
    /// Open files, sockets among them.
    pub open_files: Option<u64>,
    /// The limit of them.
    pub open_files_max: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
}

/// Reads the figures: three small files of `/proc` and two system calls.
pub(crate) fn process_figures() -> ProcessFigures {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/self/{file}")).ok();
    let pages = read("statm").as_deref().map(pages);
    let (virtual_bytes, resident_bytes) = pages.unwrap_or_default();
    let stat = read("stat").as_deref().and_then(of_stat);
    let (cpu_millis, threads) = stat.unzip();
    ProcessFigures {
        cpu_millis,
        resident_bytes,
        virtual_bytes,
        open_files: open_files(),
        open_files_max: getrlimit(Resource::Nofile).current,
        threads,
    }
}

/// The bytes of the address space and those that are resident, from `statm`, which counts pages.
fn pages(statm: &str) -> (Option<u64>, Option<u64>) {
    let mut fields = statm.split_ascii_whitespace();
    let mut bytes = || {
        let pages: u64 = fields.next()?.parse().ok()?;
        // Of 4 KiB, or of 16 or 64 KiB on some machines of ARM.
        Some(pages * page_size() as u64)
    };
    (bytes(), bytes())
}

/// CPU time in milliseconds and threads, from `stat`.
fn of_stat(stat: &str) -> Option<(u64, u64)> {
    // The name of the program comes first, in parentheses, and may contain any character.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    // Fields 14, 15 and 20 of proc_pid_stat(5), of which the first two are cut off.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let ticks = field(14)? + field(15)?;
    let millis = ticks * 1000 / clock_ticks_per_second().max(1);
    Some((millis, field(20)?))
}

/// CPU time of the threads of this process in milliseconds, by their names.
pub(crate) fn thread_millis() -> BTreeMap<String, u64> {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
        return BTreeMap::new();
    };
    let times = threads.filter_map(|thread| {
        let stat = std::fs::read_to_string(thread.ok()?.path().join("stat")).ok()?;
        let (before, _) = stat.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let (millis, _) = of_stat(&stat)?;
        Some((name.to_owned(), millis))
    });
    times.collect()
}

/// The number of open files; only Linux 6.2 and newer tell it without a list of all of them.
fn open_files() -> Option<u64> {
    let folder = std::fs::metadata("/proc/self/fd").ok()?;
    Some(folder.size()).filter(|open| *open > 0)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_program_does_not_shift_the_fields() {
        let stat = "7 (a) b) R 1 7 7 0 -1 4194560 1 0 0 0 120 30 0 0 20 0 5 0 1234 9 9";
        let (millis, threads) = of_stat(stat).unwrap();
        assert_eq!(millis, 150 * 1000 / clock_ticks_per_second());
        assert_eq!(threads, 5);
        assert_eq!(of_stat("7 (a) R 1"), None);
    }

    #[test]
    fn this_process_has_memory_threads_and_a_limit_of_files() {
        let figures = process_figures();
        let resident = figures.resident_bytes.unwrap();
        assert!(resident > 100_000 && resident < figures.virtual_bytes.unwrap());
        assert!(figures.threads.unwrap() > 1 && figures.open_files_max.unwrap() > 2);
        assert!(figures.cpu_millis.is_some());
    }

    #[test]
    fn the_time_of_a_thread_is_found_by_its_name() {
        let thread = std::thread::Builder::new().name("worker-77".to_owned());
        let seen = thread.spawn(|| thread_millis().contains_key("worker-77"));
        assert!(seen.unwrap().join().unwrap());
        assert!(!thread_millis().contains_key("worker-77"));
    }

    #[test]
    fn one_more_open_file_is_counted() {
        let Some(before) = open_files() else {
            return;
        };
        let more: Vec<_> = (0..50)
            .map(|_| std::fs::File::open("/proc/self/stat").unwrap())
            .collect();
        // Other tests open and close files meanwhile.
        let after = open_files().unwrap();
        assert!(after + 25 > before + more.len() as u64, "{before} {after}");
    }
}
