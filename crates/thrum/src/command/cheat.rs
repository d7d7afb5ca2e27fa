//! `thrum cheat`: lines to copy, by topic.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Args;
use thrum_settings::nearest;

use super::Failure;

/// Arguments of `thrum cheat`.
#[derive(Debug, Args)]
pub(crate) struct CheatArgs {
    /// A topic; without one all topics are listed.
    topic: Option<String>,
}

/// Lines about one topic.
struct Sheet {
    topic: &'static str,
    title: &'static str,
    lines: &'static str,
}

const SHEETS: [Sheet; 8] = [
    Sheet {
        topic: "first",
        title: "the first message",
        lines: "\
thrum serve --dev                                   # a broker for experiments
thrum sub -t '#' -v                                 # print every message
thrum pub -t hello -m world                         # send one
thrum pub -t state -m on -r                         # retained: later subscribers get it too",
    },
    Sheet {
        topic: "clients",
        title: "who is connected, and why not",
        lines: "\
thrum clients ls --filter 'user=alice' --sort queue # -o json | jq, -o csv, -o yaml
thrum clients ls --top 10 --sort queue              # the longest queues
thrum clients watch --filter problem=any            # again every 2 s
thrum clients timeline meter-17                     # why it was disconnected
thrum clients kick meter-17                         # it may come back
thrum bans add --client-id meter-17 --for 1h --data-dir /var/lib/thrum",
    },
    Sheet {
        topic: "lost",
        title: "a message did not arrive",
        lines: "\
thrum explain publish meter-17 site/a/alarm --qos 1 # who would get it, and why not
thrum explain drops dashboard                       # what a client did not get
thrum drops ls --client dashboard                   # by reason and topic
thrum trace --client dashboard                      # its packets while they pass, until ^C
thrum acl test meter-17 pub site/a/alarm -u meter   # which rule decides",
    },
    Sheet {
        topic: "slow",
        title: "something is slow",
        lines: "\
thrum why                                           # the causes, ranked, and their cures
thrum top                                           # load, and the busiest clients
thrum slow --by oldest                              # who does not keep up
thrum groups ls --sort lag --reverse                # shared groups that fall behind
thrum doctor                                        # this machine and its configuration",
    },
    Sheet {
        topic: "retained",
        title: "retained messages",
        lines: "\
thrum retained ls --filter 'site/+/state'           # without payloads
thrum retained get site/a/state                     # one with its payload
thrum retained rm 'site/old/#' --dry-run            # how many would it be?
thrum retained export retained.jsonl                # all of them to a file",
    },
    Sheet {
        topic: "remote",
        title: "a broker elsewhere",
        lines: "\
thrum keys add laptop --scope clients:read          # on its machine: prints a key
thrum context add prod --url https://broker.example:8080 --token-file prod.key
thrum context use prod                              # commands ask it from now on
thrum clients ls --context test                     # another one, once
thrum api get /clients --paginate                   # any route of the interface",
    },
    Sheet {
        topic: "setup",
        title: "a broker that stays",
        lines: "\
thrum config init thrum.toml                        # a commented configuration
thrum config check -c thrum.toml
thrum doctor -c thrum.toml                          # is the machine ready?
thrum users add meter --data-dir /var/lib/thrum     # asks for the password
thrum admin setup-url --data-dir /var/lib/thrum     # the first administrator
thrum backup create backup.tar --data-dir /var/lib/thrum",
    },
    Sheet {
        topic: "bench",
        title: "how fast is it?",
        lines: "\
thrum bench run p2p-1K                              # one scenario
thrum bench suite basic --target mqtt://127.0.0.1:1883
thrum probe mqtt://test.example:1883                # what does a broker support?",
    },
];

/// Prints lines, or the topics.
pub(crate) fn run(args: &CheatArgs) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    let Some(topic) = &args.topic else {
        for Sheet { topic, title, .. } in SHEETS {
            writeln!(out, "{:<26}# {title}", format!("thrum cheat {topic}"))?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let found = SHEETS.iter().find(|sheet| sheet.topic == topic);
    let sheet = found.ok_or_else(|| {
        let topics = SHEETS.map(|sheet| sheet.topic);
        let near = nearest(topic, topics).map(|near| format!("did you mean {near}? "));
        Failure::usage(format!(
            "there is no sheet {:?}; {}the topics are {}",
            topic,
            near.unwrap_or_default(),
            topics.join(", ")
        ))
    })?;
    writeln!(out, "{}", sheet.lines)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    /// Words of a line as a shell makes them, without its comment.
    fn words(line: &str) -> Vec<String> {
        let line = line.split(" #").next().unwrap();
        let mut words = Vec::new();
        let mut rest = line.trim();
        while !rest.is_empty() {
            let (word, behind) = match rest.strip_prefix('\'') {
                Some(quoted) => quoted.split_once('\'').unwrap(),
                None => rest.split_once(' ').unwrap_or((rest, "")),
            };
            words.push(word.to_owned());
            rest = behind.trim_start();
        }
        words
    }

    #[cfg(all(feature = "bench", feature = "management"))]
    #[test]
    fn every_line_of_every_sheet_is_understood() {
        for sheet in &SHEETS {
            for line in sheet.lines.lines() {
                assert!(line.chars().count() <= 100, "{line}");
                let words = words(line);
                assert_eq!(words[0], "thrum");
                let parsed = crate::command::Cli::command().try_get_matches_from(&words);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }
}
