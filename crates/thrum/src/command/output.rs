//! `-o` of commands that show one thing.

use clap::{Args, ValueEnum};

/// Form of the output of one thing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// A table or lines of text.
    #[default]
    Table,
    /// One JSON object a line.
    Json,
}

/// `-o`.
#[derive(Debug, Args)]
pub(super) struct Output {
    /// Form of the output.
    #[arg(
        short = 'o',
        long = "output",
        value_name = "FORM",
        value_enum,
        default_value_t
    )]
    pub(super) form: Form,
}
