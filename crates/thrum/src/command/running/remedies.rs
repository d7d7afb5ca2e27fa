//! Remedies of the broker, which name requests of HTTP, as commands for a terminal.

/// Remedies of which a terminal has nothing, and what helps there.
const WHOLE: [(&str, &str); 4] = [
    (
        "correct the request; GET /api/v1/openapi.json describes each route",
        "correct the command line; --help describes it",
    ),
    (
        "send another value; GET /api/v1/openapi.json describes each route",
        "choose another one",
    ),
    (
        "remove one with DELETE /api/v1/backups/NAME or thrum backup rm NAME",
        "remove one with thrum backup rm NAME",
    ),
    (
        "plan again (POST /api/v1/config/plan), look at the differences, and apply with the new fingerprint",
        "run it again",
    ),
];

/// Requests and the commands that send them. A request that begins with another one is before it.
const COMMANDS: [(&str, &str); 25] = [
    ("GET /api/v1/admins", "thrum admin ls"),
    ("DELETE /api/v1/admins/NAME", "thrum admin rm NAME"),
    ("PATCH /api/v1/admins/NAME", "thrum admin change NAME"),
    ("GET /api/v1/backups", "thrum backup ls"),
    ("DELETE /api/v1/backups/NAME", "thrum backup rm NAME"),
    ("GET /api/v1/bans", "thrum bans ls"),
    ("POST /api/v1/bans", "thrum bans add"),
    ("GET /api/v1/clients", "thrum clients ls"),
    ("GET /api/v1/config/KEY", "thrum config explain KEY"),
    ("GET /api/v1/config/versions", "thrum config versions"),
    ("POST /api/v1/config/rollback", "thrum config rollback"),
    ("GET /api/v1/config", "thrum config show"),
    ("GET /api/v1/drops", "thrum drops ls"),
    ("GET /api/v1/groups", "thrum groups ls"),
    ("GET /api/v1/keys", "thrum keys ls"),
    ("DELETE /api/v1/keys/ID", "thrum keys rm ID"),
    ("POST /api/v1/keys", "thrum keys add"),
    ("GET /api/v1/listeners", "thrum listeners ls"),
    ("GET /api/v1/retained", "thrum retained ls"),
    ("GET /api/v1/roles", "thrum roles ls"),
    ("GET /api/v1/status", "thrum status"),
    ("GET /api/v1/user-groups", "thrum users groups ls"),
    ("GET /api/v1/users", "thrum users ls"),
    (
        "POST /api/v1/users/NAME/password",
        "thrum users passwd NAME",
    ),
    ("PATCH /api/v1/users/NAME", "thrum users change NAME"),
];

/// The prefix of every route, which the command for any request adds itself.
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// What a remedy says on a terminal.
pub(super) fn in_commands(remedy: &str) -> String {
    let whole = WHOLE.iter().find(|(request, _)| *request == remedy);
    if let Some((_, command)) = whole {
        return (*command).to_owned();
    }
    let mut text = remedy.to_owned();
    for (request, command) in COMMANDS {
        text = replaced(&text, request, command);
    }
    for method in METHODS {
        let request = format!("{method} /api/v1/");
        text = text.replace(&request, &format!("thrum api {method} /"));
    }
    text
}

/// With the command instead of the request, where that is not the beginning of a longer one.
fn replaced(text: &str, request: &str, command: &str) -> String {
    let mut parts = text.split(request);
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let goes_on =
            part.starts_with(|next: char| next.is_alphanumeric() || "/-?.".contains(next));
        all.push_str(if goes_on { request } else { command });
        all.push_str(part);
    }
    all
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_request_is_the_command_that_sends_it() {
        for (remedy, expected) in [
            (
                "list them with GET /api/v1/backups",
                "list them with thrum backup ls",
            ),
            (
                "list the keys with GET /api/v1/keys, or remove one with DELETE /api/v1/keys/ID",
                "list the keys with thrum keys ls, or remove one with thrum keys rm ID",
            ),
            (
                "change it with PATCH /api/v1/users/NAME, its password with POST /api/v1/users/NAME/password",
                "change it with thrum users change NAME, its password with thrum users passwd NAME",
            ),
            (
                "GET /api/v1/config/KEY describes it",
                "thrum config explain KEY describes it",
            ),
            (
                "look at GET /api/v1/config in time",
                "look at thrum config show in time",
            ),
            (
                "GET /api/v1/why/latency says it",
                "thrum api GET /why/latency says it",
            ),
            (
                "DELETE /api/v1/topic-metrics?filter=FILTER",
                "thrum api DELETE /topic-metrics?filter=FILTER",
            ),
            ("wait, and try again", "wait, and try again"),
        ] {
            assert_eq!(in_commands(remedy), expected);
        }
    }

    /// The code of the crates that say remedies, without the line ends within texts.
    fn code(folder: &Path, into: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                code(&path, into);
            } else if path.extension().is_some_and(|end| end == "rs") {
                into.push_str(&std::fs::read_to_string(&path).unwrap());
            }
        }
    }

    #[test]
    fn every_remedy_with_words_of_its_own_is_one_that_the_broker_says() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut all = String::new();
        code(&crates.join("management/src"), &mut all);
        code(&crates.join("thrum/src/command/backup"), &mut all);
        for (remedy, command) in WHOLE {
            assert!(
                all.contains(&format!("\"{remedy}\"")),
                "nobody says {remedy}"
            );
            assert!(!command.contains("/api/v1"), "{command}");
        }
        for (request, _) in COMMANDS {
            assert!(all.contains(request), "nobody says {request}");
        }
    }

    #[test]
    fn a_request_that_begins_with_another_one_is_before_it() {
        for (request, command) in COMMANDS {
            assert_eq!(in_commands(request), command, "{request}");
        }
    }
}
