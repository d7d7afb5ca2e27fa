//! A text as literal parts and places.

use super::number::Range;
use super::place::Place;

/// Digits of one `{random:N}` at most.
pub(super) const RANDOM_DIGITS_MAX: usize = 65_536;

/// Most bytes of a placeholder's text: the end of an unclosed one is not searched for any further.
const PLACE_BYTES_MAX: usize = 64;

/// Words that make a place by themselves.
const WORDS: [(&str, Place); 5] = [
    ("i", Place::Client),
    ("seq", Place::Sequence),
    ("now_ms", Place::NowMillis),
    ("now", Place::Now),
    ("uuid", Place::Uuid),
];

/// Words that need limits.
const WORDS_WITH_LIMITS: [&str; 3] = ["random", "int", "float"];

/// A place that cannot be filled in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {{{place}}} {why}")]
pub struct PlaceError {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// The text between the braces.
    pub place: String,
    /// The error and the correct notation.
    pub why: &'static str,
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Literal(&'a str),
    /// A place and its text.
    Place(Place, &'a str),
}

impl Piece<'_> {
    /// Whether nothing is seen of it.
    pub(super) fn is_blank(&self) -> bool {
        matches!(self, Self::Literal(literal) if literal.trim_ascii().is_empty())
    }
}

/// The parts of a text, in order.
pub(super) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, PlaceError> {
    let mut pieces = Vec::new();
    let (mut literal_start, mut at) = (0, 0);
    while let Some(brace) = text[at..].find('{') {
        let brace = at + brace;
        at = brace + 1;
        let Some(candidate) = candidate(&text[at..]) else {
            if let Some(end) = escaped_end(&text[at..]) {
                // Leaves out the outer braces.
                pieces.push(Piece::Literal(&text[literal_start..brace]));
                pieces.push(Piece::Literal(&text[at..at + end]));
                at += end + 1;
                literal_start = at;
            }
            continue;
        };
        let place = place(candidate).map_err(|why| error_at(text, brace, candidate, why))?;
        let end = at + candidate.len() + 1;
        let source = text.get(brace..end).filter(|source| source.ends_with('}'));
        let source = source.ok_or_else(|| error_at(text, brace, candidate, "is not closed"))?;
        pieces.push(Piece::Literal(&text[literal_start..brace]));
        pieces.push(Piece::Place(place, source));
        (at, literal_start) = (end, end);
    }
    pieces.push(Piece::Literal(&text[literal_start..]));
    pieces.retain(|piece| *piece != Piece::Literal(""));
    Ok(pieces)
}

/// The text between the braces of a placeholder, given the text after the opening one.
fn candidate(after_brace: &str) -> Option<&str> {
    let word_end =
        after_brace.find(|letter: char| !letter.is_ascii_lowercase() && letter != '_')?;
    let (word, rest) = after_brace.split_at(word_end);
    let takes_limits = WORDS_WITH_LIMITS.contains(&word);
    let is_known = takes_limits || WORDS.iter().any(|(known, _)| *known == word);
    match rest.as_bytes().first() {
        Some(b'}') if is_known => Some(word),
        Some(b':') if is_known => {
            let limits = rest.bytes().take(PLACE_BYTES_MAX);
            let end = limits
                .take_while(|byte| *byte != b'}' && *byte != b'\n')
                .count();
            // One that is not closed is shown up to there.
            let end = (0..=word_end + end)
                .rev()
                .find(|end| after_brace.is_char_boundary(*end))?;
            Some(&after_brace[..end])
        }
        _ => None,
    }
}

/// The end of a place in double braces with one brace on each side, given what follows the first
/// one.
fn escaped_end(after_brace: &str) -> Option<usize> {
    let inner = candidate(after_brace.strip_prefix('{')?)?;
    let end = 1 + inner.len();
    after_brace[end..].starts_with("}}").then_some(end + 1)
}

fn place(text: &str) -> Result<Place, &'static str> {
    let mut parts = text.split(':');
    let word = parts.next().unwrap_or_default();
    let limits: Vec<&str> = parts.collect();
    if let Some((_, place)) = WORDS.iter().find(|(known, _)| *known == word) {
        let place = limits.is_empty().then_some(*place);
        return place.ok_or("accepts no argument");
    }
    match (word, limits.as_slice()) {
        ("random", [digits]) => {
            let digits = digits.parse().ok();
            let digits = digits.filter(|digits| (1..=RANDOM_DIGITS_MAX).contains(digits));
            digits
                .map(|digits| Place::Random { digits })
                .ok_or("needs its number of digits, 1 to 65536, such as {random:8}")
        }
        ("random", _) => Err("needs its number of digits, such as {random:8}"),
        ("int", [low, high]) => Range::whole(low, high).map(Place::Number),
        ("int", _) => Err("needs two limits, such as {int:0:100}"),
        (_, [low, high]) => Range::decimal(low, high).map(Place::Number),
        _ => Err("needs two limits, such as {float:-5:40.5}"),
    }
}

fn error_at(text: &str, at: usize, place: &str, why: &'static str) -> PlaceError {
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    PlaceError {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        place: place.to_owned(),
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Literals as they are, places in angle brackets.
    fn shown(text: &str) -> String {
        let pieces = pieces(text).unwrap().into_iter();
        pieces
            .map(|piece| match piece {
                Piece::Literal(literal) => literal.to_owned(),
                Piece::Place(_, source) => format!("<{}>", &source[1..source.len() - 1]),
            })
            .collect()
    }

    #[test]
    fn only_known_words_are_places() {
        for (text, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("{i}", "<i>"),
            ("a{i}b{seq}c", "a<i>b<seq>c"),
            ("{now}{now_ms}{uuid}", "<now><now_ms><uuid>"),
            (
                "{random:8} {int:-1:1} {float:0:1.5}",
                "<random:8> <int:-1:1> <float:0:1.5>",
            ),
            (r#"{"a":{"i":{i}}}"#, r#"{"a":{"i":<i>}}"#),
            (r#"{"a":{}}"#, r#"{"a":{}}"#),
            (
                "{ i} {I} {index} {nowms} {} {",
                "{ i} {I} {index} {nowms} {} {",
            ),
            ("{{i}}", "{i}"),
            ("{{{i}}}", "{{i}}"),
            ("{{i}", "{<i>"),
            ("{{random:8}}é{i}", "{random:8}é<i>"),
            ("{é}{i", "{é}{i"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn a_bad_place_is_named_with_its_position() {
        for (text, position, place) in [
            ("{random}", (1, 1), "random"),
            ("ä {random:0}", (1, 3), "random:0"),
            ("{random:65537}", (1, 1), "random:65537"),
            ("{random:8:9}", (1, 1), "random:8:9"),
            ("a\n b {int:1}", (2, 4), "int:1"),
            ("{int:a:b}", (1, 1), "int:a:b"),
            ("{int:5:4}", (1, 1), "int:5:4"),
            ("{float:0:1e9}", (1, 1), "float:0:1e9"),
            ("{i:5}", (1, 1), "i:5"),
            ("{random:8", (1, 1), "random:8"),
            ("{random:8\n}", (1, 1), "random:8"),
        ] {
            let error = pieces(text).unwrap_err();
            assert_eq!((error.line, error.column), position, "{error}");
            assert_eq!(error.place, place, "{error}");
        }
        let error = pieces("{int:5:4}").unwrap_err().to_string();
        assert_eq!(
            error,
            "line 1, column 1: {int:5:4} has its limits in the wrong order"
        );
        let long = format!("{{int:{}", "é".repeat(100));
        assert!(pieces(&long).unwrap_err().place.len() <= 4 + PLACE_BYTES_MAX);
    }
}
