//! `thrum bench conn|pub|sub|fanout|fanin|p2p|shared`: scenarios made of flags.

use clap::Args;
use thrum_load::scenario::{Group, Scenario, to_toml};

use super::arguments::{MeasureArgs, OutputArgs, ReportArgs, SizeArgs, StageArgs, TargetArgs};
use super::complaint::Complaint;
use super::session;

const EXAMPLES: &str = "\
Examples:
  thrum bench conn --connections 5000 --connect-rate 500
  thrum bench p2p --pairs 200 --rate 10/s --qos 2
  thrum bench fanout --subscribers 500 --rate 20/s --payload 1024
  thrum bench fanin --publishers 500 --subscribers 2
  thrum bench shared --publishers 500 --subscribers 10 --mqtt 5";

/// Arguments of the shortcuts.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct ShortcutArgs {
    /// Pairs of a publisher and a subscriber, for p2p.
    #[arg(long, value_name = "N", conflicts_with_all = ["publishers", "subscribers"])]
    #[arg(help_heading = "Scenario")]
    pairs: Option<u32>,
    #[command(flatten)]
    stages: StageArgs,
    #[command(flatten)]
    size: SizeArgs,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    measure: MeasureArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    reports: ReportArgs,
}

/// The quantities that the flags scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Connections,
    Publishers,
    Subscribers,
    FanOut,
    FanIn,
    Pairs,
    Shared,
}

/// Runs it.
pub(super) fn run(form: Form, args: &ShortcutArgs) -> anyhow::Result<u8> {
    let mut size = args.size.clone();
    if let Some(pairs) = args.pairs {
        size.publishers = Some(pairs);
        size.subscribers = Some(pairs);
    }
    let scenarios = scenarios(form, &args.stages, &size)?;
    session::run_all(
        scenarios,
        &args.target,
        &args.measure,
        &args.output,
        &args.reports,
    )
}

/// The scenario that the flags make.
fn scenarios(form: Form, stages: &StageArgs, size: &SizeArgs) -> Result<Vec<Scenario>, Complaint> {
    if let Some(flag) = form.misfit(size) {
        let message = format!(
            "{} has none of these clients: leave out --{flag}",
            form.name()
        );
        return Err(Complaint::usage(message));
    }
    let changes = stages.changes(size);
    let shaped = changes.shaped(form.base(), |scenario| form.shape(scenario));
    let mut scenarios = shaped.map_err(Complaint::usage)?;
    for scenario in &mut scenarios {
        match form {
            Form::Publishers => scenario.groups.retain(|group| group.publish.is_some()),
            Form::Subscribers => scenario.groups.retain(|group| group.subscribe.is_some()),
            _ => continue,
        }
        // The file of the run has the clients that it had, for a rerun.
        scenario.toml = to_toml(scenario);
    }
    Ok(scenarios)
}

impl Form {
    /// The scenario that it starts from.
    const fn base(self) -> &'static str {
        match self {
            Self::Connections => "conn-tcp-10K-100",
            Self::Publishers | Self::Subscribers | Self::Pairs => "p2p-1K",
            Self::FanOut => "fanout-1-1K",
            Self::FanIn | Self::Shared => "sharedsub-1K-5",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Connections => "conn",
            Self::Publishers => "pub",
            Self::Subscribers => "sub",
            Self::FanOut => "fanout",
            Self::FanIn => "fanin",
            Self::Pairs => "p2p",
            Self::Shared => "shared",
        }
    }

    /// A flag for clients that will be left out.
    const fn misfit(self, size: &SizeArgs) -> Option<&'static str> {
        match self {
            Self::Publishers if size.subscribers.is_some() => Some("subscribers"),
            Self::Subscribers if size.publishers.is_some() => Some("publishers"),
            _ => None,
        }
    }

    /// Changes the base as the command requires, before the flags scale it.
    fn shape(self, scenario: &mut Scenario) {
        self.name().clone_into(&mut scenario.name);
        self.name().clone_into(&mut scenario.alias);
        // The file and the summary of the base do not apply any more.
        scenario.toml.clear();
        scenario.summary.clear();
        if self == Self::FanIn {
            scenario.groups.iter_mut().for_each(receive_everything);
        }
    }
}

/// One subscriber of all messages instead of the members of a shared subscription.
fn receive_everything(group: &mut Group) {
    if let Some(subscribe) = &mut group.subscribe {
        subscribe.filters = vec!["test/{run}/#".to_owned()];
        group.clients = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shaped(form: Form, size: &SizeArgs) -> Scenario {
        scenarios(form, &StageArgs::default(), size)
            .unwrap()
            .remove(0)
    }

    #[test]
    fn each_form_has_the_clients_of_its_name() {
        for (form, publishers, subscribers) in [
            (Form::Connections, 0, 0),
            (Form::Publishers, 1_000, 0),
            (Form::Subscribers, 0, 1_000),
            (Form::FanOut, 1, 1_000),
            (Form::FanIn, 1_000, 1),
            (Form::Pairs, 1_000, 1_000),
            (Form::Shared, 1_000, 5),
        ] {
            let scenario = shaped(form, &SizeArgs::default());
            let clients = (scenario.publishers(), scenario.subscribers());
            assert_eq!(clients, (publishers, subscribers), "{form:?}");
            assert_eq!(scenario.name, form.name());
        }
    }

    #[test]
    fn every_subscriber_of_a_fan_in_receives_everything() {
        let size = SizeArgs {
            publishers: Some(10),
            subscribers: Some(2),
            ..SizeArgs::default()
        };
        let scenario = shaped(Form::FanIn, &size);
        let plan = thrum_bench::plan(scenario, "x").unwrap();
        assert!(
            plan.publishers()
                .iter()
                .all(|publisher| publisher.fan_out == 2)
        );
    }

    #[test]
    fn publishers_alone_are_scaled_alone() {
        let size = SizeArgs {
            publishers: Some(7),
            ..SizeArgs::default()
        };
        let scenario = shaped(Form::Publishers, &size);
        assert_eq!(scenario.clients(), 7);
        let again = thrum_load::scenario::load(&scenario.toml, "again").unwrap();
        assert_eq!(again.scenarios[0].clients(), 7);
    }

    #[test]
    fn clients_that_a_form_has_not_are_refused() {
        let size = SizeArgs {
            subscribers: Some(7),
            ..SizeArgs::default()
        };
        let error = scenarios(Form::Publishers, &StageArgs::default(), &size).unwrap_err();
        assert!(
            error.to_string().contains("leave out --subscribers"),
            "{error}"
        );
    }
}
