//! `--filter` of this program: terms of which all have to hold for a row.

use serde_json::Value;

use super::Row;
use super::row::plain;

/// Terms of a filter.
const TERMS_MAX: usize = 16;

/// A filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Terms(Vec<Term>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Term {
    /// A word that occurs in a value of the row.
    Word(String),
    Comparison {
        key: String,
        operator: Operator,
        value: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    More,
    MoreOrEqual,
}

/// As they are written; the longer ones first.
const OPERATORS: [(&str, Operator); 6] = [
    ("!=", Operator::Unequal),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::MoreOrEqual),
    ("=", Operator::Equal),
    ("<", Operator::Less),
    (">", Operator::More),
];

impl Terms {
    /// Reads terms with spaces between; quotes keep spaces in a value.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let words = words(text)?;
        if words.len() > TERMS_MAX {
            return Err(format!("a filter has at most {TERMS_MAX} terms"));
        }
        let terms: Vec<Term> = words.iter().map(|word| Term::parse(word)).collect();
        if terms.is_empty() {
            return Err("a filter has a term, such as qos>0".to_owned());
        }
        Ok(Self(terms))
    }

    /// Whether all of them hold.
    pub(super) fn hold(&self, row: &Row) -> bool {
        let value = row.value();
        self.0.iter().all(|term| term.holds(&value))
    }

    /// The same with other keys: the whole ones instead of short ones.
    pub(super) fn with_keys(&self, whole: impl Fn(&str) -> String) -> Self {
        let terms = self.0.iter().cloned().map(|term| match term {
            Term::Word(_) => term,
            Term::Comparison {
                key,
                operator,
                value,
            } => Term::Comparison {
                key: whole(&key),
                operator,
                value,
            },
        });
        Self(terms.collect())
    }

    /// What is wrong with a value that is no number, of a key that has numbers.
    pub(super) fn wrong_number(&self, is_number: impl Fn(&str) -> bool) -> Option<String> {
        self.0.iter().find_map(|term| match term {
            Term::Comparison { key, value, .. }
                if is_number(key) && !value.is_empty() && value.parse::<f64>().is_err() =>
            {
                let (key, value) = (key.escape_debug(), value.escape_debug());
                Some(format!("--filter: {key} is a number, and {value} is none"))
            }
            _ => None,
        })
    }

    /// The keys that it names.
    pub(super) fn keys(&self) -> Vec<String> {
        let keys = self.0.iter().filter_map(|term| match term {
            Term::Word(_) => None,
            Term::Comparison { key, .. } => Some(key.clone()),
        });
        keys.collect()
    }
}

impl Term {
    fn parse(word: &str) -> Self {
        let places = OPERATORS.iter().filter_map(|(text, operator)| {
            let place = word.find(text)?;
            Some((place, *text, *operator))
        });
        // The first one counts, and of two at the same place the longer one.
        let first = places.min_by_key(|(place, text, _)| (*place, 2 - text.len()));
        match first {
            Some((place, text, operator)) if place > 0 => Self::Comparison {
                key: word[..place].to_lowercase().replace('-', "_"),
                operator,
                value: word[place + text.len()..].to_owned(),
            },
            _ => Self::Word(word.to_owned()),
        }
    }

    fn holds(&self, row: &Value) -> bool {
        match self {
            Self::Word(word) => occurs(row, word),
            Self::Comparison {
                key,
                operator,
                value,
            } => {
                let found = super::row::at(row, key).unwrap_or(&Value::Null);
                match found {
                    Value::Array(all) if *operator == Operator::Unequal => {
                        all.iter().all(|one| compares(one, *operator, value))
                    }
                    Value::Array(all) => all.iter().any(|one| compares(one, *operator, value)),
                    found => compares(found, *operator, value),
                }
            }
        }
    }
}

fn occurs(value: &Value, word: &str) -> bool {
    match value {
        Value::Object(members) => members.values().any(|value| occurs(value, word)),
        Value::Array(values) => values.iter().any(|value| occurs(value, word)),
        other => plain(other).contains(word),
    }
}

fn compares(found: &Value, operator: Operator, wanted: &str) -> bool {
    let numbers = found.as_f64().zip(wanted.parse::<f64>().ok());
    let text = plain(found);
    let is_equal = || match numbers {
        Some((one, other)) => one.total_cmp(&other).is_eq(),
        None => is_like(&text, wanted),
    };
    let order = || match numbers {
        Some((one, other)) => one.total_cmp(&other),
        None => text.as_str().cmp(wanted),
    };
    // What is not there is neither less nor more.
    let is_there = !found.is_null();
    match operator {
        Operator::Equal => is_equal(),
        Operator::Unequal => !is_equal(),
        Operator::Less => is_there && order().is_lt(),
        Operator::LessOrEqual => is_there && order().is_le(),
        Operator::More => is_there && order().is_gt(),
        Operator::MoreOrEqual => is_there && order().is_ge(),
    }
}

/// Whether a text is the wanted one, in which `*` stands for any characters.
fn is_like(text: &str, wanted: &str) -> bool {
    let mut parts = wanted.split('*');
    let begin = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(begin) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(end) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(place) => rest = &rest[place + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(end)
}

/// Words with spaces between; quotes are taken off.
fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let (mut is_word, mut is_quoted) = (false, false);
    for one in text.chars() {
        match one {
            '"' => {
                is_quoted = !is_quoted;
                is_word = true;
            }
            one if one.is_whitespace() && !is_quoted => {
                if is_word {
                    words.push(std::mem::take(&mut word));
                }
                is_word = false;
            }
            one => {
                word.push(one);
                is_word = true;
            }
        }
    }
    if is_quoted {
        return Err("a quote is not closed".to_owned());
    }
    if is_word {
        words.push(word);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::listing::tests::rows;

    fn hold(terms: &str) -> bool {
        let row = r#"{"client_id":"meter-17","qos":1,"bytes":1500,"user":null,"up":true,
            "queue":{"messages":3},"problems":["slow","queue"],"filter":"a b"}"#;
        Terms::parse(terms).unwrap().hold(&rows(&[row])[0])
    }

    #[test]
    fn all_terms_have_to_hold() {
        for terms in [
            "meter",
            "client_id=meter-*",
            "client-id=*7 qos=1",
            "qos>0 qos>=1 qos<2 qos<=1 qos!=2",
            "bytes>300",
            "user=",
            "up=true",
            "queue.messages=3",
            "problems=slow problems!=other",
            "filter=\"a b\"",
            "client_id=*e*r*1*",
        ] {
            assert!(hold(terms), "{terms}");
        }
        for terms in [
            "desk",
            "client_id=meter",
            "qos>1",
            "qos=1 bytes<1000",
            "user>a",
            "user!=",
            "problems!=slow",
            "client_id=*7*8",
        ] {
            assert!(!hold(terms), "{terms}");
        }
    }

    #[test]
    fn keys_may_be_short_and_numbers_are_compared_with_numbers() {
        let terms = Terms::parse("lag>2 up=true word").unwrap();
        let whole = terms.with_keys(|key| if key == "lag" { "qos" } else { key }.to_owned());
        assert_eq!(whole.keys(), ["qos", "up"]);
        let wrong = |text: &str| {
            let terms = Terms::parse(text).unwrap();
            terms.wrong_number(|key| key == "qos")
        };
        assert_eq!(
            wrong("up=true qos>x").as_deref(),
            Some("--filter: qos is a number, and x is none")
        );
        for right in ["qos>1.5", "qos=", "user>x", "qos"] {
            assert_eq!(wrong(right), None, "{right}");
        }
    }

    #[test]
    fn what_is_no_filter_is_refused() {
        assert!(Terms::parse("").is_err());
        assert!(Terms::parse("a=\"b").is_err());
        assert!(Terms::parse(&"a ".repeat(17)).is_err());
    }
}
