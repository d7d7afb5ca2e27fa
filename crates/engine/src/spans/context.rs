//! The user properties `traceparent` and `tracestate`, as W3C Trace Context defines their texts.

use thrum_codec::properties::UserProperties;

/// Name of the property with the identifiers.
pub(super) const TRACEPARENT: &str = "traceparent";
/// Name of the property with the state of other systems.
pub(super) const TRACESTATE: &str = "tracestate";
/// Length of the text of version 00, and the shortest one of any version.
const TEXT_LEN: usize = 55;
/// The flag of a trace that is recorded.
const SAMPLED: u8 = 1;
/// The flag of an identifier of a trace that is random.
const RANDOM: u8 = 2;
/// Bytes of the state that are kept with a span; W3C asks for 512 at least.
const STATE_BYTES_MAX: usize = 1024;

/// A span of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace; never 0.
    pub trace_id: u128,
    /// The span; never 0.
    pub span_id: u64,
}

/// The span that a message was published in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) context: TraceContext,
    flags: u8,
    pub(super) state: Option<Box<str>>,
}

impl Parent {
    /// The span that user properties name; none if they name none, or more than one.
    pub(super) fn of(properties: &UserProperties<'_>) -> Option<Self> {
        let mut found = None;
        let mut state = String::new();
        for (name, value) in properties {
            match name {
                TRACEPARENT if found.is_none() => found = Some(parse(value)?),
                TRACEPARENT => return None,
                TRACESTATE => add_state(&mut state, value),
                _ => {}
            }
        }
        found.map(|(context, flags)| Self {
            context,
            flags,
            state: (!state.is_empty()).then(|| state.into()),
        })
    }

    pub(super) const fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The flags of a span below it that is recorded.
    pub(super) const fn flags(&self) -> u8 {
        (self.flags & RANDOM) | SAMPLED
    }
}

/// Adds to a list, as far as there is room.
fn add_state(state: &mut String, more: &str) {
    if state.len() + more.len() >= STATE_BYTES_MAX {
        return;
    }
    if !state.is_empty() {
        state.push(',');
    }
    state.push_str(more);
}

/// The flags of a trace that begins here.
pub(super) const NEW_FLAGS: u8 = SAMPLED | RANDOM;

impl TraceContext {
    /// The text of version 00.
    pub(super) fn text(&self, flags: u8) -> String {
        format!(
            "00-{:032x}-{:016x}-{flags:02x}",
            self.trace_id, self.span_id
        )
    }
}

/// Reads a `traceparent`: that of a later version begins as that of version 00.
fn parse(text: &str) -> Option<(TraceContext, u8)> {
    let (version, rest) = (hex(text.get(..2)?)?, text.get(2..TEXT_LEN)?);
    let is_complete = text.len() == TEXT_LEN || text.as_bytes()[TEXT_LEN] == b'-';
    if version == 0xFF || (version == 0 && text.len() > TEXT_LEN) || !is_complete {
        return None;
    }
    let mut parts = rest.split('-');
    let ("", trace, span, flags, None) = (
        parts.next()?,
        parts.next()?,
        parts.next()?,
        parts.next()?,
        parts.next(),
    ) else {
        return None;
    };
    if (trace.len(), span.len(), flags.len()) != (32, 16, 2) {
        return None;
    }
    let context = TraceContext {
        trace_id: hex(trace).filter(|id| *id > 0)?,
        span_id: u64::try_from(hex(span)?).ok().filter(|id| *id > 0)?,
    };
    Some((context, u8::try_from(hex(flags)?).ok()?))
}

/// A number of lower-case hexadecimal digits.
fn hex(text: &str) -> Option<u128> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_number = text.bytes().all(is_digit);
    u128::from_str_radix(text, 16).ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_text_of_version_00_is_read_and_written() {
        let (context, flags) = parse(TEXT).expect("it is valid");
        assert_eq!(context.trace_id, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!((context.span_id, flags), (0x00f0_67aa_0ba9_02b7, 1));
        assert_eq!(context.text(flags), TEXT);
    }

    #[test]
    fn a_later_version_may_be_longer_and_version_00_may_not() {
        let later = TEXT.replacen("00", "cc", 1);
        for valid in [later.clone(), format!("{later}-what-comes")] {
            assert!(parse(&valid).is_some(), "{valid}");
        }
        for invalid in [
            format!("{later}.what"),
            format!("{TEXT}-what"),
            TEXT.replacen("00", "ff", 1),
        ] {
            assert_eq!(parse(&invalid), None, "{invalid}");
        }
    }

    #[test]
    fn damaged_texts_are_none() {
        let zero_trace = format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32));
        let zero_span = format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{}-01", "0".repeat(16));
        let upper = TEXT.replace('b', "B");
        let signed = TEXT.replace("-00f0", "-+0f0");
        let foreign = TEXT.replace("4bf9", "4bé9").replacen("35", "3", 1);
        let moved = "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01";
        for text in [
            &zero_trace,
            &zero_span,
            &upper,
            &signed,
            &foreign,
            moved,
            "",
            "00-",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        for len in 0..TEXT_LEN {
            assert_eq!(parse(&TEXT[..len]), None, "{len}");
        }
    }

    fn parent(properties: &[(&str, &str)]) -> Option<Parent> {
        Parent::of(&UserProperties::Listed(properties))
    }

    #[test]
    fn a_message_with_two_parents_has_none() {
        assert!(parent(&[("traceparent", TEXT)]).is_some_and(|parent| parent.is_sampled()));
        assert_eq!(
            parent(&[("traceparent", TEXT), ("traceparent", TEXT)]),
            None
        );
        assert_eq!(
            parent(&[("Traceparent", TEXT), ("tracestate", "a=1")]),
            None
        );
        let unsampled = format!("{}00", &TEXT[..53]);
        assert!(parent(&[("traceparent", &unsampled)]).is_some_and(|parent| !parent.is_sampled()));
    }

    #[test]
    fn the_states_of_a_message_are_one_list() {
        let state = |properties: &[(&str, &str)]| parent(properties)?.state;
        assert_eq!(state(&[("traceparent", TEXT)]), None);
        let two = [
            ("tracestate", "a=1"),
            ("traceparent", TEXT),
            ("tracestate", "b=2"),
        ];
        assert_eq!(state(&two).as_deref(), Some("a=1,b=2"));
        let long = "x".repeat(STATE_BYTES_MAX);
        assert_eq!(state(&[("traceparent", TEXT), ("tracestate", &long)]), None);
    }
}
