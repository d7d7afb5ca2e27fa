//! A benchmark that a broker started ends with the broker.

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use super::complaint::{Complaint, FAILED};

/// Names the process that started this one, and with which it is to end.
pub(crate) const PARENT: &str = "THRUM_BENCH_PARENT";

/// If a broker started this process: from now on the kernel kills it when the thread that started
/// it has ended, also if that was killed.
///
/// # Errors
/// The process that started this one is another one, or has ended already.
pub(super) fn end_with_parent() -> Result<(), Complaint> {
    let Some(parent) = std::env::var_os(PARENT) else {
        return Ok(());
    };
    let parent = parent.to_str().and_then(|parent| parent.parse().ok());
    let wrong = || Complaint::usage(format!("{PARENT} is not the number of a process"));
    end_with(parent.ok_or_else(wrong)?)
}

fn end_with(parent: u32) -> Result<(), Complaint> {
    let failed =
        |error| Complaint::new(format!("cannot end with process {parent}: {error}"), FAILED);
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| failed(error.to_string()))?;
    // It may have ended before.
    let now = getppid().map(Pid::as_raw_nonzero);
    if now.and_then(|pid| u32::try_from(pid.get()).ok()) != Some(parent) {
        return Err(failed(
            "it is not the one that started this process".to_owned(),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_did_not_start_this_one_is_refused() {
        let error = end_with(u32::MAX).unwrap_err();
        set_parent_process_death_signal(None).unwrap();
        assert_eq!(error.code(), FAILED);
    }
}
