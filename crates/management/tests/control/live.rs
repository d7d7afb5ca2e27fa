//! The commands of the guide to live data: each is answered.

use super::{Answer, TestBroker};

const GUIDE: &str = include_str!("../../../../docs/guide/live.md");

/// What a `curl` of the guide asks.
struct Asked<'a> {
    method: &'a str,
    body: &'a str,
    path: &'a str,
}

/// The words of a line, as a shell takes them apart.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let (word, behind) = match rest.strip_prefix('\'') {
            Some(quoted) => quoted.split_once('\'').expect("a closing quote"),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        words.push(word);
        rest = behind.trim_start();
    }
    words
}

fn asked(line: &str) -> Asked<'_> {
    let words = words(line);
    let behind = |option: &str| {
        let place = words.iter().position(|word| *word == option)?;
        words.get(place + 1).copied()
    };
    let body = behind("--json").unwrap_or_default();
    let path = words
        .iter()
        .find_map(|word| word.strip_prefix("http://localhost"));
    Asked {
        method: behind("-X").unwrap_or(if body.is_empty() { "GET" } else { "POST" }),
        body,
        path: path.expect("an address"),
    }
}

impl TestBroker {
    fn do_as_the_guide(&self, line: &str) -> Answer {
        let Asked { method, body, path } = asked(line);
        match method {
            "GET" if path.contains("/stream?") => self.get(&format!("{path}&seconds=1")),
            "GET" => self.get(path),
            "POST" => self.post(path, body),
            "DELETE" => self.delete(path),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn every_command_of_the_guide_is_answered() {
    let broker = TestBroker::new("guide-live", 2);
    let lines = GUIDE.lines().filter(|line| line.starts_with("curl "));
    let mut count = 0;
    for line in lines {
        let answer = broker.do_as_the_guide(line);
        assert!(
            (200..300).contains(&answer.status),
            "{line}: {}",
            answer.text
        );
        if line.contains("/stream?") {
            assert_eq!(answer.kind, "text/event-stream", "{line}");
            assert!(
                answer.text.contains("\"reason\":\"seconds\""),
                "{line}: {}",
                answer.text
            );
        }
        count += 1;
    }
    assert!(count >= 8, "{count}");
}
