//! What the library tells its callbacks but not its caller.
//!
//! The callbacks are shared by all connections of a listener and do not learn which one they are
//! asked for, but they are asked on the thread that hands over the bytes and before it gets its
//! answer: so they leave a note, and the caller takes it at once.

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

/// The client has asked for this name.
pub(super) fn note_server_name(name: Option<&str>) {
    NOTES.with_borrow_mut(|notes| notes.server_name = name.map(Into::into));
}

/// A certificate of this subject was refused.
pub(super) fn note_refused(subject: Box<str>) {
    NOTES.with_borrow_mut(|notes| notes.refused = Some(subject));
}

/// The name that the client has asked for since the last call.
pub(super) fn take_server_name() -> Option<Box<str>> {
    NOTES.with_borrow_mut(|notes| notes.server_name.take())
}

/// The subject of the certificate that was refused since the last call.
pub(super) fn take_refused() -> Option<Box<str>> {
    NOTES.with_borrow_mut(|notes| notes.refused.take())
}

/// Forgets what another connection has left.
pub(super) fn clear() {
    NOTES.take();
}
