//! Limits of the texts in a bundle, which anyone may have written: they are checked before anything
//! is read out of a text, so that none of it costs hours or gigabytes.

use super::{BundleError, SECONDS_MAX};

/// Longest manifest: it has the configuration of each broker.
pub(super) const MANIFEST_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Longest scenario; those of the catalogue have up to 4 KiB.
pub(super) const SCENARIO_BYTES_MAX: usize = 256 * 1024;

/// Deepest nesting of values; a result has six levels.
const DEPTH_MAX: usize = 16;

/// Most values of all lists and objects of a text: a second of a run has at most 170.
const VALUES_MAX: u64 = 32_000_000;

/// Most values of one list or object: the seconds of the longest run.
const ENTRIES_MAX: u64 = SECONDS_MAX;

/// Longest name or text: that of a histogram.
const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Longest field of a result that is not one of [`LONG_FIELDS`]: `tool`, `machine`.
const FIELD_BYTES_MAX: usize = 1024 * 1024;

/// Fields that grow with the length of a run, its brokers or its machines.
const LONG_FIELDS: [&[u8]; 7] = [
    b"agents",
    b"brokers",
    b"generator",
    b"latency_ns",
    b"marks",
    b"scenario",
    b"series",
];

/// Refuses a file of a bundle that is longer than any of its kind.
pub(super) fn check_length(
    name: &'static str,
    bytes: &[u8],
    limit: &'static str,
    bytes_max: usize,
) -> Result<(), BundleError> {
    let most = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    if bytes.len() > bytes_max {
        return Err(BundleError::Limit { name, limit, most });
    }
    Ok(())
}

/// Refuses a JSON text that is deeper or has more values than any of a run. Whether it is JSON is
/// for its reader to say.
pub(super) fn check_json(name: &'static str, text: &[u8]) -> Result<(), BundleError> {
    let refused = |(limit, most): (&'static str, u64)| BundleError::Limit { name, limit, most };
    let mut scan = Scan::default();
    for (at, byte) in text.iter().enumerate() {
        scan.take(text, at, *byte).map_err(refused)?;
    }
    Ok(())
}

/// The name of a limit, and its value.
type Exceeded = (&'static str, u64);

/// A text as far as it was looked at.
#[derive(Default)]
struct Scan {
    /// Commas of each list and object that is open.
    open: Vec<u64>,
    values: u64,
    /// Where the present text began.
    text_start: Option<usize>,
    is_escaped: bool,
    /// The last text, from and to.
    last: (usize, usize),
    /// The present field of the outermost object: its name, and where its value began.
    field: Option<Field>,
}

#[derive(Clone, Copy)]
struct Field {
    is_long: bool,
    start: usize,
}

impl Scan {
    fn take(&mut self, text: &[u8], at: usize, byte: u8) -> Result<(), Exceeded> {
        if let Some(start) = self.text_start {
            return self.within(start, at, byte);
        }
        match byte {
            b'"' => self.text_start = Some(at + 1),
            b'{' | b'[' => {
                self.value()?;
                if self.open.len() == DEPTH_MAX {
                    return Err(exceeded("DEPTH_MAX", DEPTH_MAX));
                }
                self.open.push(0);
            }
            b',' => {
                self.value()?;
                self.entry()?;
                self.end_field(at)?;
            }
            b'}' | b']' => {
                self.end_field(at)?;
                self.open.pop();
            }
            b':' if self.open.len() == 1 => {
                let (from, to) = self.last;
                let name = text.get(from..to).unwrap_or_default();
                self.field = Some(Field {
                    is_long: LONG_FIELDS.contains(&name),
                    start: at,
                });
            }
            _ => {}
        }
        Ok(())
    }

    /// A byte of a text.
    fn within(&mut self, start: usize, at: usize, byte: u8) -> Result<(), Exceeded> {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' => self.is_escaped = true,
            b'"' => {
                self.text_start = None;
                self.last = (start, at);
            }
            _ => {}
        }
        if at - start > TEXT_BYTES_MAX {
            return Err(exceeded("TEXT_BYTES_MAX", TEXT_BYTES_MAX));
        }
        Ok(())
    }

    fn value(&mut self) -> Result<(), Exceeded> {
        self.values += 1;
        if self.values > VALUES_MAX {
            return Err(("VALUES_MAX", VALUES_MAX));
        }
        Ok(())
    }

    /// The innermost list or object goes on behind a comma.
    fn entry(&mut self) -> Result<(), Exceeded> {
        let Some(commas) = self.open.last_mut() else {
            return Ok(());
        };
        *commas += 1;
        if *commas >= ENTRIES_MAX {
            return Err(("ENTRIES_MAX", ENTRIES_MAX));
        }
        Ok(())
    }

    /// A field of the outermost object ends.
    fn end_field(&mut self, at: usize) -> Result<(), Exceeded> {
        if self.open.len() != 1 {
            return Ok(());
        }
        let field = self.field.take().filter(|field| !field.is_long);
        if field.is_some_and(|field| at - field.start > FIELD_BYTES_MAX) {
            return Err(exceeded("FIELD_BYTES_MAX", FIELD_BYTES_MAX));
        }
        Ok(())
    }
}

fn exceeded(limit: &'static str, most: usize) -> Exceeded {
    (limit, u64::try_from(most).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, limit: Option<&str>) {
        let refused = check_json("result.json", text.as_bytes()).err();
        let found = refused.map(|error| error.to_string());
        match (found, limit) {
            (None, None) => {}
            (Some(found), Some(limit)) => assert!(found.contains(limit), "{found}"),
            (found, limit) => panic!("{found:?}, expected {limit:?}"),
        }
    }

    #[test]
    fn a_text_of_more_levels_values_or_entries_than_a_run_has_is_refused_with_the_limit() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        check(&nested(DEPTH_MAX), None);
        check(&nested(DEPTH_MAX + 1), Some("DEPTH_MAX: 16"));
        let entries = |number: u64| {
            let entries = "{},".repeat(usize::try_from(number - 1).unwrap());
            format!("{{\"series\":[{entries}{{}}]}}")
        };
        check(&entries(ENTRIES_MAX), None);
        check(&entries(ENTRIES_MAX + 1), Some("ENTRIES_MAX: 172800"));
        let lists = format!("[{}0],", "0,".repeat(150_000)).repeat(250);
        check(
            &format!("{{\"series\":[{lists}0]}}"),
            Some("VALUES_MAX: 32000000"),
        );
    }

    #[test]
    fn a_fact_of_more_than_a_mebibyte_is_refused_however_its_name_is_written() {
        let long = "x".repeat(FIELD_BYTES_MAX);
        for name in ["tool", "\\u0073eries", "machine"] {
            let text = format!("{{\"{name}\":\"{long}\",\"started\":1}}");
            check(&text, Some("FIELD_BYTES_MAX: 1048576"));
            check(
                &format!("{{\"{name}\":\"{long}\"}}"),
                Some("FIELD_BYTES_MAX"),
            );
        }
        check(&format!("{{\"series\":\"{long}\"}}"), None);
        let longer = "x".repeat(TEXT_BYTES_MAX + 1);
        check(
            &format!("{{\"series\":\"{longer}\"}}"),
            Some("TEXT_BYTES_MAX"),
        );
    }

    #[test]
    fn brackets_within_a_text_are_no_levels() {
        let text = format!("{{\"a\":\"\\\"{}\"}}", "[{,".repeat(1_000));
        check(&text, None);
    }
}
