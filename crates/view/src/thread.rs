//! The thread that draws and reads keys, and the observer that feeds it.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crossterm::event::{self, Event};
use thrum_bench::observe::{Command, Observer};
use thrum_bench::{Status, clock};
use thrum_report::RunResult;
use thrum_report::live::SecondLatencies;

use super::draw::render;
use super::snapshot::{Figures, Now, Snapshot};
use super::surroundings;
use super::terminal::{self, Screen};
use super::view::{Load, ViewState, forget_typed, handle_key};

/// Between two frames: 8 per second.
const FRAME_NS: u64 = 125_000_000;

/// Most keys that are handled between two frames; a pasted text must not stop the drawing.
const KEYS_PER_FRAME_MAX: u32 = 256;

/// Most commands that wait for the run.
const COMMANDS_MAX: usize = 16;

/// The full-screen view of one run. Dropped, it gives the terminal back.
#[derive(Debug)]
pub struct BenchView {
    shared: Arc<Shared>,
    commands: Receiver<Command>,
    drawing: Option<JoinHandle<()>>,
}

/// The shared state of the run and the drawing thread.
#[derive(Debug)]
struct Shared {
    /// Guards the shown figures; held only to copy a few words in or out, never while drawing.
    snapshot: Mutex<Snapshot>,
    /// A stop was requested; separate from the queue, because the queue may be full.
    is_stopped: AtomicBool,
    /// Set by ^C: no other run begins after this one.
    interrupt: Arc<AtomicBool>,
    /// The view is over.
    is_over: AtomicBool,
}

impl BenchView {
    /// Takes the terminal and begins to draw. `series` is where the series is that the run is part
    /// of, if it is: parts between ` · `, the most important first. A ^C sets `interrupt`, as one
    /// outside the view does. `end_now` is called on the drawing thread when the person insists on
    /// an end at once (a second ^C); the terminal is restored by then.
    ///
    /// # Errors
    /// The terminal cannot be drawn on.
    pub fn start(
        title: &str,
        series: Option<&str>,
        interrupt: Arc<AtomicBool>,
        end_now: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::new(title, series, interrupt));
        let (sender, commands) = sync_channel(COMMANDS_MAX);
        let artist = DrawLoop {
            screen: terminal::take()?,
            view: ViewState::new(surroundings::look(), series.is_some()),
            shared: Arc::clone(&shared),
            commands: sender,
        };
        let body = move || {
            let end = artist.run();
            terminal::give_back();
            if end == End::Insisted {
                end_now();
            }
        };
        let drawing = Builder::new().name("tui".to_owned()).spawn(body);
        if drawing.is_err() {
            terminal::give_back();
        }
        Ok(Self {
            shared,
            commands,
            drawing: Some(drawing?),
        })
    }

    /// Where the series is now.
    pub fn set_series(&self, text: &str) {
        let series = Some(Arc::from(text));
        // A frame that is being prepared shows it a second later.
        if let Ok(mut snapshot) = self.shared.snapshot.try_lock() {
            snapshot.series = series;
        }
    }
}

impl Drop for BenchView {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(drawing) = self.drawing.take() {
            // A thread that panicked has restored the terminal before.
            drawing.join().ok();
        }
        terminal::give_back();
    }
}

impl Observer for BenchView {
    fn look(&mut self, status: &Status) {
        // The next update comes soon, so this one need not wait for a frame that is being prepared.
        let mut snapshot = match self.shared.snapshot.try_lock() {
            Ok(snapshot) => snapshot,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        snapshot.now = Some(Now::from(status));
    }

    fn second(&mut self, so_far: &RunResult, _: &[SecondLatencies]) {
        let figures = Some(Arc::new(Figures::new(so_far)));
        let mut snapshot = self.shared.lock();
        let previous = std::mem::replace(&mut snapshot.figures, figures);
        drop(snapshot);
        drop(previous);
    }

    fn next_command(&mut self) -> Option<Command> {
        if self.shared.is_stopped.swap(false, Ordering::Relaxed) {
            return Some(Command::Stop);
        }
        self.commands.try_recv().ok()
    }
}

impl Shared {
    fn new(title: &str, series: Option<&str>, interrupt: Arc<AtomicBool>) -> Self {
        Self {
            snapshot: Mutex::new(Snapshot {
                title: title.into(),
                series: series.map(Arc::from),
                ..Snapshot::default()
            }),
            is_stopped: AtomicBool::new(false),
            interrupt,
            is_over: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Snapshot> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why the drawing ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The run is over, or the terminal is closed.
    Over,
    /// The user ends the program at once.
    Insisted,
}

/// The drawing thread.
#[derive(Debug)]
struct DrawLoop {
    screen: Screen,
    view: ViewState,
    shared: Arc<Shared>,
    commands: SyncSender<Command>,
}

impl DrawLoop {
    fn run(mut self) -> End {
        match self.forget_typed() {
            Ok(()) if self.view.load == Load::EndNow => return End::Insisted,
            Ok(()) => {}
            Err(_) => return End::Over,
        }
        while !self.shared.is_over.load(Ordering::Relaxed) && terminal::is_taken() {
            let snapshot = self.shared.lock().clone();
            let view = &self.view;
            let drawn = self.screen.draw(|frame| render(frame, &snapshot, view));
            if drawn.is_err() {
                return End::Over;
            }
            self.view.next_frame();
            match self.read_keys() {
                Ok(()) if self.view.load == Load::EndNow => return End::Insisted,
                Ok(()) => {}
                Err(_) => return End::Over,
            }
        }
        End::Over
    }

    fn forget_typed(&mut self) -> io::Result<()> {
        let next_event = || {
            let is_there = event::poll(Duration::ZERO)?;
            is_there.then(event::read).transpose()
        };
        if let Some(command) = forget_typed(&mut self.view, next_event)? {
            send(command, &self.commands, &self.shared, &mut self.view);
        }
        Ok(())
    }

    /// Until the next frame is due.
    fn read_keys(&mut self) -> io::Result<()> {
        let frame_ns = clock::monotonic_ns() + FRAME_NS;
        for _ in 0..KEYS_PER_FRAME_MAX {
            let left_ns = frame_ns.saturating_sub(clock::monotonic_ns());
            if !event::poll(Duration::from_nanos(left_ns))? {
                break;
            }
            if let Event::Key(key) = event::read()?
                && let Some(command) = handle_key(key, &mut self.view)
            {
                send(command, &self.commands, &self.shared, &mut self.view);
            }
            if self.view.load == Load::EndNow {
                break;
            }
        }
        Ok(())
    }
}

fn send(command: Command, queue: &SyncSender<Command>, shared: &Shared, view: &mut ViewState) {
    if command == Command::Stop {
        if view.load == Load::Interrupted {
            shared.interrupt.store(true, Ordering::Relaxed);
        }
        shared.is_stopped.store(true, Ordering::Relaxed);
        return;
    }
    match queue.try_send(command) {
        Ok(()) => {}
        Err(TrySendError::Full(command) | TrySendError::Disconnected(command)) => {
            view.refuse(&command);
        }
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    use thrum_bench::{Progress, Stage};

    use super::*;
    use crate::sample;

    /// A view without a drawing thread, and that thread's end of its queue.
    fn undrawn() -> (BenchView, SyncSender<Command>) {
        let (sender, commands) = sync_channel(COMMANDS_MAX);
        let view = BenchView {
            shared: Arc::new(Shared::new("a run", None, Arc::default())),
            commands,
            drawing: None,
        };
        (view, sender)
    }

    fn status(clients: u32) -> Status {
        Status {
            stage: Stage::Ramp,
            elapsed: Duration::from_secs(1),
            planned: Duration::from_secs(2),
            clients,
            progress: Progress::default(),
        }
    }

    #[test]
    fn a_frame_shows_the_last_look_and_the_last_second() {
        let (mut view, _sender) = undrawn();
        view.look(&status(1));
        view.look(&status(2));
        view.second(&sample::result(3), &[]);
        view.second(&sample::result(4), &[]);
        let snapshot = view.shared.lock().clone();
        assert_eq!(snapshot.now.map(|now| now.clients), Some(2));
        let seconds = snapshot.figures.map(|figures| figures.history.recent.len());
        assert_eq!(seconds, Some(4));
    }

    #[test]
    fn the_place_in_a_series_is_the_one_told_last() {
        let (view, _sender) = undrawn();
        view.set_series("run 1/4 · about 2m left");
        view.set_series("run 2/4 · about 1m left");
        let snapshot = view.shared.lock().clone();
        assert_eq!(snapshot.series.as_deref(), Some("run 2/4 · about 1m left"));
    }

    #[test]
    fn a_look_does_not_wait_for_a_frame_in_preparation() {
        let (mut view, _sender) = undrawn();
        let shared = Arc::clone(&view.shared);
        let frame = shared.lock();
        view.look(&status(1));
        assert_eq!(frame.now, None);
    }

    #[test]
    fn commands_arrive_in_order_and_surplus_ones_are_refused() {
        let (mut view, sender) = undrawn();
        let mut state = ViewState::default();
        for number in 0..=COMMANDS_MAX {
            let note = Command::Note(number.to_string());
            send(note, &sender, &view.shared, &mut state);
            assert_eq!(state.notice.is_some(), number == COMMANDS_MAX);
        }
        assert_eq!(view.next_command(), Some(Command::Note("0".to_owned())));
        assert_eq!(view.next_command(), Some(Command::Note("1".to_owned())));
    }

    #[test]
    fn an_interrupt_ends_the_series_and_a_stop_only_its_run() {
        for (code, modifiers, ends_series) in [
            ('q', KeyModifiers::NONE, false),
            ('c', KeyModifiers::CONTROL, true),
        ] {
            let (mut view, sender) = undrawn();
            let mut state = ViewState::default();
            let key = KeyEvent::new(KeyCode::Char(code), modifiers);
            let command = handle_key(key, &mut state).unwrap();
            send(command, &sender, &view.shared, &mut state);
            assert_eq!(view.next_command(), Some(Command::Stop));
            let is_interrupted = view.shared.interrupt.load(Ordering::Relaxed);
            assert_eq!(is_interrupted, ends_series, "{code}");
        }
    }

    #[test]
    fn a_stop_is_never_refused_and_comes_first() {
        let (mut view, sender) = undrawn();
        let mut state = ViewState::default();
        for command in vec![Command::Pause; COMMANDS_MAX] {
            send(command, &sender, &view.shared, &mut state);
        }
        send(Command::Stop, &sender, &view.shared, &mut state);
        assert_eq!(view.next_command(), Some(Command::Stop));
        assert_eq!(view.next_command(), Some(Command::Pause));
    }
}
