//! The file that says what a page of results shows.

use serde::Deserialize;
use thrum_report::page::Columns;
use thrum_settings::problem::Problem;

use crate::versus::located;

/// Most tables of a page.
const TABLES_MAX: usize = 64;

/// Most rows of a table.
const ROWS_MAX: usize = 200;

/// Most rounds, the extra ones included.
const ROUNDS_MAX: u32 = 100;

/// Rounds if the file has none.
const ROUNDS: u32 = 3;

/// What a page shows, and how it is measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Plan {
    /// Its heading.
    pub title: String,
    /// Markdown below the heading.
    pub text: String,
    /// Names of the brokers in the order of the tables.
    pub brokers: Vec<String>,
    /// File that defines how they start, beside this one; the built-in one if empty.
    pub broker_file: String,
    /// Runs of each broker in each scenario.
    pub rounds: Option<u32>,
    /// Further runs at most, for those that the generator limited.
    pub extra_rounds: Option<u32>,
    /// Flags of every row, as `thrum bench versus` takes them.
    pub flags: String,
    /// The tables.
    #[serde(rename = "table")]
    pub tables: Vec<Table>,
}

/// One table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Table {
    /// Its heading.
    pub title: String,
    /// Markdown below the heading.
    pub text: String,
    /// The figures it shows.
    pub columns: Columns,
    /// Scenarios with their flags: `p2p-1K --rate 5/s`.
    pub rows: Vec<String>,
    /// Instead of the page's.
    pub brokers: Vec<String>,
    /// Instead of the page's.
    pub rounds: Option<u32>,
    /// Instead of the page's.
    pub extra_rounds: Option<u32>,
    /// Flags of every row, after those of the page.
    pub flags: String,
    /// Command for the hooks of its scenarios; `{pid}` is the broker's process.
    pub on_fault: String,
}

/// A row: its text and all its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// As the table shows it.
    pub label: String,
    /// The scenario, then the flags of page, table and row; the last of a flag counts.
    pub words: Vec<String>,
}

/// Why a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(Problem);

impl Plan {
    /// Reads the file; `origin` is its name for messages.
    ///
    /// # Errors
    /// It is not TOML, has an unknown key, or there is nothing to measure in it.
    pub fn parse(text: &str, origin: &str) -> Result<Self, PlanError> {
        let plan: Self = toml_edit::de::from_str(text)
            .map_err(|error| PlanError(located(&error, text, origin)))?;
        match plan.problem() {
            None => Ok(plan),
            Some(problem) => Err(PlanError(Problem::general(origin, problem))),
        }
    }

    fn problem(&self) -> Option<String> {
        if self.title.trim().is_empty() {
            return Some("`title` is missing".to_owned());
        }
        if self.tables.is_empty() || self.tables.len() > TABLES_MAX {
            return Some(format!("a page has 1 to {TABLES_MAX} tables [[table]]"));
        }
        self.tables.iter().find_map(|table| self.problem_of(table))
    }

    fn problem_of(&self, table: &Table) -> Option<String> {
        let [rounds, extra] = self.rounds_of(table);
        let name = &table.title;
        if self.brokers_of(table).is_empty() {
            return Some(format!("table '{name}' has no `brokers`, nor has the page"));
        }
        let brokers = self.brokers_of(table);
        let twice = (1..).zip(brokers).find(|(next, name)| {
            let later = brokers.get(*next..).unwrap_or_default();
            later.contains(name)
        });
        if let Some((_, broker)) = twice {
            return Some(format!("table '{name}' names the broker '{broker}' twice"));
        }
        if table.rows.is_empty() || table.rows.len() > ROWS_MAX {
            return Some(format!("table '{name}' needs 1 to {ROWS_MAX} `rows`"));
        }
        if rounds == 0 || rounds.saturating_add(extra) > ROUNDS_MAX {
            return Some(format!(
                "table '{name}' needs 1 to {ROUNDS_MAX} `rounds`, `extra_rounds` included"
            ));
        }
        let row = table.rows.iter().find(|row| !starts_with_a_name(row))?;
        Some(format!(
            "row '{row}' of table '{name}' does not begin with a scenario"
        ))
    }

    /// The brokers of a table.
    pub fn brokers_of<'a>(&'a self, table: &'a Table) -> &'a [String] {
        if table.brokers.is_empty() {
            &self.brokers
        } else {
            &table.brokers
        }
    }

    /// The rounds of a table, and how many more there may be.
    pub fn rounds_of(&self, table: &Table) -> [u32; 2] {
        [
            table.rounds.or(self.rounds).unwrap_or(ROUNDS),
            table.extra_rounds.or(self.extra_rounds).unwrap_or(0),
        ]
    }

    /// The rows of a table.
    pub fn rows_of(&self, table: &Table) -> Vec<Row> {
        let shared = self.flags.split_whitespace();
        let shared: Vec<&str> = shared.chain(table.flags.split_whitespace()).collect();
        let rows = table.rows.iter().map(|row| {
            let mut own = row.split_whitespace();
            let words = own.next().into_iter().chain(shared.iter().copied());
            Row {
                label: row.split_whitespace().collect::<Vec<_>>().join(" "),
                words: words.chain(own).map(str::to_owned).collect(),
            }
        });
        rows.collect()
    }
}

fn starts_with_a_name(row: &str) -> bool {
    let first = row.split_whitespace().next();
    first.is_some_and(|word| !word.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"
title = "Two cores"
brokers = ["thrum", "mosquitto"]
rounds = 5
flags = "--duration 20s --warmup 2s"

[[table]]
title = "Pairs"
rows = ["p2p-1K", "p2p-1K  --rate 5/s --duration 9s"]

[[table]]
title = "Connections"
brokers = ["thrum"]
rounds = 1
extra_rounds = 2
flags = "--fit"
rows = ["conn-tcp-10K-100"]
"#;

    #[test]
    fn a_row_has_the_flags_of_page_table_and_row_in_this_order() {
        let plan = Plan::parse(PAGE, "page.toml").unwrap();
        let rows = plan.rows_of(&plan.tables[0]);
        assert_eq!(rows[1].label, "p2p-1K --rate 5/s --duration 9s");
        assert_eq!(
            rows[1].words.join(" "),
            "p2p-1K --duration 20s --warmup 2s --rate 5/s --duration 9s"
        );
        let connections = &plan.tables[1];
        assert_eq!(
            plan.rows_of(connections)[0].words.join(" "),
            "conn-tcp-10K-100 --duration 20s --warmup 2s --fit"
        );
    }

    #[test]
    fn a_table_may_have_brokers_and_rounds_of_its_own() {
        let plan = Plan::parse(PAGE, "page.toml").unwrap();
        let [pairs, connections] = &plan.tables[..] else {
            panic!("two tables");
        };
        assert_eq!(plan.brokers_of(pairs), ["thrum", "mosquitto"]);
        assert_eq!(plan.rounds_of(pairs), [5, 0]);
        assert_eq!(plan.brokers_of(connections), ["thrum"]);
        assert_eq!(plan.rounds_of(connections), [1, 2]);
    }

    #[track_caller]
    fn check_refused(from: &str, to: &str, part: &str) {
        let text = PAGE.replacen(from, to, 1);
        assert_ne!(text, PAGE);
        let message = Plan::parse(&text, "page.toml").unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    }

    #[test]
    fn mistakes_in_a_file_are_named() {
        check_refused("rounds = 5", "round = 5", "page.toml:4:1: unknown field");
        check_refused("title = \"Two cores\"", "", "`title` is missing");
        check_refused("rounds = 5", "rounds = 0", "1 to 100 `rounds`");
        check_refused("extra_rounds = 2", "extra_rounds = 100", "1 to 100");
        let twice = "table 'Pairs' names the broker 'thrum' twice";
        check_refused("\"mosquitto\"]", "\"mosquitto\", \"thrum\"]", twice);
        let twice = "table 'Connections' names the broker 'thrum' twice";
        check_refused("= [\"thrum\"]", "= [\"thrum\", \"thrum\"]", twice);
        check_refused("[\"p2p-1K\",", "[\"--rate 5/s\",", "does not begin with");
        check_refused("rows = [\"conn-tcp-10K-100\"]", "", "1 to 200 `rows`");
        let alone = PAGE.replacen("brokers = [\"thrum\", \"mosquitto\"]", "", 1);
        let message = Plan::parse(&alone, "p").unwrap_err().to_string();
        assert!(message.contains("'Pairs' has no `brokers`"), "{message}");
        let none = Plan::parse("title = 'x'", "p").unwrap_err().to_string();
        assert!(none.contains("1 to 64 tables"), "{none}");
    }
}
