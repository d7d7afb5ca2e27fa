//! The command line of `thrum bench`: accepted and refused flags, and the beginning of the help.

use clap::{CommandFactory as _, Parser as _};

use crate::command::Cli;

fn refused(line: &str) -> String {
    let command = Cli::command().term_width(90);
    let error = command
        .try_get_matches_from(line.split(' '))
        .expect_err(line);
    error.to_string()
}

#[test]
fn every_command_and_flag_of_bench_parses() {
    for line in [
        "thrum bench run p2p-1K --target mqtt://h:1 --username u --password-file p --pid 5 --threads 2",
        "thrum bench run a.toml --set groups.a.clients=5 --set qos=1 --scale 0.1 --threshold e2e.p99<5ms",
        "thrum bench run p2p-1K --target left=mqtt://a --target right=mqtt://b --cafile c --cert d --key e",
        "thrum bench run p2p-1K --baseline latest --note n --png --template t --no-tui --json --out o",
        "thrum bench run p2p-1K --duration 1m --warmup 0s --drain 1s --mqtt 5 --on-fault restart",
        "thrum bench suite basic --duration 1s --insecure",
        "thrum bench conn --connections 5 --connect-rate 5",
        "thrum bench pub --publishers 5 --rate 5/s --arrivals poisson",
        "thrum bench run p2p-1K --agents 2 --secret-file s --arrivals burst",
        "thrum bench agent --control mqtt://h --secret-file s",
        "thrum bench sub --subscribers 5",
        "thrum bench p2p --pairs 200 --rate 1/s",
        "thrum bench fanout --subscribers 10",
        "thrum bench fanin --publishers 10",
        "thrum bench shared --publishers 10 --payload 64 --qos 2",
        "thrum bench search p2p-1K --p99 5ms --loss 0.1% --cpu 75% --from 1K --to 5000/s --hold 5s --repeat 3 --vary clients",
        "thrum bench versus brokers.toml --suite basic --rounds 3 --brokers a,b",
        "thrum bench versus --scenario a --scenario b --duration 5s",
        "thrum bench versus --print-brokers",
        "thrum bench relay",
        "thrum bench relay --listen [::1]:0 --threads 16",
        "thrum bench scenarios",
        "thrum bench scenarios list",
        "thrum bench scenarios show p2p-1K",
        "thrum bench scenarios sets",
        "thrum bench new -",
        "thrum bench check p2p-1K --scale 50",
        "thrum bench ls --json",
        "thrum bench show latest",
        "thrum bench report latest --html --md --png --junit --window 10s..30s",
        "thrum bench compare a b c",
        "thrum bench compare a --against b",
        "thrum bench compare a1 a2 a3 --against b1 b2 b3 --fail --md --allow-different",
        "thrum bench import emqtt-bench x -o y",
    ] {
        let parsed = Cli::try_parse_from(line.split(' '));
        assert!(parsed.is_ok(), "{line}: {}", parsed.err().unwrap());
    }
}

#[test]
fn wrong_usage_of_bench_is_refused_with_a_hint() {
    for (line, hint) in [
        (
            "thrum bench serch p2p-1K",
            "a similar subcommand exists: 'search'",
        ),
        (
            "thrum bench run p2p-1K --duratoin 5s",
            "a similar argument exists: '--duration'",
        ),
        (
            "thrum bench run p2p-1K --duration soon",
            "write a span like 30s",
        ),
        ("thrum bench search p2p-1K", "--p99 <SPAN>"),
        (
            "thrum bench run p2p-1K --arrivals often",
            "write even, poisson or burst",
        ),
        ("thrum bench compare a", "<RUN>..."),
        ("thrum bench compare", "<RUN>"),
        ("thrum bench compare a b --json --md", "cannot be used with"),
        ("thrum bench run p2p-1K --cert a", "--key <FILE>"),
        (
            "thrum bench p2p --pairs 5 --publishers 5",
            "cannot be used with",
        ),
        (
            "thrum bench relay --listen 1883",
            "write an address and a port",
        ),
        ("thrum bench relay --threads 17", "17 is not in 1..=16"),
        (
            "thrum bench versus --suite basic --scenario a",
            "cannot be used with",
        ),
    ] {
        let message = refused(line);
        assert!(message.contains(hint), "{line}: {message}");
    }
}

#[test]
fn help_shows_examples_before_the_options() {
    for command in [
        "",
        " run",
        " p2p",
        " search",
        " versus",
        " compare",
        " limit",
        " scenarios",
        " import emqtt-bench",
    ] {
        let help = refused(&format!("thrum bench{command} --help"));
        let examples = help
            .find("Examples:")
            .unwrap_or_else(|| panic!("{command}: {help}"));
        let usage = help
            .find("Usage:")
            .unwrap_or_else(|| panic!("{command}: {help}"));
        assert!(examples < usage, "{command}: {help}");
    }
}
