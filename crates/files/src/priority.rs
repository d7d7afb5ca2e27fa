//! Threads that stand back behind others of their process.

use rustix::process::{getpriority_process, setpriority_process};

/// By how much: against a thread that wants its core all the time it gets a quarter of it.
const STEP: i32 = 6;
/// Last place of the system.
const LAST: i32 = 19;

/// From now on the other threads of the process come before this one, and before those that it
/// starts, wherever the process stands itself.
pub fn stand_back() {
    // Both are allowed to everybody: without them only the order is another one.
    if let Ok(own) = getpriority_process(None) {
        setpriority_process(None, (own + STEP).min(LAST)).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stands_behind_the_one_that_started_it_and_those_that_it_starts_too() {
        let niceness = || getpriority_process(None).unwrap();
        let before = niceness();
        let stood_back = move || {
            stand_back();
            (niceness(), std::thread::spawn(niceness).join().unwrap())
        };
        let after = (before + STEP).min(LAST);
        let found = std::thread::spawn(stood_back).join().unwrap();
        assert_eq!(found, (after, after));
        assert_eq!(niceness(), before);
    }
}
