//! The search for the highest load that a broker sustains: the next trial, its verdict, the
//! conclusion.
//!
//! Nothing here connects to anything: [`Search`] chooses the next trial and takes its result.

mod confidence;
mod judge;
mod machine;
mod rounds;
mod scaling;
mod sentence;
#[cfg(test)]
mod simulation;
mod text;

pub use judge::{CPU_UNMEASURED, Figures, Goal, Grade, Trial};
pub use machine::{Answer, Ceiling, Limits, LimitsError, Search, Step};
pub use rounds::{Ends, Estimate, Round, Rounds};
pub use scaling::{Vary, load_of, scaled};
pub use text::{Numbered, RoundReport, SearchReport, Subject, markdown, table};
