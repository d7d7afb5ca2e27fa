//! How often the interface let somebody in, and refused somebody.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::login::Refusal;
use crate::program::BenchmarkActivity;

/// Reasons of refusals, as labels.
const REASONS: [&str; 14] = [
    "wrong_login",
    "slowed",
    "busy",
    "setup_link",
    "provider",
    "no_role",
    "other_login",
    "no_proof",
    "wrong_key",
    "no_scope",
    "other_origin",
    "no_origin",
    "no_token",
    "other",
];

/// Answers by status, as labels: a status that is not here counts for its class, which is `4xx` for
/// one from 400 to 499.
const ANSWERS: [&str; 17] = [
    "2xx", "3xx", "400", "401", "403", "404", "408", "409", "412", "413", "429", "4xx", "500",
    "503", "504", "507", "5xx",
];

/// Counts since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    logins: AtomicU64,
    /// In the order of [`REASONS`].
    refusals: [AtomicU64; REASONS.len()],
    /// In the order of [`ANSWERS`].
    answers: [AtomicU64; ANSWERS.len()],
}

/// The figures of the interface.
#[derive(Clone, Debug, Default)]
pub struct InterfaceFigures {
    /// Logins of administrators that succeeded.
    pub logins: u64,
    /// Refused logins and requests by reason.
    pub refusals: Vec<Figure>,
    /// Answers of the interface by status, or by class of status.
    pub answers: Vec<Figure>,
    /// Sessions of administrators.
    pub sessions: u64,
    /// Entries that made room in a full table, by table.
    pub forgotten: Vec<Figure>,
    /// Lines that the audit log could not write.
    pub audit_failures: u64,
    /// Refusals that the audit log left out because there were too many.
    pub audit_left_out: u64,
    /// Looks at payloads that were refused, as the audit log would have had too many.
    pub audit_looks_refused: u64,
    /// What benchmarks do, in a program with them.
    pub benchmarks: Option<BenchmarkActivity>,
}

/// A figure with its label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The value of the label.
    pub label: &'static str,
    /// The figure.
    pub value: u64,
}

impl Counts {
    /// Somebody has logged in.
    pub(crate) fn logged_in(&self) {
        self.logins.fetch_add(1, Ordering::Relaxed);
    }

    /// Somebody was refused.
    pub(crate) fn refused(&self, refusal: &Refusal) {
        let label = reason(refusal);
        let place = REASONS.iter().position(|reason| *reason == label);
        if let Some(count) = place.and_then(|place| self.refusals.get(place)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A request was answered.
    pub(crate) fn answered(&self, status: u16) {
        let class = |status: u16| match status / 100 {
            2 => "2xx",
            3 => "3xx",
            4 => "4xx",
            _ => "5xx",
        };
        let place = |label: &str| ANSWERS.iter().position(|answer| *answer == label);
        let place = place(&status.to_string()).or_else(|| place(class(status)));
        if let Some(count) = place.and_then(|place| self.answers.get(place)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Logins that succeeded.
    pub(crate) fn logins(&self) -> u64 {
        self.logins.load(Ordering::Relaxed)
    }

    /// Refusals by reason.
    pub(crate) fn refusals(&self) -> Vec<Figure> {
        figures(&REASONS, &self.refusals)
    }

    /// Answers by status.
    pub(crate) fn answers(&self) -> Vec<Figure> {
        figures(&ANSWERS, &self.answers)
    }
}

fn figures(labels: &[&'static str], counts: &[AtomicU64]) -> Vec<Figure> {
    let figures = labels.iter().zip(counts).map(|(label, count)| Figure {
        label,
        value: count.load(Ordering::Relaxed),
    });
    figures.collect()
}

const fn reason(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::WrongLogin => "wrong_login",
        Refusal::Slowed(_) => "slowed",
        Refusal::Busy => "busy",
        Refusal::WrongSetupLink => "setup_link",
        Refusal::Provider(_) => "provider",
        Refusal::NoRole(_) => "no_role",
        Refusal::OtherLogin => "other_login",
        Refusal::NoProof => "no_proof",
        Refusal::WrongKey => "wrong_key",
        Refusal::NoScope(_) => "no_scope",
        Refusal::OtherOrigin => "other_origin",
        Refusal::NoOrigin => "no_origin",
        Refusal::NoToken => "no_token",
        // Half of a login is no refusal.
        Refusal::CodeNeeded
        | Refusal::IsSetUp
        | Refusal::Exists { .. }
        | Refusal::Missing { .. }
        | Refusal::LastAdministrator(_)
        | Refusal::Full { .. }
        | Refusal::Invalid(_)
        | Refusal::NoSession
        | Refusal::NoRoom(_)
        | Refusal::Broken(_) => "other",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn refusals_are_counted_by_reason() {
        let counts = Counts::default();
        for refusal in [
            Refusal::WrongLogin,
            Refusal::WrongLogin,
            Refusal::Slowed(Duration::from_secs(1)),
            Refusal::IsSetUp,
        ] {
            counts.refused(&refusal);
        }
        let counted = counts.refusals();
        let of = |label: &str| counted.iter().find(|one| one.label == label).unwrap().value;
        assert_eq!((of("wrong_login"), of("slowed"), of("other")), (2, 1, 1));
        assert_eq!(counted.iter().map(|one| one.value).sum::<u64>(), 4);
    }
    #[test]
    fn an_answer_counts_for_its_status_or_its_class() {
        let counts = Counts::default();
        for status in [200, 204, 304, 418, 429, 429, 500, 502] {
            counts.answered(status);
        }
        let counted = counts.answers();
        let counted = counted.iter().filter(|one| one.value > 0);
        let counted: Vec<_> = counted.map(|one| (one.label, one.value)).collect();
        let expected = [
            ("2xx", 2),
            ("3xx", 1),
            ("429", 2),
            ("4xx", 1),
            ("500", 1),
            ("5xx", 1),
        ];
        assert_eq!(counted, expected);
    }
}
