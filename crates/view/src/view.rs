//! The user's choices, and the effect of each key.

use std::io;
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use thrum_bench::observe::Command;

use super::history::{History, Point};

/// Factor of a `+`.
const FASTER: f64 = 1.1;

/// Factor of a `-`.
const SLOWER: f64 = 0.9;

/// How much an `e` extends the hold.
const EXTENSION: Duration = Duration::from_secs(30);

/// Longest note in characters.
const NOTE_CHARS_MAX: usize = 200;

/// Runs of a series are compared with each other.
const SERIES_REFUSAL: &str = "in a series the load stays as planned";

/// Most events before the first frame that are forgotten.
const FORGOTTEN_MAX: u32 = 4_096;

/// Frames that a notice stays: three seconds.
const NOTICE_FRAMES: u32 = 24;

/// State of the view.
#[derive(Clone, Debug, Default)]
pub(crate) struct ViewState {
    pub(crate) scale: TimeScale,
    pub(crate) mode: Mode,
    pub(crate) load: Load,
    /// The effect of the last key, for some frames.
    pub(crate) notice: Option<Notice>,
    pub(crate) look: Look,
    /// The run is one of a series, whose load stays as planned.
    pub(crate) is_in_series: bool,
}

/// The capabilities of the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) glyphs: Glyphs,
    pub(crate) palette: Palette,
}

/// Characters that the terminal can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Glyphs {
    #[default]
    Unicode,
    Ascii,
}

/// Whether colours are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Palette {
    #[default]
    Colour,
    Plain,
}

/// The time span of the charts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TimeScale {
    OneMinute,
    #[default]
    TwoMinutes,
    FiveMinutes,
    All,
}

impl TimeScale {
    /// As text, for a title.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::OneMinute => "last 1 min",
            Self::TwoMinutes => "last 2 min",
            Self::FiveMinutes => "last 5 min",
            Self::All => "whole run",
        }
    }

    /// In seconds; none for the whole run.
    pub(crate) const fn seconds(self) -> Option<f64> {
        match self {
            Self::OneMinute => Some(60.0),
            Self::TwoMinutes => Some(120.0),
            Self::FiveMinutes => Some(300.0),
            Self::All => None,
        }
    }

    /// The points that show it.
    pub(crate) fn points(self, history: &History) -> &[Point] {
        match self {
            Self::OneMinute | Self::TwoMinutes | Self::FiveMinutes => &history.recent,
            Self::All => &history.overview,
        }
    }

    const fn next(self) -> Self {
        match self {
            Self::OneMinute => Self::TwoMinutes,
            Self::TwoMinutes => Self::FiveMinutes,
            Self::FiveMinutes => Self::All,
            Self::All => Self::OneMinute,
        }
    }
}

/// Actions of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    #[default]
    Watch,
    /// The list of keys is shown; any key closes it.
    Help,
    /// A note is being written.
    Note(String),
}

/// The requested change of the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Load {
    #[default]
    Running,
    Paused,
    /// The run ends as soon as possible.
    Stopping,
    /// The run ends as soon as possible, and the series that it belongs to with it.
    Interrupted,
    /// The program ends at once, without a report.
    EndNow,
}

impl Load {
    /// Whether the run is to end.
    pub(crate) const fn is_ending(self) -> bool {
        matches!(self, Self::Stopping | Self::Interrupted | Self::EndNow)
    }
}

/// A short message in the last line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) text: String,
    frames: u32,
}

impl ViewState {
    pub(crate) fn new(look: Look, is_in_series: bool) -> Self {
        Self {
            look,
            is_in_series,
            ..Self::default()
        }
    }

    /// To be called once per frame: notices fade.
    pub(crate) fn next_frame(&mut self) {
        let frames = self.notice.as_ref().map_or(0, |notice| notice.frames);
        if frames <= 1 {
            self.notice = None;
        } else if let Some(notice) = &mut self.notice {
            notice.frames = frames - 1;
        }
    }

    /// A command found no room in the queue, so it did not happen.
    pub(crate) fn refuse(&mut self, command: &Command) {
        match command {
            Command::Pause => self.load = Load::Running,
            Command::Resume => self.load = Load::Paused,
            _ => {}
        }
        self.say("the run is busy: try again");
    }

    fn say(&mut self, text: &str) {
        self.notice = Some(Notice {
            text: text.to_owned(),
            frames: NOTICE_FRAMES,
        });
    }
}

/// Forgets what was typed before this view was there: it was meant for the run before. A ^C is
/// kept, because it was meant for the whole series.
///
/// # Errors
/// `next_event` fails.
pub(crate) fn forget_typed(
    view: &mut ViewState,
    mut next_event: impl FnMut() -> io::Result<Option<Event>>,
) -> io::Result<Option<Command>> {
    let mut command = None;
    for _ in 0..FORGOTTEN_MAX {
        let Some(event) = next_event()? else {
            break;
        };
        if let Event::Key(key) = event
            && is_interrupt(key)
        {
            command = handle_key(key, view).or(command);
        }
    }
    Ok(command)
}

fn is_interrupt(key: KeyEvent) -> bool {
    let is_c = matches!(key.code, KeyCode::Char('c' | 'C'));
    is_c && key.modifiers.contains(KeyModifiers::CONTROL)
}

/// Does what a key means for the view; returns what it means for the run.
pub(crate) fn handle_key(key: KeyEvent, view: &mut ViewState) -> Option<Command> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c' | 'C') => interrupt(view),
            _ => None,
        };
    }
    match std::mem::take(&mut view.mode) {
        Mode::Watch => watch_key(key.code, view),
        Mode::Help => None,
        Mode::Note(text) => note_key(key.code, text, view),
    }
}

fn watch_key(code: KeyCode, view: &mut ViewState) -> Option<Command> {
    match code {
        KeyCode::Char('t') => {
            view.scale = view.scale.next();
            return None;
        }
        KeyCode::Char('?') => {
            view.mode = Mode::Help;
            return None;
        }
        _ => {}
    }
    if view.load.is_ending() {
        return None;
    }
    if view.is_in_series && changes_load(code) {
        view.say(SERIES_REFUSAL);
        return None;
    }
    match code {
        KeyCode::Char('+' | '=') => {
            view.say("rate +10 %");
            Some(Command::Rate(FASTER))
        }
        KeyCode::Char('-' | '_') => {
            view.say("rate -10 %");
            Some(Command::Rate(SLOWER))
        }
        KeyCode::Char(' ') => Some(pause_or_resume(view)),
        KeyCode::Char('e') => {
            view.say("hold extended by 30 s");
            Some(Command::Extend(EXTENSION))
        }
        KeyCode::Char('n') => {
            view.mode = Mode::Note(String::new());
            None
        }
        KeyCode::Char('q') => Some(stop(view)),
        _ => None,
    }
}

/// Whether a key gives the run another load than the planned one.
const fn changes_load(code: KeyCode) -> bool {
    matches!(code, KeyCode::Char('+' | '=' | '-' | '_' | ' ' | 'e'))
}

fn note_key(code: KeyCode, mut text: String, view: &mut ViewState) -> Option<Command> {
    match code {
        KeyCode::Esc => return None,
        KeyCode::Enter => {
            let note = text.trim();
            if note.is_empty() {
                return None;
            }
            view.say("note kept");
            return Some(Command::Note(note.to_owned()));
        }
        KeyCode::Backspace => _ = text.pop(),
        KeyCode::Char(typed) if !typed.is_control() && text.chars().count() < NOTE_CHARS_MAX => {
            text.push(typed);
        }
        _ => {}
    }
    view.mode = Mode::Note(text);
    None
}

fn pause_or_resume(view: &mut ViewState) -> Command {
    if view.load == Load::Paused {
        view.load = Load::Running;
        Command::Resume
    } else {
        view.load = Load::Paused;
        Command::Pause
    }
}

/// The first one stops the run and the series that it is one of, the second one ends the program.
fn interrupt(view: &mut ViewState) -> Option<Command> {
    view.mode = Mode::Watch;
    if view.load.is_ending() {
        view.load = Load::EndNow;
        return None;
    }
    view.load = Load::Interrupted;
    Some(Command::Stop)
}

fn stop(view: &mut ViewState) -> Command {
    view.load = Load::Stopping;
    Command::Stop
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(view: &mut ViewState, code: KeyCode) -> Option<Command> {
        handle_key(KeyEvent::new(code, KeyModifiers::NONE), view)
    }

    fn type_text(view: &mut ViewState, text: &str) -> Option<Command> {
        text.chars()
            .filter_map(|typed| press(view, KeyCode::Char(typed)))
            .last()
    }

    fn control_c(view: &mut ViewState) -> Option<Command> {
        handle_key(
            KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL),
            view,
        )
    }

    #[test]
    fn keys_change_the_rate_and_the_hold() {
        let mut view = ViewState::default();
        assert_eq!(type_text(&mut view, "+"), Some(Command::Rate(1.1)));
        assert_eq!(type_text(&mut view, "="), Some(Command::Rate(1.1)));
        assert_eq!(type_text(&mut view, "-"), Some(Command::Rate(0.9)));
        let longer = Command::Extend(Duration::from_secs(30));
        assert_eq!(type_text(&mut view, "e"), Some(longer));
        assert_eq!(type_text(&mut view, "x"), None);
    }

    #[test]
    fn no_key_changes_the_load_of_a_run_in_a_series() {
        let mut view = ViewState::new(Look::default(), true);
        for key in ["+", "=", "-", "_", " ", "e"] {
            view.notice = None;
            assert_eq!(type_text(&mut view, key), None, "{key}");
            let notice = view.notice.as_ref().unwrap();
            assert_eq!(notice.text, SERIES_REFUSAL, "{key}");
        }
        assert_eq!(view.load, Load::Running);
        type_text(&mut view, "n+e");
        let note = press(&mut view, KeyCode::Enter);
        assert_eq!(note, Some(Command::Note("+e".to_owned())));
        assert_eq!(type_text(&mut view, "q"), Some(Command::Stop));
    }

    /// What forgetting these events leaves.
    fn forgotten(view: &mut ViewState, keys: &[(char, KeyModifiers)]) -> Option<Command> {
        let mut events = keys
            .iter()
            .map(|(typed, modifiers)| Event::Key(KeyEvent::new(KeyCode::Char(*typed), *modifiers)));
        forget_typed(view, || Ok(events.next())).unwrap()
    }

    #[test]
    fn keys_typed_before_the_view_are_not_for_its_run() {
        let mut view = ViewState::default();
        let typed = ['q', 'n', 'q', ' ', '+'].map(|key| (key, KeyModifiers::NONE));
        assert_eq!(forgotten(&mut view, &typed), None);
        assert_eq!((view.mode, view.load), (Mode::Watch, Load::Running));
        assert_eq!(view.notice, None);
    }

    #[test]
    fn an_interrupt_before_the_view_ends_its_run_and_a_second_one_the_program() {
        let mut view = ViewState::default();
        let typed = [('q', KeyModifiers::NONE), ('c', KeyModifiers::CONTROL)];
        assert_eq!(forgotten(&mut view, &typed), Some(Command::Stop));
        assert_eq!(view.load, Load::Interrupted);
        let mut view = ViewState::default();
        forgotten(&mut view, &[('c', KeyModifiers::CONTROL); 2]);
        assert_eq!(view.load, Load::EndNow);
    }

    #[test]
    fn space_pauses_and_resumes() {
        let mut view = ViewState::default();
        assert_eq!(type_text(&mut view, " "), Some(Command::Pause));
        assert_eq!(view.load, Load::Paused);
        assert_eq!(type_text(&mut view, " "), Some(Command::Resume));
        assert_eq!(view.load, Load::Running);
    }

    #[test]
    fn a_pause_that_found_no_room_did_not_happen() {
        let mut view = ViewState::default();
        let pause = type_text(&mut view, " ").unwrap();
        view.refuse(&pause);
        assert_eq!(view.load, Load::Running);
        assert_eq!(type_text(&mut view, " "), Some(Command::Pause));
    }

    #[test]
    fn a_note_is_typed_corrected_and_kept() {
        let mut view = ViewState::default();
        assert_eq!(type_text(&mut view, "nnew quueq"), None);
        assert_eq!(press(&mut view, KeyCode::Backspace), None);
        assert_eq!(view.mode, Mode::Note("new quue".to_owned()));
        let note = press(&mut view, KeyCode::Enter);
        assert_eq!(note, Some(Command::Note("new quue".to_owned())));
        assert_eq!(view.mode, Mode::Watch);
    }

    #[test]
    fn an_empty_or_cancelled_note_is_none() {
        let mut view = ViewState::default();
        type_text(&mut view, "n  ");
        assert_eq!(press(&mut view, KeyCode::Enter), None);
        type_text(&mut view, "nabc");
        assert_eq!(press(&mut view, KeyCode::Esc), None);
        assert_eq!(view.mode, Mode::Watch);
    }

    #[test]
    fn a_note_has_a_limit() {
        let mut view = ViewState::default();
        type_text(&mut view, &"n".repeat(NOTE_CHARS_MAX + 50));
        assert_eq!(view.mode, Mode::Note("n".repeat(NOTE_CHARS_MAX)));
    }

    #[test]
    fn the_time_scale_goes_round() {
        let mut view = ViewState::default();
        let shown = |view: &mut ViewState| {
            type_text(view, "t");
            view.scale.text()
        };
        let round = [(); 4].map(|()| shown(&mut view));
        assert_eq!(
            round,
            ["last 5 min", "whole run", "last 1 min", "last 2 min"]
        );
    }

    #[test]
    fn any_key_closes_the_help_and_does_nothing_else() {
        let mut view = ViewState::default();
        type_text(&mut view, "?");
        assert_eq!(view.mode, Mode::Help);
        assert_eq!(type_text(&mut view, "q"), None);
        assert_eq!((view.mode, view.load), (Mode::Watch, Load::Running));
    }

    #[test]
    fn q_stops_once() {
        let mut view = ViewState::default();
        assert_eq!(type_text(&mut view, "q"), Some(Command::Stop));
        assert_eq!(type_text(&mut view, "q+ e"), None);
        assert_eq!(view.load, Load::Stopping);
    }

    #[test]
    fn the_second_interrupt_ends_at_once_even_while_typing() {
        let mut view = ViewState::default();
        type_text(&mut view, "nhalf a no");
        assert_eq!(control_c(&mut view), Some(Command::Stop));
        assert_eq!(view.load, Load::Interrupted);
        assert_eq!(control_c(&mut view), None);
        assert_eq!(view.load, Load::EndNow);
    }

    #[test]
    fn a_released_key_does_nothing() {
        let mut view = ViewState::default();
        let mut key = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE);
        key.kind = KeyEventKind::Release;
        assert_eq!(handle_key(key, &mut view), None);
    }

    #[test]
    fn a_notice_fades() {
        let mut view = ViewState::default();
        type_text(&mut view, "+");
        for _ in 1..NOTICE_FRAMES {
            view.next_frame();
            assert!(view.notice.is_some());
        }
        view.next_frame();
        assert_eq!(view.notice, None);
    }
}
