//! The run second by second, for spreadsheets.

use std::fmt::Write as _;

use crate::progress::stage_name;
use crate::result::{Quantiles, Resources, RunResult, Second};

/// One row per second; units are in the names of the columns, and cells of what was not measured
/// are empty.
pub fn series_csv(run: &RunResult) -> String {
    let mut text = String::new();
    for row in rows(run) {
        writeln!(text, "{row}").ok();
    }
    text
}

/// The head and the row of each second, without line breaks.
pub(crate) fn rows(run: &RunResult) -> impl Iterator<Item = String> {
    let names = columns(&Second::default())
        .into_iter()
        .map(|(name, _)| name);
    let head = names.collect::<Vec<_>>().join(",");
    let seconds = run.series.iter().map(|second| {
        let cells = columns(second).into_iter().map(|(_, cell)| cell);
        cells.collect::<Vec<_>>().join(",")
    });
    std::iter::once(head).chain(seconds)
}

fn columns(second: &Second) -> Vec<(String, String)> {
    let mut columns = vec![
        ("at_s".to_owned(), second.at.to_string()),
        ("span_s".to_owned(), second.span.to_string()),
        ("stage".to_owned(), stage_name(second.stage).to_owned()),
    ];
    for (name, count) in [
        ("clients_up", second.up),
        ("clients_connected", second.connected),
        ("clients_failed", second.failed),
        ("connections_lost", second.lost),
        ("messages_offered", second.offered),
        ("messages_sent", second.sent),
        ("messages_received", second.received),
        ("messages_acknowledged", second.acknowledged),
        ("messages_held_back", second.held_back),
        ("sent_bytes", second.bytes_sent),
        ("received_bytes", second.bytes_received),
    ] {
        columns.push((name.to_owned(), count.to_string()));
    }
    for (name, quantiles) in [
        ("e2e", second.e2e),
        ("service", second.service),
        ("publish_ack", second.publish_ack),
        ("connect", second.connect),
        ("reconnect", second.reconnect),
        ("e2e_generator", second.delays.e2e_bound),
        ("generator_lag", second.delays.sending),
        ("receive_lag", second.delays.reading),
        ("open_lag", second.delays.opening),
    ] {
        columns.extend(quantile_columns(name, quantiles));
    }
    for (name, resources) in [("broker", second.broker), ("generator", second.generator)] {
        columns.extend(resource_columns(name, resources));
    }
    columns
}

fn quantile_columns(
    name: &'static str,
    quantiles: Option<Quantiles>,
) -> impl Iterator<Item = (String, String)> {
    let figures = quantiles.unwrap_or_default().figures();
    figures.into_iter().map(move |(figure, value)| {
        let unit = if figure == "count" { "" } else { "_ns" };
        let cell = quantiles.map_or_else(String::new, |_| value.to_string());
        (format!("{name}_{figure}{unit}"), cell)
    })
}

fn resource_columns(
    name: &'static str,
    resources: Option<Resources>,
) -> impl Iterator<Item = (String, String)> {
    let of = resources.unwrap_or_default();
    let figures = [
        ("cores_user", of.cores_user.to_string()),
        ("cores_system", of.cores_system.to_string()),
        ("rss_bytes", of.rss_bytes.to_string()),
        ("pss_bytes", of.pss_bytes.to_string()),
        ("threads", of.threads.to_string()),
        ("open_files", of.open_files.to_string()),
        ("context_switches_per_s", of.context_switches.to_string()),
        ("network_in_bytes_per_s", of.network_in_bytes.to_string()),
        ("network_out_bytes_per_s", of.network_out_bytes.to_string()),
        ("disk_read_bytes_per_s", of.disk_read_bytes.to_string()),
        ("disk_write_bytes_per_s", of.disk_write_bytes.to_string()),
        ("machine_stolen", of.machine_stolen.to_string()),
    ];
    figures.into_iter().map(move |(figure, value)| {
        let cell = resources.map_or_else(String::new, |_| value);
        (format!("{name}_{figure}"), cell)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn every_second_is_a_row_of_all_columns() {
        let text = series_csv(&sample::run());
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(rows.len(), 13);
        assert!(rows.iter().all(|row| row.len() == 14 + 9 * 11 + 2 * 12));
        let column = |name: &str| rows[0].iter().position(|column| *column == name).unwrap();
        for (name, ramp, hold) in [
            ("at_s", "0", "2"),
            ("stage", "ramp", "hold"),
            ("messages_sent", "0", "1000"),
            ("e2e_count", "", "2"),
            ("e2e_p99.9_ns", "", "3901439"),
            ("broker_cores_user", "0.4", "0.4"),
            ("generator_rss_bytes", "", ""),
        ] {
            assert_eq!(
                (rows[1][column(name)], rows[3][column(name)]),
                (ramp, hold),
                "{name}"
            );
        }
    }

    #[test]
    fn names_of_columns_are_unique() {
        let mut names: Vec<String> = columns(&Second::default())
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
