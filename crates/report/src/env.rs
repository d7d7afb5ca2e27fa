//! `env.json`: on what a run was made, apart from its figures.

use serde::Serialize;

use crate::result::{Machine, RunResult, Tool};

/// Name and version of the schema.
const SCHEMA: &str = "thrum-bench-environment/1";

#[derive(Serialize)]
struct Environment<'a> {
    schema: &'static str,
    started: &'a str,
    tool: &'a Tool,
    machine: &'a Machine,
    targets: &'a [String],
    brokers: Vec<BrokerEnvironment<'a>>,
    agents: Vec<AgentEnvironment<'a>>,
}

#[derive(Serialize)]
struct BrokerEnvironment<'a> {
    target: &'a str,
    version: &'a str,
    host: &'a str,
    configuration: &'a str,
}

#[derive(Serialize)]
struct AgentEnvironment<'a> {
    name: &'a str,
    machine: &'a Machine,
    clock_offset_ns: i64,
    clock_error_ns: u64,
}

/// The tool, the machines with their settings, and the brokers.
pub fn environment_json(run: &RunResult) -> String {
    let brokers = run.brokers.iter().map(|broker| BrokerEnvironment {
        target: &broker.target,
        version: &broker.version,
        host: &broker.host,
        configuration: &broker.configuration,
    });
    let agents = run.agents.iter().map(|agent| AgentEnvironment {
        name: &agent.name,
        machine: &agent.machine,
        clock_offset_ns: agent.clock_offset_ns,
        clock_error_ns: agent.clock_error_ns,
    });
    let environment = Environment {
        schema: SCHEMA,
        started: &run.started,
        tool: &run.tool,
        machine: &run.machine,
        targets: &run.scenario.targets,
        brokers: brokers.collect(),
        agents: agents.collect(),
    };
    // Text and whole numbers under text keys always make JSON.
    let mut text = serde_json::to_string_pretty(&environment).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_environment_has_machine_settings_and_tool() {
        let json: serde_json::Value =
            serde_json::from_str(&environment_json(&sample::run())).unwrap();
        assert_eq!(json["schema"], SCHEMA);
        assert_eq!(json["tool"]["version"], "0.1.0");
        assert_eq!(json["machine"]["settings"]["net.core.somaxconn"], "4096");
        assert_eq!(json["brokers"][0]["configuration"], "[mqtt]\nworkers = 1\n");
    }
}
