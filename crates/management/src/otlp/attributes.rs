//! What all signals share: attributes, the resource, and the scope.

use crate::wire::Message;

/// Name of the broker as a service, and of the scope of all that it exports.
const SERVICE: &str = "thrum";

/// An attribute with a text: `KeyValue` (key 1, value 2), `AnyValue` (text 1).
pub(super) fn text(out: &mut Message, field: u64, key: &str, value: &str) {
    out.message(field, |out| {
        out.text(1, key);
        out.message(2, |out| out.text(1, value));
    });
}

/// An attribute with a whole number: `AnyValue` (integer 3).
pub(super) fn whole(out: &mut Message, field: u64, key: &str, value: i64) {
    out.message(field, |out| {
        out.text(1, key);
        out.message(2, |out| out.number(3, value.cast_unsigned()));
    });
}

/// An attribute with a number: `AnyValue` (double 4).
pub(super) fn real(out: &mut Message, field: u64, key: &str, value: f64) {
    out.message(field, |out| {
        out.text(1, key);
        out.message(2, |out| out.double(4, value));
    });
}

/// An attribute that is true or false: `AnyValue` (boolean 2).
pub(super) fn truth(out: &mut Message, field: u64, key: &str, value: bool) {
    out.message(field, |out| {
        out.text(1, key);
        out.message(2, |out| out.number(2, value.into()));
    });
}

/// `Resource` (attributes 1) of a broker: what is configured replaces what is there by default.
pub(super) fn resource(node: &str, version: &str, configured: &[(String, String)]) -> Vec<u8> {
    let defaults = [
        ("service.name", SERVICE),
        ("service.instance.id", node),
        ("service.version", version),
    ];
    let is_configured = |key: &str| configured.iter().any(|(name, _)| name == key);
    let mut out = Message::default();
    for (key, value) in defaults {
        if !is_configured(key) {
            text(&mut out, 1, key, value);
        }
    }
    for (key, value) in configured {
        text(&mut out, 1, key, value);
    }
    out.0
}

/// A request for any signal: the resource, and what it has, by scope. The messages of the three
/// signals have the same numbers: resource 1, scope 2, in a list 1.
pub(super) fn request(resource: &[u8], scopes: impl FnOnce(&mut Message)) -> Vec<u8> {
    let mut out = Message::default();
    out.message(1, |out| {
        out.bytes(1, resource);
        scopes(out);
    });
    out.0
}

/// The things of one scope: `InstrumentationScope` (name 1, version 2) 1, things 2.
pub(super) fn scope(out: &mut Message, name: Option<&str>, things: impl FnOnce(&mut Message)) {
    out.message(2, |out| {
        out.message(1, |out| {
            out.text(1, name.unwrap_or(SERVICE));
            out.text(2, env!("CARGO_PKG_VERSION"));
        });
        things(out);
    });
}
