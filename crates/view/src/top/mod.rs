//! The live screen of a running broker: the caller provides figures and does what keys ask for.
//!
//! ```text
//!   caller: TopSnapshot -> TopView::draw     TopView::next_action -> TopAction -> caller
//! ```

mod draw;
mod figures;
mod state;

use std::io;
use std::time::Duration;

use crossterm::event::{self, Event};

use crate::surroundings;
use crate::terminal::{self, Screen};

pub use figures::{TopClient, TopFigures, TopSnapshot};
use state::TopState;
pub use state::{TopAction, TopSort};

/// Most keys that are handled without a frame between them; a pasted text must not stop the
/// drawing.
const KEYS_MAX: u32 = 256;

/// The full-screen view of a broker. Dropped, it gives the terminal back.
#[derive(Debug)]
pub struct TopView {
    screen: Screen,
    state: TopState,
}

impl TopView {
    /// Takes the terminal.
    ///
    /// # Errors
    /// The terminal cannot be drawn on.
    pub fn start(sort: TopSort, filter: &str) -> io::Result<Self> {
        Ok(Self {
            screen: terminal::take()?,
            state: TopState::new(surroundings::look(), sort, filter),
        })
    }

    /// The order of the clients.
    pub fn sort(&self) -> TopSort {
        self.state.sort
    }

    /// The filter of the clients; empty for none.
    pub fn filter(&self) -> &str {
        &self.state.filter
    }

    /// Shows a message in the last line.
    pub fn say(&mut self, text: &str) {
        self.state.say(text);
    }

    /// Draws a frame.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn draw(&mut self, snapshot: &TopSnapshot) -> io::Result<()> {
        self.state.fit(snapshot);
        let state = &self.state;
        self.screen
            .draw(|frame| draw::render(frame, snapshot, state))?;
        Ok(())
    }

    /// Waits for a key that changes what is shown, or asks for something; none after the time.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn next_action(
        &mut self,
        snapshot: &TopSnapshot,
        timeout: Duration,
    ) -> io::Result<Option<TopAction>> {
        if !event::poll(timeout)? {
            return Ok(None);
        }
        for _ in 0..KEYS_MAX {
            let action = match event::read()? {
                Event::Key(key) => self.state.handle_key(key, snapshot),
                _ => TopAction::Redraw,
            };
            if action != TopAction::Redraw || !event::poll(Duration::ZERO)? {
                return Ok(Some(action));
            }
        }
        Ok(Some(TopAction::Redraw))
    }
}

impl Drop for TopView {
    fn drop(&mut self) {
        terminal::give_back();
    }
}
