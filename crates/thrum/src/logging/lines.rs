//! Lines of the log on their way to standard error. A thread of their own writes them: whoever
//! reads standard error slowly, or not at all, stops no worker.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of lines that wait; a line that finds no room is left out and counted.
const WAITING_MAX: usize = 1 << 20;
/// The end of the program waits for so long for lines to be written.
const END_TIME: Duration = Duration::from_secs(1);

/// The lines that wait.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Guards a copy of a line.
    waiting: Mutex<Waiting>,
    /// There are lines, or all are written.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// Lines that were left out since this was last told.
    left_out: u64,
    is_writing: bool,
}

/// Waits, when it is dropped, until all lines are written, for a second at most.
#[derive(Debug)]
pub(crate) struct Ending(Arc<Lines>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.wait_until_written(END_TIME);
    }
}

impl Lines {
    /// Lines that a thread writes to `to`.
    ///
    /// # Errors
    /// The system has no thread.
    pub(super) fn start(to: impl Write + Send + 'static) -> io::Result<Arc<Self>> {
        let lines = Arc::<Self>::default();
        let written = Arc::clone(&lines);
        let thread = std::thread::Builder::new().name("thrum-log".to_owned());
        thread.spawn(move || written.write_all(to))?;
        Ok(lines)
    }

    /// What waits for them at the end.
    pub(super) fn ending(self: &Arc<Self>) -> Ending {
        Ending(Arc::clone(self))
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: &[u8]) {
        let mut waiting = self.waiting();
        if waiting.bytes.len() + line.len() > WAITING_MAX {
            waiting.left_out += 1;
            return;
        }
        waiting.bytes.extend_from_slice(line);
        self.changed.notify_all();
    }

    /// Writes lines as they come.
    fn write_all(&self, mut to: impl Write) {
        let mut bytes = Vec::new();
        loop {
            let left_out = self.take(&mut bytes);
            // Of a file that cannot be written nobody could be told here.
            drop(to.write_all(&bytes));
            if left_out > 0 {
                tracing::warn!(
                    lines = left_out,
                    "lines are missing in the log: standard error was read too slowly"
                );
            }
        }
    }

    /// Takes what waits, when there is something, in exchange for an empty buffer.
    fn take(&self, bytes: &mut Vec<u8>) -> u64 {
        bytes.clear();
        let mut waiting = self.waiting();
        waiting.is_writing = false;
        self.changed.notify_all();
        let is_empty = |waiting: &mut Waiting| waiting.bytes.is_empty();
        let waiting = self.changed.wait_while(waiting, is_empty);
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        waiting.is_writing = true;
        std::mem::swap(&mut waiting.bytes, bytes);
        std::mem::take(&mut waiting.left_out)
    }

    fn wait_until_written(&self, time: Duration) {
        let is_left = |waiting: &mut Waiting| waiting.is_writing || !waiting.bytes.is_empty();
        drop(
            self.changed
                .wait_timeout_while(self.waiting(), time, is_left),
        );
    }
}

impl Write for &Lines {
    /// A line at a time, as the log has it.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    use super::*;

    /// Takes nothing until somebody reads.
    struct Pipe(SyncSender<Vec<u8>>);

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.to_vec()).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn started() -> (Arc<Lines>, Receiver<Vec<u8>>) {
        let (pipe, reader) = sync_channel(0);
        (Lines::start(Pipe(pipe)).unwrap(), reader)
    }

    #[test]
    fn lines_that_find_no_room_are_counted_and_stop_nobody() {
        let (lines, reader) = started();
        let line = [b'x'; 1000];
        for _ in 0..3000 {
            lines.push(&line);
        }
        let left_out = lines.waiting().left_out;
        // One portion is being written, and one waits.
        let portion = WAITING_MAX as u64 / 1000;
        let expected = 3000 - 2 * portion..=3000 - portion;
        assert!(expected.contains(&left_out), "{left_out}");
        lines.push(b"end");
        let whole = (3000 - usize::try_from(left_out).unwrap()) * 1000 + 3;
        let mut read = Vec::new();
        while read.len() < whole {
            read.extend(reader.recv().unwrap());
        }
        assert!(read.len() == whole && read.ends_with(b"xend"));
    }

    #[test]
    fn the_end_waits_until_lines_are_written_but_not_for_ever() {
        let (lines, reader) = started();
        lines.push(b"stuck");
        lines.wait_until_written(Duration::from_millis(20));
        lines.push(b"last");
        let reading = std::thread::spawn(move || [reader.recv(), reader.recv()]);
        lines.wait_until_written(Duration::from_mins(1));
        let waiting = lines.waiting();
        assert!(waiting.bytes.is_empty() && !waiting.is_writing);
        let read = reading.join().unwrap().map(Result::unwrap);
        assert_eq!(read.concat(), b"stucklast");
    }
}
