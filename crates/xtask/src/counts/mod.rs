//! `cargo xtask counts`: instructions per operation of the hot path, against those that are
//! committed.
//!
//! Instructions are counted and not timed, because a clock on a shared machine differs by more from
//! run to run than a change worth noticing. docs/performance/README.md says how to read them.

mod callgrind;
mod committed;

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use crate::workspace::Workspace;
use callgrind::Counter;
use committed::Committed;

const FILE: &str = "docs/performance/instructions.toml";
/// Set to anything, the counts are written instead of compared.
const UPDATE: &str = "UPDATE_COUNTS";

/// Instructions per operation by the name of the case.
type Counts = BTreeMap<String, f64>;

/// Counts every case and tells whether all are as committed, or writes them if `UPDATE_COUNTS` is
/// set.
pub(crate) fn run(workspace: &Workspace) -> Result<bool> {
    let counter = Counter::build(workspace)?;
    let counts = counter.count_all()?;
    let path = workspace.root.join(FILE);
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, committed::text(counter.compiler(), &counts)).context(FILE)?;
        print!("{}", committed::table(&counts, &Counts::new()));
        println!("counts: written to {FILE}");
        return Ok(true);
    }
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("{FILE}; write it: {UPDATE}=1 cargo xtask counts"))?;
    let committed = Committed::parse(&text).context(FILE)?;
    print!("{}", committed::table(&counts, &committed.instructions));
    if committed.compiler != counter.compiler() {
        println!(
            "counts: not compared: {FILE} is of {}, and this is {}",
            committed.compiler,
            counter.compiler()
        );
        return Ok(true);
    }
    let found = committed::differences(&committed.instructions, &counts);
    for difference in &found {
        println!("{FILE}: {difference}");
    }
    match found.len() {
        0 => println!("counts: ok"),
        count => println!(
            "counts: {count} to look at; if it is meant to be so: {UPDATE}=1 cargo xtask counts, and commit the file"
        ),
    }
    Ok(found.is_empty())
}
