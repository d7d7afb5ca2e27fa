//! A payload made ready once and written for each message.

use std::io;
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;

use super::checksum::{self, CHECKSUM_DIGITS};
use super::filler::Filler;
use super::number::Range;
use super::parse::{self, Piece, PlaceError};
use super::place::Place;
use crate::mark::{JSON_PREFIX, MARK_BYTES, MARK_DIGITS, Mark, TEXT_PREFIX};
use crate::scenario::PayloadSpec;

/// Longest payload: 16 MiB, beyond which a message is a file transfer. Also the longest file read.
pub const PAYLOAD_BYTES_MAX: u32 = 16 * 1024 * 1024;

/// Places of one text at most.
pub const PLACES_MAX: usize = 1_024;

/// Any seed will do: the bytes only need to be incompressible.
const RANDOM_BYTES_SEED: u64 = 1;

/// Characters of a text shown in an error.
const SHOWN_CHARS_MAX: usize = 120;

/// Reads the file of a payload; one that is longer than [`PAYLOAD_BYTES_MAX`] may be cut after one
/// byte more.
pub type ReadFile<'a> = &'a dyn Fn(&Path) -> io::Result<Vec<u8>>;

/// The payloads of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    body: Body,
    bytes_max: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Body {
    /// The same bytes each time; the mark replaces the first of them.
    Fixed(Vec<u8>),
    /// A mark and a checksum in digits between two literals, then the rest of the text.
    Text {
        before_mark: &'static [u8],
        after_mark: &'static [u8],
        parts: Vec<Part>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(Vec<u8>),
    Place(Place),
}

/// Why a payload cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// The mark does not fit.
    #[error(
        "a payload of {bytes} bytes is too short: each message begins with a mark of {MARK_BYTES} bytes"
    )]
    TooShort {
        /// Its length.
        bytes: usize,
    },
    /// Longer than [`PAYLOAD_BYTES_MAX`].
    #[error("the payload is longer than {PAYLOAD_BYTES_MAX} bytes: choose a shorter one")]
    TooLong,
    /// The file cannot be read.
    #[error("cannot read the payload from {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A place cannot be filled in.
    #[error("bad payload template: {0}")]
    Place(#[from] PlaceError),
    /// More than [`PLACES_MAX`].
    #[error("the payload template has {places} places: at most {PLACES_MAX} are filled in")]
    Places {
        /// Their number.
        places: usize,
    },
    /// Neither an object nor a text.
    #[error("the payload template starts with a brace, so it has to be a JSON object: {source}")]
    Json {
        /// The error and its position.
        source: serde_json::Error,
    },
    /// The values of placeholders do not fit into their surroundings.
    #[error(
        "the payload template is no longer JSON when its places are filled in: {source}: {filled}"
    )]
    FilledJson {
        /// The error and its position in the filled text.
        source: serde_json::Error,
        /// The start of the filled text.
        filled: String,
    },
}

impl Template {
    /// Makes a payload ready; a file is read once.
    ///
    /// A file is sent as it is: if it contains a JSON object, the mark becomes its first member;
    /// otherwise its first 16 bytes are overwritten. Placeholders are filled in only in texts of
    /// the scenario.
    ///
    /// # Errors
    /// The payload has no room for the mark, is too long, cannot be read, or is a text with bad
    /// places or a brace at its start that does not begin a JSON object.
    pub fn new(spec: &PayloadSpec, read: ReadFile<'_>) -> Result<Self, PayloadError> {
        let body = match spec {
            PayloadSpec::Size(bytes) => fixed(vec![b'.'; length(*bytes)?])?,
            PayloadSpec::Random(bytes) => fixed(random_bytes(length(*bytes)?))?,
            PayloadSpec::Template(text) => of_text(text)?,
            PayloadSpec::File(path) => of_file(contents(path, read)?)?,
        };
        let bytes_max = u32::try_from(body.bytes_max()).unwrap_or(u32::MAX);
        if bytes_max > PAYLOAD_BYTES_MAX {
            return Err(PayloadError::TooLong);
        }
        Ok(Self { body, bytes_max })
    }

    /// Bytes of the longest payload that can be written.
    pub const fn bytes_max(&self) -> u32 {
        self.bytes_max
    }

    /// Whether the time of the filler is of any use.
    pub fn needs_time(&self) -> bool {
        let Body::Text { parts, .. } = &self.body else {
            return false;
        };
        parts
            .iter()
            .any(|part| matches!(part, Part::Place(place) if place.needs_time()))
    }

    /// Replaces the contents of `out` by the payload of one message.
    pub fn write(&self, mark: Mark, fill: &mut Filler, out: &mut Vec<u8>) {
        out.clear();
        match &self.body {
            Body::Fixed(bytes) => {
                out.extend_from_slice(bytes);
                mark.write(out);
            }
            Body::Text {
                before_mark,
                after_mark,
                parts,
            } => {
                out.extend_from_slice(before_mark);
                mark.write_digits(out);
                let checksum_at = out.len();
                out.resize(checksum_at + CHECKSUM_DIGITS, b'0');
                out.extend_from_slice(after_mark);
                for part in parts {
                    match part {
                        Part::Literal(literal) => out.extend_from_slice(literal),
                        Part::Place(place) => place.write(mark, fill, out),
                    }
                }
                checksum::write(out, checksum_at);
            }
        }
    }

    /// Whether a payload with a mark was written from this template: its length and each of its
    /// bytes, but for the mark of a binary payload. Costs about as much as reading it once.
    pub fn matches(&self, payload: &[u8]) -> bool {
        match &self.body {
            Body::Fixed(bytes) => {
                payload.len() == bytes.len()
                    && (bytes.len() <= MARK_BYTES || payload[MARK_BYTES..] == bytes[MARK_BYTES..])
            }
            Body::Text { before_mark, .. } => {
                checksum::is_right(payload, before_mark.len() + MARK_DIGITS)
            }
        }
    }
}

impl Template {
    /// Whether a payload without a legible mark may have been written from this template: all of it
    /// that is the same in each message is there, but for one byte of a text before its mark.
    pub(crate) fn resembles(&self, payload: &[u8]) -> bool {
        match &self.body {
            Body::Fixed(_) => self.matches(payload),
            Body::Text { before_mark, .. } => {
                let head = payload.get(..before_mark.len()).unwrap_or_default();
                let pairs = head.iter().zip(*before_mark);
                let same = pairs.filter(|(is, was)| is == was).count();
                same + 1 >= before_mark.len()
            }
        }
    }
}

impl Body {
    fn bytes_max(&self) -> usize {
        match self {
            Self::Fixed(bytes) => bytes.len(),
            Self::Text {
                before_mark,
                after_mark,
                parts,
            } => {
                let parts = parts.iter().map(|part| match part {
                    Part::Literal(literal) => literal.len(),
                    Part::Place(place) => place.bytes_max(),
                });
                let head = before_mark.len() + MARK_DIGITS + CHECKSUM_DIGITS + after_mark.len();
                head + parts.sum::<usize>()
            }
        }
    }

    fn text(parts: Vec<Part>) -> Self {
        Self::Text {
            before_mark: TEXT_PREFIX,
            after_mark: b" ",
            parts,
        }
    }

    /// The object's opening brace is not among the parts.
    fn object(parts: Vec<Part>) -> Self {
        let is_empty = match parts.first() {
            Some(Part::Literal(literal)) => literal.trim_ascii_start().starts_with(b"}"),
            _ => false,
        };
        Self::Text {
            before_mark: JSON_PREFIX,
            after_mark: if is_empty { b"\"" } else { b"\"," },
            parts,
        }
    }
}

fn length(bytes: u32) -> Result<usize, PayloadError> {
    if bytes > PAYLOAD_BYTES_MAX {
        return Err(PayloadError::TooLong);
    }
    usize::try_from(bytes).map_err(|_| PayloadError::TooLong)
}

fn fixed(bytes: Vec<u8>) -> Result<Body, PayloadError> {
    if bytes.len() < MARK_BYTES {
        return Err(PayloadError::TooShort { bytes: bytes.len() });
    }
    Ok(Body::Fixed(bytes))
}

fn random_bytes(length: usize) -> Vec<u8> {
    let mut filler = Filler::new(RANDOM_BYTES_SEED);
    let numbers = std::iter::repeat_with(|| filler.random().to_be_bytes());
    numbers.flatten().take(length).collect()
}

fn of_text(text: &str) -> Result<Body, PayloadError> {
    let pieces = parse::pieces(text)?;
    let is_place = |piece: &&Piece<'_>| matches!(piece, Piece::Place(..));
    let places = pieces.iter().filter(is_place).count();
    if places > PLACES_MAX {
        return Err(PayloadError::Places { places });
    }
    let start = text.trim_ascii_start();
    let begins_with_place = pieces
        .iter()
        .find(|piece| !piece.is_blank())
        .is_some_and(|piece| is_place(&piece));
    // A place in double braces begins no object either.
    let is_object = start.starts_with('{') && !start.starts_with("{{") && !begins_with_place;
    if !is_object {
        return Ok(Body::text(parts(&pieces)));
    }
    check_json(&pieces)?;
    let mut parts = parts(&pieces);
    if let Some(Part::Literal(literal)) = parts.first_mut() {
        let opening = literal.iter().position(|byte| *byte == b'{');
        literal.drain(..=opening.unwrap_or(0));
    }
    Ok(Body::object(parts))
}

fn parts(pieces: &[Piece<'_>]) -> Vec<Part> {
    let mut parts = Vec::new();
    for piece in pieces {
        match (piece, parts.last_mut()) {
            (Piece::Literal(literal), Some(Part::Literal(last))) => {
                last.extend_from_slice(literal.as_bytes());
            }
            (Piece::Literal(literal), _) => parts.push(Part::Literal(literal.as_bytes().to_vec())),
            (Piece::Place(place, _), _) => parts.push(Part::Place(*place)),
        }
    }
    parts
}

/// Checks that a template is JSON whatever its places are filled with.
fn check_json(pieces: &[Piece<'_>]) -> Result<(), PayloadError> {
    // As long as the template itself, so that the position of an error is the one in the template.
    let sample = filled(pieces, |place, source, out| {
        let letter = if place.is_number() { b'1' } else { b'x' };
        out.extend(std::iter::repeat_n(letter, source.len()));
    });
    is_json(&sample).map_err(|source| PayloadError::Json { source })?;
    // A sign or a zero must not end up within another number.
    for write in [Range::write_low, Range::write_nearest_to_zero] {
        let sample = filled(pieces, |place, _, out| match place {
            Place::Number(range) => write(range, out),
            place if place.is_number() => out.push(b'0'),
            _ => out.push(b'x'),
        });
        is_json(&sample).map_err(|source| PayloadError::FilledJson {
            source,
            filled: String::from_utf8_lossy(&sample)
                .chars()
                .take(SHOWN_CHARS_MAX)
                .collect(),
        })?;
    }
    Ok(())
}

fn filled(pieces: &[Piece<'_>], fill: impl Fn(Place, &str, &mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Literal(literal) => out.extend_from_slice(literal.as_bytes()),
            Piece::Place(place, source) => fill(*place, source, &mut out),
        }
    }
    out
}

fn is_json(text: &[u8]) -> Result<(), serde_json::Error> {
    serde_json::from_slice::<IgnoredAny>(text).map(|_| ())
}

fn of_file(bytes: Vec<u8>) -> Result<Body, PayloadError> {
    let is_object = bytes.trim_ascii_start().starts_with(b"{")
        && std::str::from_utf8(&bytes).is_ok()
        && is_json(&bytes).is_ok();
    if !is_object {
        return fixed(bytes);
    }
    let inside = bytes.trim_ascii_start().get(1..).unwrap_or_default();
    Ok(Body::object(vec![Part::Literal(inside.to_vec())]))
}

fn contents(path: &Path, read: ReadFile<'_>) -> Result<Vec<u8>, PayloadError> {
    let bytes = read(path).map_err(|source| PayloadError::File {
        path: path.to_owned(),
        source,
    })?;
    if bytes.len() > length(PAYLOAD_BYTES_MAX)? {
        return Err(PayloadError::TooLong);
    }
    Ok(bytes)
}
