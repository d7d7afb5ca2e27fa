//! `cargo xtask counts`: instructions per operation of the hot path, compared with the committed
//! counts.
//!
//! Instructions are counted instead of time, because times on a shared machine vary from run to run
//! by more than a relevant change. docs/performance/README.md explains the counts.

mod callgrind;
mod committed;

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use crate::workspace::Workspace;
use callgrind::Counter;
use committed::Committed;

const FILE: &str = "docs/performance/instructions.toml";
/// If this variable is set, the counts are written instead of compared.
const UPDATE: &str = "UPDATE_COUNTS";

/// Instructions per operation by name of the case.
type Counts = BTreeMap<String, f64>;

/// Counts every case and returns whether all match the committed counts; writes them instead if
/// `UPDATE_COUNTS` is set.
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
    if let Some(passed) = verdict_without_comparison(&committed.compiler, counter.compiler()) {
        return Ok(passed);
    }
    let found = committed::differences(&committed.instructions, &counts);
    for difference in &found {
        println!("{FILE}: {difference}");
    }
    match found.len() {
        0 => println!("counts: ok"),
        count => println!(
            "counts: {count} to review; if the changes are intended: {UPDATE}=1 cargo xtask counts, and commit the file"
        ),
    }
    Ok(found.is_empty())
}

/// Reports that counts of two compilers are not compared. On another kind of machine the check
/// passes, because there are no committed counts for it. Another version of the compiler differs
/// from the repository's, and the check fails.
fn verdict_without_comparison(committed: &str, own: &str) -> Option<bool> {
    if committed == own {
        return None;
    }
    let host = |compiler: &str| compiler.rsplit(' ').next().map(str::to_owned);
    let is_foreign = host(committed) != host(own);
    let cure = if is_foreign {
        "there are no counts for this kind of machine".to_owned()
    } else {
        format!(
            "use the version of rust-toolchain.toml; if that has changed: {UPDATE}=1 cargo xtask counts"
        )
    };
    println!("counts: not compared: {FILE} is for {committed}, and this is {own}; {cure}");
    Some(is_foreign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_of_the_compiler_fails_and_another_kind_of_machine_passes() {
        let committed = "rustc 1.95.0 x86_64-unknown-linux-gnu";
        let verdict = |own| verdict_without_comparison(committed, own);
        assert_eq!(verdict(committed), None);
        assert_eq!(
            verdict("rustc 1.96.0 x86_64-unknown-linux-gnu"),
            Some(false)
        );
        assert_eq!(
            verdict("rustc 1.96.0 aarch64-unknown-linux-gnu"),
            Some(true)
        );
    }
}
