//! A format text to its pieces.

use std::iter::Peekable;
use std::str::Chars;

use super::{Layout, Parameter, Segment};

/// No field is wider: a typing error must not fill the disk.
const WIDTH_MAX: usize = 10_000;

const PARAMETERS: &str =
    "%%, %A, %C, %D, %E, %F, %I, %j, %J, %l, %m, %p, %P, %q, %r, %R, %S, %t, %U, %x, %X";
const ESCAPES: &str = r"\\, \0, \a, \e, \n, \r, \t, \v";

pub(super) fn segments(text: &str) -> Result<Vec<Segment>, String> {
    let mut segments = Vec::new();
    let mut literal = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let segment = match character {
            '%' if characters.next_if_eq(&'%').is_some() => Err('%'),
            '@' if characters.next_if_eq(&'@').is_some() => Err('@'),
            '%' => Ok(parameter(&mut characters)?),
            '@' => Ok(time(&mut characters)?),
            '\\' => Err(escape(&mut characters)?),
            other => Err(other),
        };
        match segment {
            Err(character) => literal.push(character),
            Ok(segment) => {
                push_literal(&mut literal, &mut segments);
                segments.push(segment);
            }
        }
    }
    push_literal(&mut literal, &mut segments);
    Ok(segments)
}

fn push_literal(literal: &mut String, segments: &mut Vec<Segment>) {
    if !literal.is_empty() {
        segments.push(Segment::Literal(std::mem::take(literal).into_bytes()));
    }
}

fn parameter(characters: &mut Peekable<Chars<'_>>) -> Result<Segment, String> {
    let mut layout = Layout::default();
    while let Some(flag) = characters.next_if(|character| matches!(character, '-' | '0')) {
        layout.left |= flag == '-';
        layout.zeros |= flag == '0';
    }
    layout.width = number(characters)?.unwrap_or(0);
    if characters.next_if_eq(&'.').is_some() {
        layout.precision = Some(number(characters)?.unwrap_or(0));
    }
    let Some(letter) = characters.next() else {
        return Err(incomplete());
    };
    Ok(Segment::Parameter(named(letter)?, layout))
}

fn named(letter: char) -> Result<Parameter, String> {
    Ok(match letter {
        'A' => Parameter::TopicAlias,
        'C' => Parameter::ContentType,
        'D' => Parameter::CorrelationData,
        'E' => Parameter::MessageExpiry,
        'F' => Parameter::PayloadFormat,
        'I' => Parameter::IsoTime,
        'j' => Parameter::Json,
        'J' => Parameter::JsonPayload,
        'l' => Parameter::Length,
        'm' => Parameter::PacketId,
        'p' => Parameter::Payload,
        'P' => Parameter::UserProperties,
        'q' => Parameter::QoS,
        'R' => Parameter::ResponseTopic,
        'r' => Parameter::Retain,
        'S' => Parameter::SubscriptionIdentifiers,
        't' => Parameter::Topic,
        'U' => Parameter::UnixTime,
        'x' => Parameter::LowerHex,
        'X' => Parameter::UpperHex,
        _ => {
            return Err(format!(
                "-F: %{letter} is not a parameter; known: {PARAMETERS}"
            ));
        }
    })
}

fn time(characters: &mut Peekable<Chars<'_>>) -> Result<Segment, String> {
    match characters.next() {
        Some('N') => Ok(Segment::Nanoseconds),
        Some(letter) if letter.is_ascii_alphabetic() => Ok(Segment::Time(letter)),
        Some(other) => Err(format!(
            "-F: @{other} is not a time; @ is followed by a letter of strftime"
        )),
        None => Err(incomplete()),
    }
}

fn escape(characters: &mut Peekable<Chars<'_>>) -> Result<char, String> {
    Ok(match characters.next() {
        Some('\\') => '\\',
        Some('0') => '\0',
        Some('a') => '\x07',
        Some('e') => '\x1b',
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('v') => '\x0b',
        Some(other) => return Err(format!("-F: \\{other} is not an escape; known: {ESCAPES}")),
        None => return Err(incomplete()),
    })
}

fn number(characters: &mut Peekable<Chars<'_>>) -> Result<Option<usize>, String> {
    let mut number = None;
    while let Some(digit) = characters
        .peek()
        .and_then(|character| character.to_digit(10))
    {
        characters.next();
        let value = number.unwrap_or(0) * 10 + digit as usize;
        if value > WIDTH_MAX {
            return Err(format!("-F: a width is over {WIDTH_MAX}"));
        }
        number = Some(value);
    }
    Ok(number)
}

fn incomplete() -> String {
    "-F: the format ends in the middle of a parameter; write %%, @@ or \\\\ for the character itself"
        .to_owned()
}
