//! The thread of a run, which another thread starts: the threads of the interface stand behind
//! others of the broker, and a thread has the place of the one that started it.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use thrum_management::ProgramError;

/// What another thread is asked to do.
pub(super) type Errand = Box<dyn FnOnce() + Send>;

/// How far a thread is.
#[derive(Debug)]
enum Spawn {
    Wanted,
    /// Nobody wants it any longer: who asked was told that it failed.
    GivenUp,
    Done(io::Result<()>),
}

/// Has a thread started by the one that is asked. If no answer comes, it is started already, or
/// never.
///
/// # Errors
/// That of `ask`, or of the system; there is no thread then, and there will be none.
pub(super) fn by_another(
    ask: impl FnOnce(Errand) -> Result<(), ProgramError>,
    work: impl FnOnce() + Send + 'static,
) -> Result<(), ProgramError> {
    // Guards who is first: the thread that starts it, or the one that gives up. It is held while a
    // thread is started, which waits for nothing.
    let spawn = Arc::new(Mutex::new(Spawn::Wanted));
    let wanted = Arc::clone(&spawn);
    let asked = ask(Box::new(move || {
        let mut spawn = wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*spawn, Spawn::Wanted) {
            let thread = std::thread::Builder::new().name("benchmark".to_owned());
            *spawn = Spawn::Done(thread.spawn(work).map(drop));
        }
    }));
    let mut spawn = spawn.lock().unwrap_or_else(PoisonError::into_inner);
    match std::mem::replace(&mut *spawn, Spawn::GivenUp) {
        Spawn::Done(done) => done.map_err(|error| ProgramError::Io(error.to_string())),
        Spawn::Wanted | Spawn::GivenUp => asked.and(Err(ProgramError::Stopped)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use super::*;

    /// Work that says that it is done.
    fn work() -> (impl FnOnce() + Send + 'static, Receiver<()>) {
        let (done, is_done) = channel();
        (move || done.send(()).unwrap(), is_done)
    }

    #[test]
    fn a_thread_that_nobody_waits_for_any_longer_is_never_started() {
        let (work, is_done) = work();
        let mut late = None;
        let asked = by_another(
            |errand| {
                late = Some(errand);
                Err(ProgramError::TimedOut)
            },
            work,
        );
        assert_eq!(asked, Err(ProgramError::TimedOut));
        late.unwrap()();
        // The work is dropped, and with it the sender.
        assert!(is_done.recv().is_err());
    }

    #[test]
    fn a_thread_that_was_started_at_the_last_moment_has_begun() {
        let (work, is_done) = work();
        let asked = by_another(
            |errand| {
                errand();
                Err(ProgramError::TimedOut)
            },
            work,
        );
        assert_eq!(asked, Ok(()));
        is_done.recv_timeout(Duration::from_secs(20)).unwrap();
    }
}
