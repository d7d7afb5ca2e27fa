//! The source of a rule.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

/// The source of a rule, for messages: `acl.rules line 12`, `acl.rules[3]`, `user alice`.
///
/// Rules of one file share its name: a source costs no memory of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    name: Arc<str>,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Whole,
    Line(usize),
    Item(usize),
}

impl Source {
    /// A line of this file, counted from 1.
    #[must_use]
    pub fn line(&self, number: usize) -> Self {
        self.with(Place::Line(number))
    }

    /// An element of this list, counted from 0.
    #[must_use]
    pub fn item(&self, index: usize) -> Self {
        self.with(Place::Item(index))
    }

    fn with(&self, place: Place) -> Self {
        Self {
            name: Arc::clone(&self.name),
            place,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)?;
        match self.place {
            Place::Whole => Ok(()),
            Place::Line(number) => write!(formatter, " line {number}"),
            Place::Item(index) => write!(formatter, "[{index}]"),
        }
    }
}

impl From<Arc<str>> for Source {
    fn from(name: Arc<str>) -> Self {
        Self {
            name,
            place: Place::Whole,
        }
    }
}

impl From<&str> for Source {
    fn from(name: &str) -> Self {
        Arc::<str>::from(name).into()
    }
}

impl From<String> for Source {
    fn from(name: String) -> Self {
        Arc::<str>::from(name).into()
    }
}

impl From<Box<str>> for Source {
    fn from(name: Box<str>) -> Self {
        Arc::<str>::from(name).into()
    }
}
