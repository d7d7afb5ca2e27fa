//! The report of a failed run.

use std::fs;

use super::stage::Run;

const VIOLATIONS_SHOWN: usize = 6;

impl Run {
    pub(super) fn fail_if_violated(&mut self) {
        if !self.world.journal().checker().violations().is_empty() {
            self.fail("the broker broke its word");
        }
    }

    pub(super) fn fail(&mut self, what: &str) -> ! {
        let names = self.world.names();
        let journal = self.world.journal();
        let violations = journal.checker().violations();
        let shown: Vec<_> = violations
            .iter()
            .take(VIOLATIONS_SHOWN)
            .map(|violation| {
                let name = violation.client.and_then(|client| names.get(client));
                format!(
                    "{} {}",
                    name.map_or("", String::as_str),
                    journal.explain(violation)
                )
            })
            .collect();
        let history: Vec<_> = journal
            .history()
            .map(|observed| format!("{} {:?}\n", observed.at, observed.event))
            .collect();
        let path = self.scratch.join("history");
        let written = fs::write(&path, history.concat());
        panic!(
            "{what}\n{} violations after {} kills (again with THRUM_CRASH_SEED={} THRUM_CRASH_KILLS={}; files and \
             history ({written:?}) in {}):\n{}\n{:?}",
            violations.len(),
            self.kills,
            self.plan.seed,
            self.plan.kills,
            self.scratch.display(),
            shown.join("\n"),
            journal.checker().counts(),
        );
    }
}
