//! The command line: accepted arguments, and the beginning of the help.

use std::path::Path;

use clap::CommandFactory as _;

use super::*;

fn refused(line: &str) -> String {
    // The same width in every terminal.
    let command = Cli::command().term_width(90);
    command
        .try_get_matches_from(line.split(' '))
        .expect_err(line)
        .to_string()
}

#[test]
fn the_tree_of_commands_is_sound() {
    Cli::command().debug_assert();
}

/// Each command, and each of its flags in one of them.
const LINES: &[&str] = &[
    "thrum serve",
    "thrum serve --dev",
    "thrum serve -c a.toml --listen 1883 --listen [::1]:0 --workers 2",
    "thrum serve --config a.toml --workers auto --log-level info,thrum_broker=debug --log-format json",
    "thrum pub -h localhost -t hello -m world",
    "thrum sub -h localhost -t # -v",
    "thrum rr -t ask -e answer -m world",
    "thrum bench run p2p-1K",
    "thrum config init",
    "thrum config init a.toml",
    "thrum config check -c a.toml",
    "thrum config show --origin --config a.toml",
    "thrum config import mosquitto mosquitto.conf -o thrum.toml --json",
    "thrum users import dynamic-security.json --format mosquitto-dynsec --users users.jsonl",
    "thrum acl test meter-7 pub a/b -u meter --qos 1 --retain --address 192.0.2.1 --listener mqtt --json",
    "thrum acl test meter-7 sub a/# -c thrum.toml",
    "thrum status --data-dir d -o json",
    "thrum status -c thrum.toml",
    "thrum why --data-dir d",
    "thrum why client meter-17 --seconds 5 -o json -c thrum.toml",
    "thrum clients ls --client meter-* --user u --address 192.0.2.0/24 --connected --subscribed a/# --sort queued-bytes --reverse",
    "thrum clients ls --away --limit 5000 --output table",
    "thrum clients ls --all -o json",
    "thrum clients get a --data-dir d",
    "thrum clients kick a --session -c thrum.toml",
    "thrum admin ls --data-dir d -o json",
    "thrum admin add bob --role operator --data-dir d --password-stdin",
    "thrum admin change bob --role viewer --disabled true --remove-totp -c thrum.toml",
    "thrum admin rm bob --data-dir d",
    "thrum admin setup-url -c thrum.toml --url https://broker.example/thrum",
    "thrum admin reset-password alice --data-dir d --password-stdin --remove-totp",
    "thrum keys ls --data-dir d",
    "thrum keys add grafana --scope metrics:read --scope logs:read --expires 30d --data-dir d",
    "thrum keys add x --scope admin --expires never -o json",
    "thrum keys rm abcdefgh --data-dir d",
    "thrum audit ls --data-dir d --who alice --action client.* --since 7d --limit 5 -o json",
    "thrum bans ls --data-dir d --json",
    "thrum bans add --data-dir d --client-id a --for 1h --reason noise",
    "thrum bans add --file f --address 192.0.2.0/24",
    "thrum bans rm --data-dir d --user a",
    "thrum sessions ls --data-dir d --away-for 7d --filter x --json",
    "thrum sessions get a --data-dir d --limit 5 --json",
    "thrum sessions purge --data-dir d a b",
    "thrum sessions purge --data-dir d --away-for 30d -y",
    "thrum sessions purge --data-dir d --all --yes",
    "thrum retained ls --data-dir d --filter a/+ --json",
    "thrum retained export --data-dir d - --filter #",
    "thrum retained import --data-dir d a.jsonl --replace-all",
    "thrum backup create --data-dir d b.tar --force --json",
    "thrum backup create --url https://b --token-file k b.tar",
    "thrum backup ls --context prod -o json",
    "thrum backup get 20261126T221500Z b.tar --url https://b --force --json",
    "thrum backup rm 20261126T221500Z -c thrum.toml",
    "thrum backup check b.tar",
    "thrum backup restore b.tar --data-dir d --force",
    "thrum users add a --users f --password-stdin --role r --group g --allow sub --deny pub --superuser --scram",
    "thrum users change a -c f --role r --no-rules --superuser false --disabled true",
    "thrum users change a --users f --no-roles --no-groups",
    "thrum users passwd a --data-dir d --password-file f --scram",
    "thrum users rm a b --users f",
    "thrum users ls --users f --filter x --json",
    "thrum users import f --format emqx-csv --algorithm pbkdf2-sha256 --salt-position prefix --iterations 9",
    "thrum users roles set r --allow sub --users f",
    "thrum users groups ls --json",
    "thrum roles ls --json",
    "thrum roles set r --allow sub --users f",
    "thrum acl ls -u a -c f --filter source=x -o csv",
    "thrum bans add --file f --user a --keep-connected",
    "thrum completion bash",
    "thrum man",
    "thrum version",
];

#[test]
fn every_command_and_flag_parses() {
    for line in LINES {
        assert!(Cli::try_parse_from(line.split(' ')).is_ok(), "{line}");
    }
}

#[cfg(feature = "management")]
#[test]
fn every_command_for_a_broker_anywhere_parses() {
    for line in [
        "thrum clients ls --top 10 --sort queue --columns client_id,user -o csv -w",
        "thrum clients ls --url https://b:8080 --token-file f --cafile c --watch 500ms",
        "thrum clients watch --context prod --filter problem=any",
        "thrum clients timeline a --url http://localhost:8080",
        "thrum clients explain a",
        "thrum clients trace a --seconds 3 --packets 5 --payloads --write f",
        "thrum subs ls --exactly a/# --filter qos>0 -o yaml",
        "thrum topics ls site/a --top 5 -o json",
        "thrum topics watch",
        "thrum topics tree site --depth 2 --width 5",
        "thrum topics get a/b -o json",
        "thrum clients ban a --by user --for 1h --reason noise --keep-connected -o json",
        "thrum users add a --url https://b --token-file f --password-stdin",
        "thrum users ls --context prod --filter disabled=true --sort name -w",
        "thrum users import f --format mosquitto --context prod",
        "thrum roles rm r --url https://b",
        "thrum acl explain a pub t --context prod -o json",
        "thrum acl ls --client a --url https://b",
        "thrum bans ls --url https://b --sort until -o yaml --watch",
        "thrum bans rm --user a --context prod",
        "thrum sessions ls --data-dir d --sort bytes --top 5 -o csv",
        "thrum admin ls --data-dir d --filter role=viewer -o yaml",
        "thrum groups ls --group g --sort lag --reverse",
        "thrum drops ls --reason queue_full --client a --topic b/#",
        "thrum drops watch",
        "thrum slow --by oldest --filter user=a --limit 5",
        "thrum explain publish a t --qos 1 --retain --payload-bytes 5",
        "thrum explain subscribe a t/# -q 2 -o json",
        "thrum explain drops a",
        "thrum trace --topic a/# --payloads",
        "thrum api get /clients --paginate -q limit=5",
        "thrum api POST /publish -d @f --type text/plain",
        "thrum context add prod --url https://b --token-stdin --use --force",
        "thrum context add here --data-dir d",
        "thrum context use --none",
        "thrum context show -o json",
        "thrum top --interval 1s --sort queue --filter user=a",
        "thrum top --lines 5 --interval 1s",
        "thrum top --lines",
        "thrum doctor -c f --data-dir d --strict --quiet -o json",
        "thrum probe mqtt://b:1883 -u me -o json --timeout 5",
        "thrum probe -h b -p 1883",
        "thrum cheat lost",
        "thrum retained get a/b --payload",
        "thrum retained rm a/# --dry-run -y -o json",
        "thrum retained ls --url https://b -o wide --sort size",
        "thrum retained export - --context prod",
    ] {
        assert!(Cli::try_parse_from(line.split(' ')).is_ok(), "{line}");
    }
}

#[test]
fn every_command_and_flag_about_a_running_configuration_parses() {
    for line in [
        "thrum config explain limits.max_packet -c a.toml",
        "thrum config set limits.max_packet 2MB --dry-run --data-dir d",
        "thrum config set limits.max_packet --unset -c a.toml -o json",
        "thrum config diff --data-dir d",
        "thrum config versions -o json --data-dir d",
        "thrum config rollback --data-dir d",
        "thrum config rollback 3 -o json --data-dir d",
        "thrum config reload --data-dir d -o json",
        "thrum config schema",
        "thrum listeners ls --data-dir d",
        "thrum listeners stop mqtt --disconnect --data-dir d",
        "thrum listeners start mqtt -c a.toml",
        "thrum certs ls --data-dir d -o json",
        "thrum certs reload --data-dir d",
        "thrum logs tail -f -n 5 --level warn --target thrum_broker --text x --data-dir d",
        "thrum logs level debug --for 5m --data-dir d",
        "thrum logs level --data-dir d",
        "thrum alarms ls --data-dir d",
        "thrum alarms history --limit 5 --data-dir d",
    ] {
        assert!(Cli::try_parse_from(line.split(' ')).is_ok(), "{line}");
    }
}

#[test]
fn wrong_usage_is_refused_with_a_hint() {
    for (line, hint) in [
        ("thrum serv", "'serve'"),
        ("thrum serv", "similar subcommands exist: 'users', 'serve'"),
        (
            "thrum serve --lisen 1883",
            "a similar argument exists: '--listen'",
        ),
        (
            "thrum serve --listen example.com:1883",
            "expected address:port, such as 127.0.0.1:1883",
        ),
        (
            "thrum serve --log-format xml",
            "[possible values: text, json]",
        ),
        (
            "thrum bans add --data-dir d",
            "<--client-id <ID>|--user <NAME>|--address <ADDRESS>>",
        ),
        (
            "thrum bans add --data-dir d --user a --address 192.0.2.7",
            "cannot be used with",
        ),
        (
            "thrum bans add --data-dir d --address here",
            "expected an address such as 192.0.2.7 or 2001:db8::1, or a network such as 192.0.2.0/24",
        ),
        ("thrum bans ls --data-dir d --file f", "cannot be used with"),
        (
            "thrum sessions purge --data-dir d",
            "<CLIENT_ID|--away-for <DURATION>|--all>",
        ),
        (
            "thrum sessions purge --data-dir d --all a",
            "cannot be used with",
        ),
        (
            "thrum sessions ls --data-dir d --away-for soon",
            "expected a duration such as \"7d\"",
        ),
        (
            "thrum retained ls --data-dir d --filter a/#/b",
            "expected a topic filter",
        ),
        (
            "thrum completion csh",
            "bash, elvish, fish, powershell, zsh",
        ),
    ] {
        let message = refused(line);
        assert!(message.contains(hint), "{line}: {message}");
    }
}

#[cfg(feature = "management")]
#[test]
fn wrong_usage_of_a_listing_is_refused_with_a_hint() {
    for (line, hint) in [
        ("thrum clients ls --connected --away", "cannot be used with"),
        ("thrum clients ls --limit 0", "0 is not in 1.."),
        ("thrum keys add a", "--scope <SCOPE>"),
        (
            "thrum keys add a --scope clients",
            "[possible values: clients:read, clients:write,",
        ),
        (
            "thrum keys add a --scope admin --expires soon",
            "expected a duration such as \"7d\"",
        ),
        (
            "thrum audit ls --since yesterday",
            "expected a time such as 2026-11-22T09:00:00Z, or a duration such as 7d",
        ),
        (
            "thrum clients ls -o xml",
            "[possible values: table, wide, json, jsonl, csv, yaml]",
        ),
        ("thrum clients ls --top 5 --all", "cannot be used with"),
        ("thrum clients ls -w 1ms", "at least 200ms"),
        (
            "thrum clients ls --url broker:8080",
            "write https://HOST:8080",
        ),
        (
            "thrum clients ls --url https://b --data-dir d",
            "cannot be used with",
        ),
        ("thrum trace --client a --topic b", "cannot be used with"),
        ("thrum top --lines 5 --sort queue", "cannot be used with"),
        ("thrum top --lines --filter user=a", "cannot be used with"),
        ("thrum api fetch /clients", "expected get, post, put"),
        ("thrum context use", "<NAME>"),
    ] {
        let message = refused(line);
        assert!(message.contains(hint), "{line}: {message}");
    }
}

/// Compares what a line prints with the reviewed file, or writes that.
fn check_help(line: &str, file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/help")
        .join(file);
    let help = refused(line);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &help).unwrap();
    }
    let reviewed = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        help, reviewed,
        "{line}: UPDATE_DOCS=1 cargo test -p thrum help_"
    );
}

#[cfg(feature = "management")]
#[test]
fn help_about_a_running_broker_is_as_it_was_reviewed() {
    check_help("thrum status -h", "status.txt");
    check_help("thrum clients -h", "clients.txt");
    check_help("thrum clients ls -h", "clients-ls.txt");
    check_help("thrum admin -h", "admin.txt");
    check_help("thrum keys -h", "keys.txt");
    check_help("thrum keys add -h", "keys-add.txt");
    check_help("thrum audit ls -h", "audit-ls.txt");
    check_help("thrum subs ls -h", "subs-ls.txt");
    check_help("thrum api -h", "api.txt");
    check_help("thrum context -h", "context.txt");
    check_help("thrum top -h", "top.txt");
}

#[test]
fn help_is_as_it_was_reviewed() {
    for (line, file) in [
        ("thrum --help", "thrum.txt"),
        ("thrum serve -h", "serve.txt"),
        ("thrum pub --help", "pub.txt"),
        ("thrum config -h", "config.txt"),
        ("thrum config import mosquitto -h", "config-import.txt"),
        ("thrum acl test -h", "acl-test.txt"),
        ("thrum bans -h", "bans.txt"),
        ("thrum bans add -h", "bans-add.txt"),
        ("thrum sessions -h", "sessions.txt"),
        ("thrum sessions purge -h", "sessions-purge.txt"),
        ("thrum retained -h", "retained.txt"),
        ("thrum backup -h", "backup.txt"),
        ("thrum doctor -h", "doctor.txt"),
        ("thrum users -h", "users.txt"),
        ("thrum users add -h", "users-add.txt"),
        ("thrum users import -h", "users-import.txt"),
    ] {
        check_help(line, file);
    }
}

/// The commands of the table in the guide, each with those of its actions that the table names.
fn commands_of_the_guide() -> Vec<(String, Vec<String>)> {
    let guide = include_str!("../../../../docs/guide/commands.md");
    let rows = guide.lines().skip_while(|line| !line.starts_with("|---"));
    let rows = rows.skip(1).take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.split(" | ").next().unwrap());
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let commands = names.map(|name| {
        let (command, actions) = name.split_once(' ').unwrap_or((name, ""));
        let actions = actions.split("\\|").filter(|action| !action.is_empty());
        (command.to_owned(), actions.map(ToOwned::to_owned).collect())
    });
    commands.collect()
}

#[cfg(all(feature = "bench", feature = "management"))]
#[test]
fn the_guide_has_a_line_for_every_command_and_names_no_other() {
    let program = Cli::command();
    let guide = commands_of_the_guide();
    for (command, actions) in &guide {
        let found = program.find_subcommand(command);
        let found = found.unwrap_or_else(|| panic!("there is no thrum {command}"));
        for action in actions {
            assert!(
                found.find_subcommand(action).is_some(),
                "there is no thrum {command} {action}"
            );
        }
        if actions.is_empty() || command == "config" {
            continue;
        }
        for action in found.get_subcommands().map(clap::Command::get_name) {
            let mut named = guide.iter().filter(|(name, _)| name == command);
            assert!(
                named.any(|(_, actions)| actions.iter().any(|one| one == action)),
                "docs/guide/commands.md lacks {command} {action}"
            );
        }
    }
    for command in program.get_subcommands().map(clap::Command::get_name) {
        assert!(
            guide.iter().any(|(name, _)| name == command),
            "docs/guide/commands.md lacks {command}"
        );
    }
}

#[test]
fn the_index_of_the_guide_names_every_page_of_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let index = std::fs::read_to_string(folder.join("README.md")).unwrap();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name == "README.md" || path.extension() != Some("md".as_ref()) {
            continue;
        }
        assert!(
            index.contains(&format!("]({name})")),
            "README.md lacks {name}"
        );
    }
}
