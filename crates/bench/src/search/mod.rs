//! The search for the highest load that a broker holds: what to try next, how a trial is judged,
//! what follows.
//!
//! Nothing here connects to anything: [`Search`] chooses the next trial and takes its result.

mod judge;
mod machine;
mod scaling;
#[cfg(test)]
mod simulation;
mod text;

pub use judge::{Figures, Goal, Grade, Trial};
pub use machine::{Answer, Ceiling, Limits, LimitsError, Search, Step};
pub use scaling::{Vary, load_of, scaled};
pub use text::{SearchReport, Subject, markdown, sentence, table};
