//! What a viewer wants to see, as its query declares it.

use std::time::Duration;

use thrum_broker::{SessionQuery, TopicQuery};
use url::form_urlencoded;
use utoipa::IntoParams;

use super::super::clients::ClientFilter;
use super::super::entrance::Sender;
use super::super::history::figures_named;
use super::super::{Problem, clients, topics};
use crate::audit::Look;
use crate::login::{Refusal, Scope};

/// Rows of a list at most.
const ROWS_MAX: usize = 100;
/// Rows of a list, if the viewer does not say.
const ROWS: usize = 20;
/// Levels of topics that one viewer sees open.
const LEVELS_MAX: usize = 16;
/// Rows of all of them together: what 100 KB/s can show within some seconds.
const TOPIC_ROWS_MAX: usize = 400;
/// Clients that one viewer sees in full.
const CLIENTS_MAX: usize = 4;
/// Longest time of a stream that is to end: a day.
const SECONDS_MAX: usize = 86_400;
/// Topics that one viewer sees in full.
const TOPICS_MAX: usize = 8;

/// How often a viewer wants news.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Every(u64);

/// The paces there are: few, so that viewers share what is made for them.
const PACES: [(&str, Every); 6] = [
    ("250ms", Every(250)),
    ("500ms", Every(500)),
    ("1s", Every(1000)),
    ("2s", Every(2000)),
    ("5s", Every(5000)),
    ("10s", Every(10_000)),
];

impl Every {
    pub(super) const fn time(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

/// A part of a page that is made for all viewers that want the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Part {
    /// All figures.
    Figures,
    /// A list of clients.
    Clients(ClientRows),
    /// One client.
    Client(String),
    /// The topics of a level; with payloads for those who may see them.
    Topics(TopicQuery, Payloads),
    /// One topic.
    Topic(String, Payloads),
}

/// Whether a viewer sees the payloads of topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Payloads {
    Shown,
    /// The viewer has no right to them.
    NoScope,
    /// The look at them is not in the audit log.
    NotNoted,
}

impl Payloads {
    pub(super) fn are_shown(self) -> bool {
        self == Self::Shown
    }

    /// Why there are none.
    pub(super) const fn left_out(self) -> Option<&'static str> {
        match self {
            Self::Shown => None,
            Self::NoScope => Some("they need the scope messages:read"),
            Self::NotNoted => Some(
                "the audit log does not take this look at them now; open the stream again later",
            ),
        }
    }
}

/// A list of clients as it was asked for, and how it is identified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ClientRows {
    pub(super) filter: String,
    pub(super) sort: Option<String>,
    pub(super) is_descending: bool,
    pub(super) limit: usize,
}

impl ClientRows {
    /// The query of these rows.
    pub(super) fn query(&self) -> Result<SessionQuery, Problem> {
        let sort = self.sort.as_deref().map(clients::sort).transpose()?;
        Ok(SessionQuery {
            filter: ClientFilter::of_text(&self.filter)?,
            sort: sort.unwrap_or_default(),
            is_descending: self.is_descending,
            limit: self.limit,
            cursor: None,
        })
    }
}

/// The parameters of a stream, for the description of the interface; a parameter of several
/// occurs once for each.
#[expect(dead_code, reason = "it describes what `Declared::read` reads")]
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::api) struct StreamParameters {
    /// Names of figures, separated by commas, or `all`.
    figures: Option<String>,
    /// A list of clients: the filter of `GET /clients`; empty for all.
    clients: Option<String>,
    /// The order of the clients, as of `GET /clients`.
    clients_sort: Option<String>,
    /// The other way round.
    clients_descending: Option<bool>,
    /// Clients in the list; 20 if absent.
    #[param(minimum = 1, maximum = 100)]
    clients_limit: Option<usize>,
    /// Identifiers of clients to be shown in full.
    #[param(max_items = 4)]
    client: Option<Vec<String>>,
    /// Levels whose topics are listed, as `site/a/`; empty for the top.
    #[param(max_items = 16)]
    topics: Option<Vec<String>>,
    /// The order of the topics, as of `GET /topics`.
    topics_sort: Option<String>,
    /// The other way round.
    topics_descending: Option<bool>,
    /// Topics of each level; 20 if absent, and 400 of all levels together.
    #[param(minimum = 1, maximum = 100)]
    topics_limit: Option<usize>,
    /// Topics to be shown in full.
    #[param(max_items = 8)]
    topic: Option<Vec<String>>,
    /// How often at most: `250ms`, `500ms`, `1s`, `2s`, `5s` or `10s`; `1s` if absent.
    every: Option<String>,
    /// The stream ends after so many seconds; never if absent.
    #[param(minimum = 1, maximum = 86_400)]
    seconds: Option<u64>,
}

/// What a viewer wants to see.
#[derive(Debug)]
pub(super) struct Declared {
    pub(super) parts: Vec<Part>,
    /// Places of the figures that it wants.
    pub(super) figures: Vec<usize>,
    pub(super) every: Every,
    /// The stream ends after this time; none if it does not.
    pub(super) time: Option<Duration>,
}

/// The parameters as they are read.
#[derive(Default)]
struct Read {
    figures: Option<String>,
    clients: Option<ClientRows>,
    client_options: Option<&'static str>,
    rows: ClientRows,
    client: Vec<String>,
    levels: Vec<String>,
    level: TopicQuery,
    level_options: Option<&'static str>,
    topic: Vec<String>,
    every: Option<Every>,
    time: Option<Duration>,
}

impl Declared {
    /// Reads a query. A parameter that names one of many may occur several times.
    pub(super) fn read(query: &str, sender: &Sender) -> Result<Self, Problem> {
        let mut read = Read::default();
        read.rows.limit = ROWS;
        read.level.limit = ROWS;
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            read.take(&name, value.into_owned())?;
        }
        let may_see = sender.caller.may(Scope::MessagesRead);
        read.declared(if may_see {
            Payloads::Shown
        } else {
            Payloads::NoScope
        })
    }

    /// The look at payloads that the log has; none if there are no payloads.
    pub(super) fn look(&self) -> Option<Look> {
        let subjects = self.parts.iter().filter_map(|part| match part {
            Part::Topics(query, Payloads::Shown) => Some(match &query.under {
                Some(level) => format!("level {level}/"),
                None => "the top level".to_owned(),
            }),
            Part::Topic(topic, Payloads::Shown) => Some(format!("topic {topic}")),
            _ => None,
        });
        let subjects: Vec<String> = subjects.collect();
        let look = Look {
            by: "stream",
            subjects,
        };
        (!look.subjects.is_empty()).then_some(look)
    }

    /// Shows topics without payloads, as the look at them is not in the audit log.
    pub(super) fn leave_payloads_out(&mut self) {
        for part in &mut self.parts {
            if let Part::Topics(_, payloads) | Part::Topic(_, payloads) = part {
                *payloads = Payloads::NotNoted;
            }
        }
    }

    /// The scopes without which the viewer would see nothing of a part.
    pub(super) fn scopes(&self) -> Vec<Scope> {
        let mut scopes = Vec::new();
        for part in &self.parts {
            let needed: &[Scope] = match part {
                Part::Figures => &[Scope::MetricsRead],
                Part::Topics(_, Payloads::Shown) | Part::Topic(_, Payloads::Shown) => {
                    &[Scope::ClientsRead, Scope::MessagesRead]
                }
                Part::Clients(_) | Part::Client(_) | Part::Topics(..) | Part::Topic(..) => {
                    &[Scope::ClientsRead]
                }
            };
            scopes.extend(needed);
        }
        scopes.sort_unstable();
        scopes.dedup();
        scopes
    }
}

impl Read {
    fn take(&mut self, name: &str, value: String) -> Result<(), Problem> {
        match name {
            "figures" => self.figures = Some(value),
            "clients" => {
                self.rows.filter = value;
                self.clients = Some(ClientRows::default());
            }
            "clients_sort" => {
                self.rows.sort = Some(value);
                self.client_options = Some("clients_sort");
            }
            "clients_descending" => {
                self.rows.is_descending = flag(name, &value)?;
                self.client_options = Some("clients_descending");
            }
            "clients_limit" => {
                self.rows.limit = number(name, &value, ROWS_MAX)?;
                self.client_options = Some("clients_limit");
            }
            "client" => self.client.push(value),
            "topics" => self.levels.push(value),
            "topics_sort" => {
                self.level.order = topics::order(Some(&value))?;
                self.level_options = Some("topics_sort");
            }
            "topics_descending" => {
                self.level.is_descending = flag(name, &value)?;
                self.level_options = Some("topics_descending");
            }
            "topics_limit" => {
                self.level.limit = number(name, &value, ROWS_MAX)?;
                self.level_options = Some("topics_limit");
            }
            "topic" => self.topic.push(value),
            "every" => {
                let pace = PACES.iter().find(|(known, _)| *known == value);
                let (_, every) = pace.ok_or_else(|| {
                    let known = PACES.map(|(known, _)| known).join(", ");
                    Problem::bad_request(format!("every is one of {known}, not {}", shown(&value)))
                })?;
                self.every = Some(*every);
            }
            "seconds" => {
                let seconds = number(name, &value, SECONDS_MAX)?;
                self.time = Some(Duration::from_secs(seconds as u64));
            }
            _ => {
                let what = "unknown parameter";
                let known = "figures, clients, clients_sort, clients_descending, clients_limit, \
                             client, topics, topics_sort, topics_descending, topics_limit, topic, \
                             every, seconds";
                let name = shown(name);
                return Err(Problem::bad_request(format!(
                    "{what} {name}; a stream has {known}"
                )));
            }
        }
        Ok(())
    }

    fn declared(mut self, payloads: Payloads) -> Result<Declared, Problem> {
        let mut parts = Vec::new();
        let mut figures = Vec::new();
        if let Some(names) = &self.figures {
            figures = figures_named(names)?;
            parts.push(Part::Figures);
        }
        if self.clients.is_some() {
            // What is wrong with it is told now.
            self.rows.query()?;
            parts.push(Part::Clients(self.rows));
        } else if let Some(option) = self.client_options {
            return Err(alone(option, "clients"));
        }
        self.client.sort_unstable();
        self.client.dedup();
        at_most("client", self.client.len(), CLIENTS_MAX)?;
        parts.extend(self.client.into_iter().map(Part::Client));
        self.levels.sort_unstable();
        self.levels.dedup();
        at_most("topics", self.levels.len(), LEVELS_MAX)?;
        let rows = self.levels.len() * self.level.limit;
        if rows > TOPIC_ROWS_MAX {
            let what = format!(
                "{} levels of {} topics are {rows} rows, and a stream has at most {TOPIC_ROWS_MAX}; \
                 lower topics_limit, or close a level",
                self.levels.len(),
                self.level.limit
            );
            return Err(Problem::bad_request(what));
        }
        if let Some(option) = self.level_options.filter(|_| self.levels.is_empty()) {
            return Err(alone(option, "topics"));
        }
        for prefix in &self.levels {
            let under = topics::level(prefix);
            check_topic("topics", under.as_deref().unwrap_or_default())?;
            let query = TopicQuery {
                under,
                ..self.level.clone()
            };
            parts.push(Part::Topics(query, payloads));
        }
        self.topic.sort_unstable();
        self.topic.dedup();
        at_most("topic", self.topic.len(), TOPICS_MAX)?;
        for topic in self.topic {
            check_topic("topic", &topic)?;
            parts.push(Part::Topic(topic, payloads));
        }
        if parts.is_empty() {
            let what = "a stream shows at least one of figures, clients, client, topics and topic, \
                        as in /api/v1/stream?figures=all&topics=";
            return Err(Problem::bad_request(what));
        }
        Ok(Declared {
            parts,
            figures,
            every: self.every.unwrap_or(PACES[2].1),
            time: self.time,
        })
    }
}

fn alone(option: &str, of: &str) -> Problem {
    Problem::bad_request(format!("{option} is about {of}, which is not declared"))
}

fn at_most(name: &str, count: usize, most: usize) -> Result<(), Problem> {
    if count > most {
        let what = format!("{name} occurs {count} times, and may occur {most} times");
        return Err(Problem::bad_request(what));
    }
    Ok(())
}

fn check_topic(name: &str, topic: &str) -> Result<(), Problem> {
    if topic.contains(['+', '#', '\0']) {
        let topic = shown(topic);
        let what = format!("{name}: {topic} is no topic: it has no wildcards");
        return Err(Problem::bad_request(what));
    }
    Ok(())
}

fn flag(name: &str, value: &str) -> Result<bool, Problem> {
    value.parse().map_err(|_| {
        let what = format!("{name} is true or false, not {}", shown(value));
        Problem::bad_request(what)
    })
}

fn number(name: &str, value: &str, most: usize) -> Result<usize, Problem> {
    let number = value.parse().ok().filter(|rows| (1..=most).contains(rows));
    number.ok_or_else(|| {
        let value = shown(value);
        let what = format!("{name} is a number from 1 to {most}, not {value}");
        Problem::bad_request(what)
    })
}

/// A wrong text, as far as an error repeats it.
fn shown(text: &str) -> String {
    format!("{:?}", text.chars().take(64).collect::<String>())
}

/// Refuses a caller that lacks one of these scopes.
pub(super) fn check_scopes(sender: &Sender, scopes: &[Scope]) -> Result<(), Refusal> {
    if sender.caller.means == crate::login::Means::Anonymous {
        return Err(Refusal::NoProof);
    }
    let missing = scopes.iter().find(|scope| !sender.caller.may(**scope));
    missing.map_or(Ok(()), |scope| Err(Refusal::NoScope(*scope)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::login::{Caller, ScopeSet};

    fn read_as(query: &str, scopes: &[Scope]) -> Result<Declared, Problem> {
        let caller = Caller::key("k", ScopeSet::of(scopes), None);
        let sender = Sender {
            caller,
            session: None,
            is_tls: false,
            port: None,
        };
        Declared::read(query, &sender)
    }

    fn read(query: &str) -> Result<Declared, Problem> {
        read_as(query, &[Scope::ClientsRead, Scope::MetricsRead])
    }

    #[test]
    fn a_page_declares_what_it_shows() {
        let query = "figures=messages_in,clients&clients=user%3Dalice&clients_sort=queue\
            &clients_descending=true&clients_limit=5&client=b&client=a&client=b\
            &topics=&topics=site/a/&topics=b,c&topics_sort=rate&topic=x&every=250ms";
        let declared = read(query).unwrap();
        assert_eq!(declared.figures, [4, 0]);
        assert_eq!(declared.every.time(), Duration::from_millis(250));
        let level = |under: Option<&str>| {
            let query = TopicQuery {
                under: under.map(ToOwned::to_owned),
                order: thrum_broker::TopicOrder::Rate,
                limit: ROWS,
                ..TopicQuery::default()
            };
            Part::Topics(query, Payloads::NoScope)
        };
        let rows = ClientRows {
            filter: "user=alice".to_owned(),
            sort: Some("queue".to_owned()),
            is_descending: true,
            limit: 5,
        };
        let expected = [
            Part::Figures,
            Part::Clients(rows),
            Part::Client("a".to_owned()),
            Part::Client("b".to_owned()),
            level(None),
            level(Some("b,c")),
            level(Some("site/a")),
            Part::Topic("x".to_owned(), Payloads::NoScope),
        ];
        assert_eq!(declared.parts, expected);
        assert_eq!(declared.scopes(), [Scope::ClientsRead, Scope::MetricsRead]);
    }

    #[test]
    fn payloads_need_their_scope_and_are_not_there_without_it() {
        let with = read_as("topic=t", &[Scope::ClientsRead, Scope::MessagesRead]).unwrap();
        assert_eq!(with.scopes(), [Scope::ClientsRead, Scope::MessagesRead]);
        let without = read_as("topic=t", &[Scope::ClientsRead]).unwrap();
        let part = Part::Topic("t".to_owned(), Payloads::NoScope);
        assert_eq!(without.parts, [part]);
    }

    #[test]
    fn what_is_wrong_is_told_with_what_is_right() {
        for (query, part) in [
            ("", "at least one of figures"),
            ("every=1s", "at least one of figures"),
            ("figures=messages", "is no figure"),
            ("figures=all&every=100ms", "every is one of 250ms"),
            ("clients=&clients_limit=101", "from 1 to 100"),
            ("clients=&clients_sort=colour", "sort is one of"),
            ("clients=colour%3Dred", "colour"),
            ("clients_limit=5&figures=all", "which is not declared"),
            ("topics_sort=rate&figures=all", "which is not declared"),
            ("topics=&topics_sort=colour", "sort is one of"),
            ("topics=a/%23", "it has no wildcards"),
            ("topic=%2B", "it has no wildcards"),
            (
                "topics=a&topics=b&topics=c&topics=d&topics=e&topics_limit=100",
                "500 rows",
            ),
            (
                "client=a&client=b&client=c&client=d&client=e",
                "may occur 4 times",
            ),
            ("figures=all&clients_descending=yes", "true or false"),
            ("figures=all&seconds=0", "from 1 to 86400"),
            ("figures=all&colour=red", "unknown parameter"),
        ] {
            let problem = read(query).unwrap_err();
            assert_eq!(problem.status, 400, "{query}");
            assert!(problem.detail.contains(part), "{query}: {}", problem.detail);
        }
    }
}
