//! Topic filters with placeholders: checked when a rule is made, filled for one client.

use alloc::boxed::Box;
use alloc::string::String;

use thrum_codec::{FIELD_BYTES_MAX, TopicFilter};

use super::error::{Hint, Problem, excerpt};
use crate::Identity;

/// A topic filter with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    pub(super) text: Box<str>,
    /// Only this filter, not the topics it matches.
    pub(super) is_exact: bool,
    /// Changes when it is filled.
    has_placeholders: bool,
}

/// The result of filling a filter for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filled {
    /// The filter stands at the end of the buffer.
    Whole,
    /// A value is missing: the filter matches nothing of this client.
    Nothing,
    /// A value cannot be used. The filter at the end of the buffer matches everything that it could
    /// have meant.
    Widened,
    /// The same, and it could have meant any topic; nothing stands at the end of the buffer.
    Anything,
}

enum Piece<'a> {
    Text(&'a str),
    Value(Placeholder<'a>),
}

#[derive(Clone, Copy)]
enum Placeholder<'a> {
    ClientId,
    Username,
    CommonName,
    Listener,
    Claim(&'a str),
}

impl Filter {
    /// A filter that stands for the topics it matches.
    pub(super) fn new(text: &str) -> Result<Self, Problem> {
        let has_placeholders = check(text)?;
        Ok(Self {
            text: text.into(),
            is_exact: false,
            has_placeholders,
        })
    }

    /// A filter that stands for itself alone.
    pub(super) fn exact(text: &str) -> Result<Self, Problem> {
        let mut filter = Self::new(text)?;
        filter.is_exact = true;
        Ok(filter)
    }

    /// Appends the filter for this client; see [`Filled`] for what is appended.
    pub(super) fn fill(&self, identity: &Identity, out: &mut String) -> Filled {
        if !self.has_placeholders {
            out.push_str(&self.text);
            return Filled::Whole;
        }
        let start = out.len();
        // Where the first level begins whose value cannot be used.
        let mut cut = None;
        for piece in pieces(&self.text).flatten() {
            let value = match piece {
                Piece::Text(text) => Some(text),
                Piece::Value(placeholder) => placeholder.value(identity),
            };
            let Some(value) = value.filter(|value| !value.is_empty()) else {
                out.truncate(start);
                return Filled::Nothing;
            };
            let is_usable = match piece {
                Piece::Text(_) => true,
                Piece::Value(_) => is_usable(value, out.len() == start),
            };
            if cut.is_some() {
                continue;
            }
            if is_usable && out.len() - start + value.len() <= FIELD_BYTES_MAX {
                out.push_str(value);
            } else {
                let level = out[start..].rfind('/').map_or(start, |at| start + at + 1);
                cut = Some(level);
            }
        }
        match cut {
            None => Filled::Whole,
            Some(level) => {
                out.truncate(level);
                if level == start {
                    return Filled::Anything;
                }
                out.push('#');
                Filled::Widened
            }
        }
    }
}

/// A value that would change the meaning of the filter, or that no level of a topic can be, is not
/// used. A `$` at the beginning would make the filter one of the server's topics.
fn is_usable(value: &str, is_first: bool) -> bool {
    let changes = |byte| matches!(byte, b'+' | b'#' | b'/' | 0);
    let leads_to_server = is_first && value.starts_with('$');
    !leads_to_server && !value.bytes().any(changes)
}

/// Whether the text has placeholders; they are checked, and the filter in a form that it could have
/// when filled.
fn check(text: &str) -> Result<bool, Problem> {
    let has_placeholders = text.contains('%') || text.contains("${");
    if !has_placeholders {
        return check_plain(text, text).map(|()| false);
    }
    let mut filled = String::with_capacity(text.len());
    for piece in pieces(text) {
        filled.push_str(match piece? {
            Piece::Text(text) => text,
            Piece::Value(_) => "x",
        });
    }
    check_plain(&filled, text).map(|()| true)
}

fn check_plain(filter: &str, text: &str) -> Result<(), Problem> {
    let found = || excerpt(text);
    let parsed = TopicFilter::parse(filter).map_err(|_| Problem::Filter { found: found() })?;
    if parsed.shared().is_some() {
        return Err(Problem::Shared { found: found() });
    }
    // The stored text is bounded too, not only the filled one.
    if text.len() > FIELD_BYTES_MAX {
        return Err(Problem::Filter { found: found() });
    }
    Ok(())
}

/// Text and placeholders in their order. After an error it ends.
fn pieces(text: &str) -> impl Iterator<Item = Result<Piece<'_>, Problem>> {
    let mut rest = text;
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let piece = next_piece(rest);
        rest = match piece {
            Ok((_, behind)) => behind,
            Err(_) => "",
        };
        Some(piece.map(|(piece, _)| piece))
    })
}

/// The first piece of a text that is not empty, and the rest.
fn next_piece(text: &str) -> Result<(Piece<'_>, &str), Problem> {
    if let Some(rest) = text.strip_prefix("${") {
        let Some((name, behind)) = rest.split_once('}') else {
            return Err(unknown(text));
        };
        let placeholder = Placeholder::named(name).ok_or_else(|| unknown(name))?;
        return Ok((Piece::Value(placeholder), behind));
    }
    if let Some(rest) = text.strip_prefix('%') {
        let piece = match rest.as_bytes().first() {
            Some(b'c') => Piece::Value(Placeholder::ClientId),
            Some(b'u') => Piece::Value(Placeholder::Username),
            Some(b'%') => Piece::Text("%"),
            Some(b'$') => Piece::Text("$"),
            _ => {
                let end = rest.chars().next().map_or(0, char::len_utf8);
                return Err(unknown(&text[..=end]));
            }
        };
        return Ok((piece, &rest[1..]));
    }
    let end = [text.find('%'), text.find("${")]
        .into_iter()
        .flatten()
        .min();
    let (plain, behind) = text.split_at(end.unwrap_or(text.len()));
    Ok((Piece::Text(plain), behind))
}

fn unknown(name: &str) -> Problem {
    const NAMES: [&str; 6] = [
        "client_id",
        "clientid",
        "username",
        "cert.cn",
        "cert_common_name",
        "listener",
    ];
    Problem::Placeholder {
        found: excerpt(name),
        hint: Hint::nearest(name, &NAMES),
    }
}

impl<'a> Placeholder<'a> {
    fn named(name: &'a str) -> Option<Self> {
        match name {
            "client_id" | "clientid" => Some(Self::ClientId),
            "username" => Some(Self::Username),
            "cert.cn" | "cert_common_name" => Some(Self::CommonName),
            "listener" => Some(Self::Listener),
            _ => name
                .strip_prefix("claim.")
                .filter(|claim| !claim.is_empty())
                .map(Self::Claim),
        }
    }

    fn value(self, identity: &Identity) -> Option<&str> {
        match self {
            Self::ClientId => Some(&identity.client_id),
            Self::Username => identity.username.as_deref(),
            Self::CommonName => identity.common_name(),
            Self::Listener => Some(&identity.listener),
            Self::Claim(name) => identity.claim(name),
        }
    }
}
