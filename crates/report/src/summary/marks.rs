//! Events during a run, and how long clients were disconnected because of them.

use crate::result::{RunResult, Stage};
use thrum_figures::figure;

/// Marks shown; all are in the result file.
const MARKS_SHOWN: usize = 10;

/// One line per mark.
pub(super) fn lines(run: &RunResult) -> Vec<String> {
    let shown = run.marks.iter().enumerate().take(MARKS_SHOWN);
    let mut lines: Vec<String> = shown
        .map(|(index, mark)| {
            let line = format!("{}s  {}", figure(mark.at), mark.text);
            match recovery(run, index) {
                Some(recovery) => format!("{line} · {recovery}"),
                None => line,
            }
        })
        .collect();
    if run.marks.len() > MARKS_SHOWN {
        lines.push(format!("and {} more", run.marks.len() - MARKS_SHOWN));
    }
    lines
}

/// How long after a mark of the hold as many clients were up as before it; none if no second until
/// the next mark saw fewer.
pub(crate) fn recovery(run: &RunResult, mark: usize) -> Option<String> {
    let from = run.marks.get(mark)?.at;
    let until = run
        .marks
        .get(mark + 1)
        .map_or(f64::INFINITY, |next| next.at);
    let hold = || {
        run.series
            .iter()
            .filter(|second| second.stage == Stage::Hold)
    };
    let before = hold()
        .take_while(|second| second.at + second.span <= from)
        .last()?
        .up;
    let mut after = hold().skip_while(|second| second.at + second.span <= from);
    after
        .find(|second| second.up < before)
        .filter(|second| second.at < until)?;
    Some(match after.find(|second| second.up >= before) {
        Some(back) => format!("all back within {}s", figure(back.at + back.span - from)),
        None => "not all back by the end".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Mark;
    use crate::sample;

    /// The mark is at 5 s, the hold from 2 s to 12 s, with 2 000 clients up but in the second after
    /// the mark.
    fn run(up: &[(usize, u64)]) -> RunResult {
        let mut run = sample::run();
        for &(second, up) in up {
            run.series[second].up = up;
        }
        run
    }

    #[test]
    fn the_time_until_all_reconnected_is_shown() {
        assert_eq!(lines(&run(&[(5, 2_000)])), ["5s  cut 10 connections"]);
        assert_eq!(
            lines(&run(&[(5, 1_990), (6, 1_999)])),
            ["5s  cut 10 connections · all back within 3s"]
        );
    }

    #[test]
    fn clients_that_do_not_reconnect_are_shown() {
        let up: Vec<(usize, u64)> = (6..12).map(|second| (second, 1_999)).collect();
        assert_eq!(
            recovery(&run(&up), 0).as_deref(),
            Some("not all back by the end")
        );
    }

    #[test]
    fn events_after_the_next_mark_do_not_belong_to_this_one() {
        let mut run = run(&[(5, 2_000), (8, 1_000)]);
        run.marks.push(Mark {
            at: 8.0,
            text: "cut 1 000 connections".to_owned(),
            ..Mark::default()
        });
        assert_eq!(recovery(&run, 0), None);
        assert_eq!(recovery(&run, 1).as_deref(), Some("all back within 2s"));
    }
}
