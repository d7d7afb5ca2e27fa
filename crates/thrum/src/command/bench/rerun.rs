//! `thrum bench rerun`: the scenario of a bundle again, compared with it.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use thrum_load::scenario::{FaultKind, PayloadSpec, Scenario};
use thrum_report::RunResult;
use thrum_report::compare::{self, Comparison};
use thrum_transport::Endpoint;

use super::arguments::{MeasureArgs, OutputArgs, ReportArgs, TargetArgs};
use super::compare::exit_code;
use super::complaint::Complaint;
use super::folders::Kept;
use super::session;
use super::{bundle, bundle_verdict};

const EXAMPLES: &str = "\
Examples:
  thrum bench rerun run.mbench                               against the broker that it names, on this machine
  thrum bench rerun run.mbench --target mqtt://10.0.0.5:1883
  thrum bench rerun run.mbench --fail                        exit code 99 if it got worse";

/// Stands for a password in the scenario of a result.
const HIDDEN: &str = "***";

/// Arguments of `thrum bench rerun`.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct RerunArgs {
    /// The bundle.
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
    /// Do all that the scenario of the bundle says: run its commands, read the files that it names,
    /// and load brokers of other machines.
    #[arg(long)]
    trust: bool,
    /// End with exit code 99 if the new run is worse than the bundle by more than noise explains,
    /// and with 7 if one of them is INVALID.
    #[arg(long)]
    fail: bool,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    measure: MeasureArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs it again.
pub(super) fn run(args: &RerunArgs) -> anyhow::Result<u8> {
    let before = bundle::read(&args.bundle)?.run;
    let scenario = scenario(&before, args)?;
    let target = target(&before, &scenario, &args.target);
    if !args.trust {
        check_trust(&scenario, &target.target, &args.target.target)?;
    }
    let baseline = Kept {
        folder: args.bundle.clone(),
        result: before.clone(),
    };
    let reports = ReportArgs::default();
    let session = session::Session {
        output: &args.output,
        reports: &reports,
        baseline: Some(baseline),
    };
    let engine = session::engine(&target, &measure(&before, &args.measure)?)?;
    let ended = session.run(&engine, vec![scenario])?;
    let [after] = ended.results.as_slice() else {
        return Ok(ended.exit_code);
    };
    let comparison = [Comparison::new(&[before], std::slice::from_ref(after))];
    if !args.output.json {
        let text = compare::text(&comparison);
        writeln!(
            std::io::stdout(),
            "\n  A is {}, B is this run\n{text}",
            args.bundle.display()
        )?;
    }
    Ok(match ended.exit_code {
        0 if args.fail => exit_code(&comparison),
        code => code,
    })
}

/// The scenario as it was run; passwords are not in it.
fn scenario(before: &RunResult, args: &RerunArgs) -> Result<Scenario, Complaint> {
    let origin = format!("the scenario of {}", args.bundle.display());
    let mut scenario = bundle_verdict::scenario(before, &origin).map_err(Complaint::usage)?;
    for group in &mut scenario.groups {
        let password = &mut group.client.password;
        if password.as_deref() == Some(HIDDEN) {
            if args.target.password_file.is_none() {
                let message = "a bundle keeps no password: give --username and --password-file";
                return Err(Complaint::usage(message));
            }
            *password = None;
        }
    }
    Ok(scenario)
}

/// The brokers of the command line, else those of the bundle.
fn target(before: &RunResult, scenario: &Scenario, given: &TargetArgs) -> TargetArgs {
    let mut target = given.clone();
    if target.target.is_empty() {
        let urls = before.scenario.targets.iter().zip(&scenario.targets);
        target.target = urls
            .map(|(url, spec)| {
                if spec.name.is_empty() {
                    url.clone()
                } else {
                    format!("{}={url}", spec.name)
                }
            })
            .collect();
    }
    target
}

/// Threads and agents as before, unless the command line says otherwise.
fn measure(before: &RunResult, given: &MeasureArgs) -> Result<MeasureArgs, Complaint> {
    let agents = before.agents.len();
    if agents > 0 && given.agents.is_none() {
        return Err(Complaint::usage(format!(
            "the load of this run came from {agents} agents: start as many, and give --agents {agents}"
        )));
    }
    let threads = u32::try_from(before.generator.threads.len()).unwrap_or(u32::MAX);
    Ok(MeasureArgs {
        threads: given.threads.or_else(|| (threads > 0).then_some(threads)),
        ..given.clone()
    })
}

/// A bundle may come from anyone: without trust it loads only brokers of this machine, and neither
/// runs commands nor reads files. `given` are the targets of the command line, the user's own;
/// `named` are those that take the place of the scenario's targets of the same names.
fn check_trust(scenario: &Scenario, named: &[String], given: &[String]) -> Result<(), Complaint> {
    let refused = |what: String| {
        Complaint::usage(format!(
            "the scenario of the bundle {what}; look at it (tar -xO -f BUNDLE scenario.toml) and give --trust"
        ))
    };
    for fault in &scenario.faults {
        if let FaultKind::Hook { command } = &fault.kind
            && !command.is_empty()
        {
            return Err(refused(format!("runs the command {command:?}")));
        }
    }
    for publish in scenario
        .groups
        .iter()
        .filter_map(|group| group.publish.as_ref())
    {
        if let PayloadSpec::File(path) = &publish.payload {
            let path = path.display().to_string();
            return Err(refused(format!("sends the file {path:?}")));
        }
    }
    let named: Vec<(&str, &str)> = named
        .iter()
        .map(|text| super::engine::named(text))
        .collect();
    let of_scenario = scenario.targets.iter().filter_map(|spec| {
        let is_replaced = named.iter().any(|(name, _)| *name == spec.name);
        let url = spec.url.as_deref().filter(|_| !is_replaced)?;
        Some((spec.name.as_str(), url))
    });
    let of_bundle = named.iter().copied().filter(|_| given.is_empty());
    for (name, url) in of_scenario.chain(of_bundle) {
        let host = Endpoint::parse(url).map_err(Complaint::usage)?.host;
        if !is_here(&host) {
            let target = if name.is_empty() {
                "--target".to_owned()
            } else {
                format!("--target {name}=URL")
            };
            return Err(Complaint::usage(format!(
                "the bundle names the broker {host} of another machine: give it with {target}, or give --trust"
            )));
        }
    }
    Ok(())
}

fn is_here(host: &str) -> bool {
    let address = host.parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use thrum_load::scenario::load;

    use super::*;

    fn untrusted(rest: &str, named: &[&str]) -> Result<(), String> {
        with_given(rest, named, &[])
    }

    fn with_given(rest: &str, named: &[&str], given: &[&str]) -> Result<(), String> {
        let text = format!("name = \"a\"\n{rest}");
        let scenario = load(&text, "a.toml").unwrap().scenarios.remove(0);
        let [named, given] = [named, given].map(|urls| urls.iter().map(|url| (*url).to_owned()));
        let (named, given): (Vec<String>, Vec<String>) = (named.collect(), given.collect());
        check_trust(&scenario, &named, &given).map_err(|refused| refused.to_string())
    }

    #[test]
    fn a_target_of_the_command_line_takes_the_place_of_the_bundles() {
        let one = format!("target = \"mqtt://10.0.0.5\"\n{GROUP}");
        assert!(untrusted(&one, &[]).is_err());
        for own in ["mqtt://127.0.0.1", "mqtt://10.0.0.9"] {
            assert_eq!(with_given(&one, &[own], &[own]), Ok(()));
        }
        let two = "[targets]\na = \"mqtt://10.0.0.5\"\nb = \"mqtt://10.0.0.6\"\n\
            [groups.a]\nclients = 1\ntarget = \"a\"\n[groups.b]\nclients = 1\ntarget = \"b\"\n";
        let [a, b] = ["a=mqtt://10.0.0.9", "b=mqtt://10.0.0.9"];
        let refused = with_given(two, &[a], &[a]).unwrap_err();
        assert!(
            refused.contains("the broker 10.0.0.6 of another machine: give it with --target b=URL"),
            "{refused}"
        );
        assert_eq!(with_given(two, &[a, b], &[a, b]), Ok(()));
        // A target without a name replaces none that has an address of its own.
        assert!(with_given(two, &["mqtt://127.0.0.1"], &["mqtt://127.0.0.1"]).is_err());
    }

    const GROUP: &str = "[groups.a]\nclients = 1\n";

    #[test]
    fn a_bundle_of_anyone_loads_only_brokers_of_this_machine() {
        for here in [
            "mqtt://127.0.0.1:1883",
            "mqtt://[::1]:1883",
            "b=ws://localhost",
        ] {
            assert_eq!(untrusted(GROUP, &[here]), Ok(()), "{here}");
        }
        for elsewhere in [
            "mqtt://10.0.0.5",
            "mqtt://localhost.example.org",
            "b=mqtt://host",
        ] {
            let refused = untrusted(GROUP, &[elsewhere]).unwrap_err();
            assert!(
                refused.contains("of another machine: give it with --target"),
                "{refused}"
            );
        }
        let in_scenario =
            "[targets]\nb = \"mqtt://10.0.0.5\"\n[groups.a]\nclients = 1\ntarget = \"b\"\n";
        assert!(
            untrusted(in_scenario, &[])
                .unwrap_err()
                .contains("the broker 10.0.0.5")
        );
    }

    #[test]
    fn a_bundle_of_anyone_runs_no_commands_and_reads_no_files() {
        let hook = format!("{GROUP}[[faults]]\nat = \"1s\"\nhook = \"rm -r ~\"\n");
        let refused = untrusted(&hook, &[]).unwrap_err();
        assert!(
            refused.contains("runs the command \"rm -r ~\""),
            "{refused}"
        );
        let file = "[groups.a]\nclients = 1\npublish = { topic = \"t\", rate = 1, payload = \"file:/etc/passwd\" }\n";
        let refused = untrusted(file, &[]).unwrap_err();
        assert!(
            refused.contains("sends the file \"/etc/passwd\""),
            "{refused}"
        );
    }
}
