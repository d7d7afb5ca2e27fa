//! The user's choices, and the effect of each key.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::TopSnapshot;
use crate::view::Look;

/// Longest filter in characters: the broker takes 4,096 bytes.
const FILTER_CHARS_MAX: usize = 1000;

/// Order of the clients, from the highest to the lowest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TopSort {
    /// Messages in a second, both ways.
    #[default]
    Rate,
    /// Messages in the queue.
    Queue,
    /// Dropped messages.
    Drops,
}

impl TopSort {
    /// As it is shown.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Queue => "queue",
            Self::Drops => "drops",
        }
    }
}

/// What a key asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopAction {
    /// Draw again.
    Redraw,
    /// Ask the broker again: another order or another filter.
    Refresh,
    /// Disconnect the client with this identifier; it was confirmed.
    Kick(String),
    /// End.
    Quit,
    /// Ctrl-C.
    Interrupt,
}

/// State of the screen.
#[derive(Clone, Debug, Default)]
pub(super) struct TopState {
    pub(super) look: Look,
    pub(super) sort: TopSort,
    pub(super) filter: String,
    pub(super) mode: TopMode,
    /// Place of the marked client.
    pub(super) marked: usize,
    /// A message in the last line, until the next key.
    pub(super) notice: String,
}

/// Actions of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum TopMode {
    #[default]
    Watch,
    /// The list of keys is shown; any key closes it.
    Help,
    /// A filter is being written.
    Filter(String),
    /// Whether to disconnect this client.
    Confirm(String),
}

impl TopState {
    pub(super) fn new(look: Look, sort: TopSort, filter: &str) -> Self {
        Self {
            look,
            sort,
            filter: filter.to_owned(),
            ..Self::default()
        }
    }

    pub(super) fn say(&mut self, text: &str) {
        text.clone_into(&mut self.notice);
    }

    /// The mark stays on a client.
    pub(super) fn fit(&mut self, snapshot: &TopSnapshot) {
        self.marked = self.marked.min(snapshot.clients.len().saturating_sub(1));
    }

    /// Does what a key means for the screen; returns what it means for the caller.
    pub(super) fn handle_key(&mut self, key: KeyEvent, snapshot: &TopSnapshot) -> TopAction {
        if key.kind == KeyEventKind::Release {
            return TopAction::Redraw;
        }
        self.notice.clear();
        let is_c = matches!(key.code, KeyCode::Char('c' | 'C'));
        if is_c && key.modifiers.contains(KeyModifiers::CONTROL) {
            return TopAction::Interrupt;
        }
        match std::mem::take(&mut self.mode) {
            TopMode::Watch => self.watch_key(key.code, snapshot),
            TopMode::Help => TopAction::Redraw,
            TopMode::Filter(text) => self.filter_key(key.code, text),
            TopMode::Confirm(id) => {
                if matches!(key.code, KeyCode::Char('y' | 'Y')) {
                    return TopAction::Kick(id);
                }
                self.say("not disconnected");
                TopAction::Redraw
            }
        }
    }

    fn watch_key(&mut self, code: KeyCode, snapshot: &TopSnapshot) -> TopAction {
        let last = snapshot.clients.len().saturating_sub(1);
        match code {
            KeyCode::Char('q') | KeyCode::Esc => return TopAction::Quit,
            KeyCode::Char('r') => return self.sort_by(TopSort::Rate),
            KeyCode::Char('u') => return self.sort_by(TopSort::Queue),
            KeyCode::Char('d') => return self.sort_by(TopSort::Drops),
            KeyCode::Char('/' | 'f') => self.mode = TopMode::Filter(self.filter.clone()),
            KeyCode::Char('?' | 'h') => self.mode = TopMode::Help,
            KeyCode::Up => self.marked = self.marked.saturating_sub(1),
            KeyCode::Down => self.marked = (self.marked + 1).min(last),
            KeyCode::Home => self.marked = 0,
            KeyCode::End => self.marked = last,
            KeyCode::Char('k') => match snapshot.clients.get(self.marked) {
                Some(client) => self.mode = TopMode::Confirm(client.id.clone()),
                None => self.say("there is no client"),
            },
            _ => {}
        }
        TopAction::Redraw
    }

    fn sort_by(&mut self, sort: TopSort) -> TopAction {
        self.sort = sort;
        self.marked = 0;
        TopAction::Refresh
    }

    fn filter_key(&mut self, code: KeyCode, mut text: String) -> TopAction {
        match code {
            KeyCode::Esc => return TopAction::Redraw,
            KeyCode::Enter => {
                text.trim().clone_into(&mut self.filter);
                self.marked = 0;
                return TopAction::Refresh;
            }
            KeyCode::Backspace => _ = text.pop(),
            KeyCode::Char(typed)
                if !typed.is_control() && text.chars().count() < FILTER_CHARS_MAX =>
            {
                text.push(typed);
            }
            _ => {}
        }
        self.mode = TopMode::Filter(text);
        TopAction::Redraw
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::TopClient;

    fn snapshot() -> TopSnapshot {
        let client = |id: &str| TopClient {
            id: id.to_owned(),
            ..TopClient::default()
        };
        TopSnapshot {
            clients: vec![client("a"), client("b")],
            ..TopSnapshot::default()
        }
    }

    fn press(state: &mut TopState, code: KeyCode) -> TopAction {
        state.handle_key(KeyEvent::new(code, KeyModifiers::NONE), &snapshot())
    }

    #[test]
    fn a_client_is_disconnected_only_after_a_yes() {
        let mut state = TopState::default();
        press(&mut state, KeyCode::Down);
        assert_eq!(press(&mut state, KeyCode::Char('k')), TopAction::Redraw);
        assert_eq!(state.mode, TopMode::Confirm("b".to_owned()));
        assert_eq!(press(&mut state, KeyCode::Enter), TopAction::Redraw);
        assert_eq!(state.notice, "not disconnected");
        press(&mut state, KeyCode::Char('k'));
        let kick = press(&mut state, KeyCode::Char('y'));
        assert_eq!(kick, TopAction::Kick("b".to_owned()));
        assert_eq!(state.mode, TopMode::Watch);
    }

    #[test]
    fn the_mark_stays_on_a_client() {
        let mut state = TopState::default();
        for _ in 0..5 {
            press(&mut state, KeyCode::Down);
        }
        assert_eq!(state.marked, 1);
        state.fit(&TopSnapshot::default());
        assert_eq!(state.marked, 0);
    }

    #[test]
    fn keys_sort_filter_and_end() {
        let mut state = TopState::default();
        assert_eq!(press(&mut state, KeyCode::Char('u')), TopAction::Refresh);
        assert_eq!(state.sort, TopSort::Queue);
        press(&mut state, KeyCode::Char('/'));
        for typed in "user=aq".chars() {
            press(&mut state, KeyCode::Char(typed));
        }
        press(&mut state, KeyCode::Backspace);
        assert_eq!(press(&mut state, KeyCode::Enter), TopAction::Refresh);
        assert_eq!(state.filter, "user=a");
        press(&mut state, KeyCode::Char('/'));
        press(&mut state, KeyCode::Char('x'));
        assert_eq!(press(&mut state, KeyCode::Esc), TopAction::Redraw);
        assert_eq!(state.filter, "user=a");
        press(&mut state, KeyCode::Char('?'));
        assert_eq!(press(&mut state, KeyCode::Char('q')), TopAction::Redraw);
        assert_eq!(press(&mut state, KeyCode::Char('q')), TopAction::Quit);
        let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(state.handle_key(key, &snapshot()), TopAction::Interrupt);
    }
}
