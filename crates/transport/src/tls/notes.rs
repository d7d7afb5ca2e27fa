//! Information that the library passes to its callbacks but not to its caller.
//!
//! The callbacks are shared by all connections of a listener and do not learn their connection, but
//! they are called on the thread that hands over the bytes and before it gets its answer: so they
//! leave a note, which the caller takes at once.

use std::cell::RefCell;

thread_local! {
    static NOTES: RefCell<Notes> = const {
        RefCell::new(Notes { server_name: None, refused: None })
    };
}

#[derive(Default)]
struct Notes {
    server_name: Option<Box<str>>,
    refused: Option<Box<str>>,
}

/// The client has requested this name.
pub(super) fn note_server_name(name: Option<&str>) {
    NOTES.with_borrow_mut(|notes| notes.server_name = name.map(Into::into));
}

/// A certificate of this subject was refused.
pub(super) fn note_refused(subject: Box<str>) {
    NOTES.with_borrow_mut(|notes| notes.refused = Some(subject));
}

/// The name that the client has requested since the last call.
pub(super) fn take_server_name() -> Option<Box<str>> {
    NOTES.with_borrow_mut(|notes| notes.server_name.take())
}

/// The subject of the refused certificate since the last call.
pub(super) fn take_refused() -> Option<Box<str>> {
    NOTES.with_borrow_mut(|notes| notes.refused.take())
}

/// Forgets the notes of another connection.
pub(super) fn clear() {
    NOTES.take();
}
