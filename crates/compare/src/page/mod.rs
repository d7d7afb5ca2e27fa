//! A page of results: a file says what it shows, and one command measures all of it and writes the
//! page.

mod kept;
mod order;
mod plan;

pub use kept::{KeptError, KeptRun, KeptRuns};
pub use order::{Case, Left, Turn, left, next_turn, turns};
pub use plan::{Plan, PlanError, Row, Table};
