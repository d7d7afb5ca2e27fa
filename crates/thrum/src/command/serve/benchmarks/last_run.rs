//! The run under way, or the last one; and the place of a run that is about to begin.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::watch::Current;

/// The run under way, or the last one, which ends with the broker.
#[derive(Debug, Default)]
pub(super) struct LastRun {
    /// Held for moments: never while something waits for the disk or for another thread.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    run: Option<Arc<Current>>,
    /// Somebody makes what another run needs.
    is_taken: bool,
}

/// Why no run can begin.
#[derive(Debug)]
pub(super) enum Occupied {
    /// By this run.
    Running(Arc<Current>),
    /// By one that is about to begin.
    Beginning,
}

/// The place of a run that is about to begin. It is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Beginning<'a> {
    last: &'a LastRun,
    before: Option<Arc<Current>>,
}

impl LastRun {
    /// The run under way, or the last one.
    pub(super) fn get(&self) -> Option<Arc<Current>> {
        self.lock().run.clone()
    }

    /// Takes the place of a run that is to begin.
    ///
    /// # Errors
    /// There is one at a time.
    pub(super) fn begin(&self) -> Result<Beginning<'_>, Occupied> {
        let mut state = self.lock();
        if let Some(run) = state.run.as_ref().filter(|run| !run.is_over()) {
            return Err(Occupied::Running(Arc::clone(run)));
        }
        if state.is_taken {
            return Err(Occupied::Beginning);
        }
        state.is_taken = true;
        Ok(Beginning {
            last: self,
            before: state.run.clone(),
        })
    }

    /// Forgets a run that was removed.
    pub(super) fn forget(&self, id: &str) {
        let mut state = self.lock();
        if state.run.as_ref().is_some_and(|run| run.id() == id) {
            state.run = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LastRun {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        if let Some(run) = &state.run {
            run.abandon();
        }
    }
}

impl Beginning<'_> {
    /// The run before this one.
    pub(super) fn before(&self) -> Option<&Arc<Current>> {
        self.before.as_ref()
    }

    /// The run has begun.
    pub(super) fn publish(self, run: Arc<Current>) {
        self.last.lock().run = Some(run);
    }
}

impl Drop for Beginning<'_> {
    fn drop(&mut self) {
        self.last.lock().is_taken = false;
    }
}

#[cfg(test)]
mod tests {
    use thrum_management::api::BenchmarkRunInFull;

    use super::*;

    fn run(id: &str) -> Arc<Current> {
        let mut run = BenchmarkRunInFull::default();
        id.clone_into(&mut run.run.id);
        Arc::new(Current::new(run))
    }

    #[test]
    fn while_a_run_begins_others_are_refused_and_the_last_one_is_shown() {
        let last = LastRun::default();
        let beginning = last.begin().unwrap();
        // Nobody waits for the one who makes what the run needs.
        assert!(last.get().is_none());
        assert!(matches!(last.begin(), Err(Occupied::Beginning)));
        last.forget("a");
        // It did not begin.
        drop(beginning);
        last.begin().unwrap().publish(run("a"));
        assert_eq!(last.get().unwrap().id(), "a");
        assert!(matches!(last.begin(), Err(Occupied::Running(other)) if other.id() == "a"));
        last.forget("b");
        assert!(last.get().is_some());
        last.forget("a");
        assert!(last.begin().is_ok());
        // The last one is not waited for: it has no thread that ends it.
        assert!(last.get().is_none());
    }
}
