//! A violation of a rule: its position, the problem and the remedy.

use std::fmt;

/// A finding, printed as `path:line: problem and remedy`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    path: String,
    line: usize,
    message: String,
}

impl Violation {
    /// Creates a finding at a line of a file, counted from 1.
    pub(crate) fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Prints findings in order of position and returns whether there were none.
pub(crate) fn report(area: &str, mut violations: Vec<Violation>) -> bool {
    violations.sort();
    violations.dedup();
    for violation in &violations {
        println!("{violation}");
    }
    match violations.len() {
        0 => println!("{area}: ok"),
        count => println!("{area}: {count} to fix"),
    }
    violations.is_empty()
}
