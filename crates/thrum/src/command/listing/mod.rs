//! Lists of a running broker: read page by page, filtered and sorted, and shown in every form.
//!
//! ```text
//!   Question -> fetch: pages -> rows -> terms, order -> sheet: columns and cells -> text
//! ```
//!
//! A row is the JSON of the broker: what a newer broker adds is in `-o json` too.

#[cfg(feature = "management")]
mod fetch;
mod fetched;
mod order;
mod row;
mod sheet;
mod terms;
mod watch;

use std::io::Write as _;
use std::time::Duration;

use clap::{Args, ValueEnum};
use thrum_figures::{bytes, count, fraction};
use thrum_settings::nearest;

#[cfg(feature = "management")]
pub(super) use self::fetch::Question;
pub(super) use self::fetched::Fetched;
use self::order::Order;
pub(super) use self::row::Row;
pub(super) use self::sheet::{Cell, Column};
#[cfg(feature = "management")]
pub(super) use self::sheet::{cut, span};
use self::terms::Terms;
use self::watch::Screen;
use super::Failure;
#[cfg(feature = "management")]
use super::running::{Broker, Running};
use super::shown::{counted, now, parse_span};

/// Rows that are listed without an option.
const LIMIT: u64 = 100;
/// Shortest time between two looks of `--watch`: a broker is not to be kept busy by it.
const WATCH_MIN: Duration = Duration::from_millis(200);

/// How to list one kind of thing.
#[derive(Debug)]
pub(super) struct Listing {
    /// Member of a page with the rows.
    pub(super) member: &'static str,
    pub(super) columns: &'static [Column],
    pub(super) one: &'static str,
    pub(super) many: &'static str,
    /// Short names of keys, and the keys.
    pub(super) aliases: &'static [(&'static str, &'static str)],
    /// The key that no two rows share; empty if there is none.
    pub(super) identity: &'static str,
    /// The key with bytes whose sum stands below the table; empty if there is none.
    pub(super) sum: &'static str,
}

/// Form of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ListForm {
    /// A table that fits the terminal, and a summary.
    #[default]
    Table,
    /// A table with all columns, nothing shortened.
    Wide,
    /// One JSON object a line.
    Json,
    /// The same.
    Jsonl,
    /// Values with commas between, below their keys.
    Csv,
    /// A list in YAML.
    Yaml,
}

/// How much of a list, in which form.
#[derive(Clone, Debug, Args)]
pub(super) struct ListArgs {
    /// Form of the list.
    #[arg(
        short = 'o',
        long = "output",
        value_name = "FORM",
        value_enum,
        default_value_t,
        help_heading = "List"
    )]
    form: ListForm,
    /// Only these columns, in this order: keys of -o json.
    #[arg(
        long,
        value_name = "KEYS",
        value_delimiter = ',',
        help_heading = "List"
    )]
    columns: Vec<String>,
    /// Order of the list: a key of -o json.
    #[arg(long, value_name = "KEY", help_heading = "List")]
    sort: Option<String>,
    /// From the highest to the lowest.
    #[arg(long, help_heading = "List")]
    reverse: bool,
    /// The N highest by --sort: short for --reverse --limit N.
    #[arg(long, value_name = "N", conflicts_with_all = ["reverse", "limit", "all"],
          value_parser = clap::value_parser!(u64).range(1..), help_heading = "List")]
    top: Option<u64>,
    /// Most rows that are listed [default: 100].
    #[arg(long, value_name = "N", conflicts_with = "all",
          value_parser = clap::value_parser!(u64).range(1..), help_heading = "List")]
    limit: Option<u64>,
    /// List all of them.
    #[arg(long, help_heading = "List")]
    all: bool,
    /// List again and again, every 2 s or so often; ^C ends it.
    #[arg(short, long, value_name = "INTERVAL", num_args = 0..=1, default_missing_value = "2s",
          require_equals = false, value_parser = parse_interval, help_heading = "List")]
    watch: Option<Duration>,
}

/// `--filter` of lists that are filtered by this program.
#[derive(Clone, Debug, Args)]
pub(super) struct FilterArgs {
    /// Only rows for which all of these terms hold, as 'qos>0 filter=site/*': keys of -o json with
    /// = != < <= > >=, or a word that occurs in a row.
    #[arg(long, value_name = "TERMS", value_parser = Terms::parse, help_heading = "List")]
    filter: Option<Terms>,
}

impl ListArgs {
    /// The same, with `--watch`.
    pub(super) fn watching(&self) -> Self {
        let every = self.watch.unwrap_or(Duration::from_secs(2));
        Self {
            watch: Some(every),
            ..self.clone()
        }
    }

    /// The same with all rows, unless a number was given.
    pub(super) fn unlimited(&self) -> Self {
        Self {
            all: self.limit.is_none() && self.top.is_none(),
            ..self.clone()
        }
    }

    /// The same in this form.
    pub(super) fn in_form(&self, form: ListForm) -> Self {
        Self {
            form,
            ..self.clone()
        }
    }

    /// The same, sorted by this key if none was given.
    pub(super) fn sorted_by(&self, usual: &str) -> Self {
        let sort = self.sort.clone().or_else(|| Some(usual.to_owned()));
        Self {
            sort,
            ..self.clone()
        }
    }

    /// The key to sort by, if there is one.
    pub(super) fn sort_key(&self, listing: &Listing) -> Option<String> {
        let given = self.sort.as_deref()?;
        Some(listing.key(given))
    }

    /// From the highest to the lowest.
    pub(super) const fn is_descending(&self) -> bool {
        self.reverse || self.top.is_some()
    }

    /// `--top` is given.
    pub(super) const fn has_top(&self) -> bool {
        self.top.is_some()
    }

    /// All rows are wanted.
    pub(super) const fn wants_all(&self) -> bool {
        self.all
    }

    /// Most rows; none for all.
    fn rows_max(&self) -> Option<u64> {
        if self.all {
            return None;
        }
        Some(self.top.or(self.limit).unwrap_or(LIMIT))
    }
}

impl Listing {
    /// The key that is meant: `queued-messages` and `queue` are `queued_messages`.
    fn key(&self, given: &str) -> String {
        let key = given.trim().to_lowercase().replace('-', "_");
        let alias = self.aliases.iter().find(|(short, _)| *short == key);
        alias.map_or(key, |(_, key)| (*key).to_owned())
    }

    /// Whether a key that is no column is nearly one.
    fn is_misspelt(&self, key: &str) -> bool {
        let short = self.aliases.iter().map(|(short, _)| *short);
        nearest(key, self.columns.iter().map(|one| one.key).chain(short)).is_some()
    }

    /// The refusal of a key that no row has.
    fn unknown(&self, given: &str, row: Option<&Row>) -> anyhow::Error {
        let mut keys: Vec<String> = self.columns.iter().map(|one| one.key.to_owned()).collect();
        keys.extend(row.map(Row::keys).unwrap_or_default());
        keys.sort_unstable();
        keys.dedup();
        let short = self.aliases.iter().map(|(short, _)| *short);
        let near = nearest(given, keys.iter().map(String::as_str).chain(short));
        let hint = near.map(|near| format!("did you mean {near}? "));
        Failure::usage(format!(
            "{} have no {}; {}the keys are {}",
            self.many,
            given.escape_debug(),
            hint.unwrap_or_default(),
            keys.join(", ")
        ))
    }
}

/// Lists, once or again and again.
#[cfg(feature = "management")]
pub(super) fn run(
    running: &Running,
    listing: &Listing,
    question: &Question,
    args: &ListArgs,
) -> anyhow::Result<()> {
    let broker = running.broker()?;
    run_at(&broker, &View::new(listing, args, None), question)
}

/// The same with the filter of this program.
#[cfg(feature = "management")]
pub(super) fn run_filtered(
    running: &Running,
    listing: &Listing,
    question: &Question,
    args: &ListArgs,
    filter: &FilterArgs,
) -> anyhow::Result<()> {
    let broker = running.broker()?;
    let view = View::filtered(listing, args, filter);
    run_at(&broker, &view, question)
}

/// The same of a broker that is known.
#[cfg(feature = "management")]
pub(super) fn run_at(broker: &Broker, view: &View<'_>, question: &Question) -> anyhow::Result<()> {
    let interval = view.args.watch;
    show(interval, || {
        let fetched = fetch::fetch(broker, view.listing, question, view.wanted(question))?;
        for note in (question.notes)(&fetched) {
            writeln!(std::io::stderr(), "{note}")?;
        }
        view.text(fetched, question.is_sorted)
    })
}

/// Lists rows that come from elsewhere.
pub(super) fn run_rows(
    view: &View<'_>,
    mut rows: impl FnMut() -> anyhow::Result<Vec<Row>>,
) -> anyhow::Result<()> {
    let interval = view.args.watch;
    show(interval, || view.text(Fetched::from(rows()?), false))
}

fn show(
    interval: Option<Duration>,
    mut look: impl FnMut() -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    let Some(interval) = interval else {
        let text = look()?;
        std::io::stdout().lock().write_all(text.as_bytes())?;
        return Ok(());
    };
    let mut screen = Screen::new();
    loop {
        let text = look()?;
        screen.show(&text)?;
        watch::wait(interval);
    }
}

/// A list as it was asked for.
pub(super) struct View<'a> {
    listing: &'a Listing,
    args: &'a ListArgs,
    terms: Option<&'a Terms>,
}

impl<'a> View<'a> {
    fn new(listing: &'a Listing, args: &'a ListArgs, terms: Option<&'a Terms>) -> Self {
        Self {
            listing,
            args,
            terms,
        }
    }

    /// A list without the filter of this program.
    pub(super) fn of(listing: &'a Listing, args: &'a ListArgs) -> Self {
        Self::new(listing, args, None)
    }

    /// A list with it.
    pub(super) fn filtered(
        listing: &'a Listing,
        args: &'a ListArgs,
        filter: &'a FilterArgs,
    ) -> Self {
        Self::new(listing, args, filter.filter.as_ref())
    }

    /// Rows to ask for, none for all: what is filtered and sorted here has to be here.
    #[cfg(feature = "management")]
    fn wanted(&self, question: &Question) -> Option<u64> {
        let args = self.args;
        let sorts = args.sort.is_some() || args.reverse || args.has_top();
        let is_changed = self.terms.is_some() || (sorts && !question.is_sorted);
        args.rows_max().filter(|_| !is_changed)
    }

    /// The list as text.
    fn text(&self, mut fetched: Fetched, is_sorted: bool) -> anyhow::Result<String> {
        let key = self.args.sort_key(self.listing).filter(|_| !is_sorted);
        self.check_keys(key.as_deref(), fetched.rows.first())?;
        self.check_numbers(fetched.rows.first())?;
        if let Some(terms) = self.terms() {
            fetched.rows.retain(|row| terms.hold(row));
            fetched.matching = None;
        }
        if let Some(key) = &key {
            let order = Order {
                key,
                identity: self.listing.identity,
                is_descending: self.args.is_descending(),
            };
            order.sort(&mut fetched.rows);
        } else if !is_sorted && self.args.reverse {
            fetched.rows.reverse();
        }
        if let Some(most) = self.args.rows_max() {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            fetched.has_more |= fetched.rows.len() > most;
            fetched.rows.truncate(most);
        }
        let form = self.args.form;
        let columns = sheet::chosen(self.listing, &self.args.columns, form);
        let mut text = sheet::text(&columns, &fetched.rows, form, now())?;
        if matches!(form, ListForm::Table | ListForm::Wide) {
            if !fetched.rows.is_empty() {
                text.push('\n');
            }
            text.push_str(&self.summary(&fetched));
        }
        Ok(text)
    }

    /// Keys that no row has are mistakes.
    fn check_keys(&self, sort: Option<&str>, first: Option<&Row>) -> anyhow::Result<()> {
        let columns = self
            .args
            .columns
            .iter()
            .map(|given| self.listing.key(given));
        let terms = self.terms();
        let terms = terms.as_ref().map(Terms::keys).unwrap_or_default();
        let terms = terms.into_iter();
        for key in columns.chain(terms).chain(sort.map(ToOwned::to_owned)) {
            let is_column = self.listing.columns.iter().any(|one| one.key == key);
            match first {
                _ if is_column => {}
                Some(first) if first.get(&key).is_some() => {}
                // Without a row nobody knows what else one has.
                None if !self.listing.is_misspelt(&key) => {}
                first => return Err(self.listing.unknown(&key, first)),
            }
        }
        Ok(())
    }

    /// The terms with the keys of the rows.
    fn terms(&self) -> Option<Terms> {
        let terms = self.terms?;
        Some(terms.with_keys(|key| self.listing.key(key)))
    }

    /// Values that are no numbers where the rows have numbers are mistakes.
    fn check_numbers(&self, first: Option<&Row>) -> anyhow::Result<()> {
        let Some(terms) = self.terms() else {
            return Ok(());
        };
        let is_number = |key: &str| {
            let columns = self.listing.columns.iter();
            let mut counted = columns.filter(|one| matches!(one.cell, Cell::Count | Cell::Bytes));
            counted.any(|one| one.key == key)
                || first.is_some_and(|row| row.get(key).is_some_and(|value| value.is_number()))
        };
        match terms.wrong_number(is_number) {
            Some(wrong) => Err(Failure::usage(wrong)),
            None => Ok(()),
        }
    }

    fn summary(&self, fetched: &Fetched) -> String {
        let Listing { one, many, sum, .. } = self.listing;
        let listed = fetched.rows.len();
        let matching = fetched.matching.unwrap_or(0);
        // New rows may be on the pages.
        if fetched.has_more && matching > listed as u64 {
            let all = count(matching);
            let listed = count(listed as u64);
            return format!("{listed} of {all} {many}; --all lists all, --limit N lists N\n");
        }
        let mut text = match listed {
            0..=999 => counted(listed, one, many),
            _ => format!("{} {many}", count(listed as u64)),
        };
        if !sum.is_empty() {
            let values = fetched.rows.iter().filter_map(|row| row.get(sum)?.as_u64());
            text.extend([": ", &bytes(fraction(values.sum()))]);
        }
        if fetched.has_more {
            text.push_str(", and there are more; --all lists all, --limit N lists N");
        }
        text.push('\n');
        text
    }
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let milliseconds = text
        .strip_suffix("ms")
        .and_then(|number| number.parse().ok());
    let interval = milliseconds.map(Duration::from_millis);
    let interval = match interval {
        Some(interval) => interval,
        None => parse_span(text)?,
    };
    if interval < WATCH_MIN {
        return Err("at least 200ms".to_owned());
    }
    Ok(interval)
}

#[cfg(test)]
mod tests;
