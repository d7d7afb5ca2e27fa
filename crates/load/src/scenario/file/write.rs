//! Writes a scenario as a file that loads to the same scenario.

use thrum_codec::{QoS, Version};
use thrum_settings::{format_size, format_span};

use super::super::{
    Arrivals, ClientSpec, Fault, FaultKind, Group, PayloadSpec, PublishSpec, Rate, Scenario, Shape,
    SubscribeSpec, Victims,
};

/// The scenario as a file, complete and without comments.
pub fn to_toml(scenario: &Scenario) -> String {
    let is_named = scenario
        .targets
        .iter()
        .any(|target| !target.name.is_empty());
    let mut out = head(scenario, is_named).lines();
    if is_named {
        let targets = scenario.targets.iter().map(|target| {
            let url = target.url.as_deref().unwrap_or_default();
            (target.name.as_str(), url)
        });
        out.push_str(&named_table("targets", targets));
    }
    for group in &scenario.groups {
        out.push_str(&group_table(group, scenario, is_named));
    }
    if !scenario.thresholds.is_empty() {
        let limits = scenario.thresholds.iter();
        let limits = limits.map(|threshold| (threshold.metric.name, threshold.text.as_str()));
        out.push_str(&named_table("thresholds", limits));
    }
    for fault in &scenario.faults {
        out.push_str(&fault_table(fault));
    }
    out
}

/// The keys at the top of the file.
fn head(scenario: &Scenario, is_named: bool) -> Fields {
    let stages = [
        format!("warmup {}", format_span(scenario.stages.warm_up)),
        format!("hold {}", format_span(scenario.stages.hold)),
        format!("drain {}", format_span(scenario.stages.drain)),
    ];
    let url = scenario.targets.first().filter(|_| !is_named);
    let url = url.and_then(|target| target.url.as_deref());
    let is_whole = scenario.scale.to_bits() == 1.0_f64.to_bits();
    Fields::default()
        .with("name", quoted(&scenario.name))
        .with_if("alias", scenario.alias != scenario.name, || {
            quoted(&scenario.alias)
        })
        .with_if("summary", !scenario.summary.is_empty(), || {
            quoted(&scenario.summary)
        })
        .with_some("target", url.map(quoted))
        .with("version", version(scenario.version))
        .with("keep_alive", quoted(&format!("{}s", scenario.keep_alive)))
        .with("connect_rate", scenario.connect_rate.to_string())
        .with_if(
            "source_addresses",
            !scenario.source_addresses.is_empty(),
            || {
                let ranges = scenario.source_addresses.iter();
                list(ranges.map(|range| quoted(&range.to_string())))
            },
        )
        .with("stages", list(stages.iter().map(|stage| quoted(stage))))
        .with_if("scale", !is_whole, || format!("{:?}", scenario.scale))
}

/// A table whose keys are names that the author chose.
fn named_table<'a>(name: &str, entries: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let lines = entries.map(|(name, text)| format!("{} = {}\n", key(name), quoted(text)));
    format!("\n[{name}]\n{}", lines.collect::<Vec<_>>().concat())
}

/// Keys and values of a table, in order.
#[derive(Default)]
struct Fields(Vec<(&'static str, String)>);

impl Fields {
    fn with(mut self, key: &'static str, value: String) -> Self {
        self.0.push((key, value));
        self
    }

    fn with_some(self, key: &'static str, value: Option<String>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    fn with_if(self, key: &'static str, is_set: bool, value: impl FnOnce() -> String) -> Self {
        if is_set {
            self.with(key, value())
        } else {
            self
        }
    }

    fn inline(&self) -> String {
        let fields = self.0.iter().map(|(key, value)| format!("{key} = {value}"));
        format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
    }

    fn lines(&self) -> String {
        let fields = self.0.iter();
        let lines: Vec<String> = fields
            .map(|(key, value)| format!("{key} = {value}\n"))
            .collect();
        lines.concat()
    }
}

fn group_table(group: &Group, scenario: &Scenario, is_named: bool) -> String {
    let target = scenario
        .targets
        .get(group.target)
        .filter(|_| is_named && group.target > 0);
    let fields = Fields::default()
        .with("clients", group.clients.to_string())
        .with_some("target", target.map(|target| quoted(&target.name)));
    let fields = client_fields(fields, &group.client)
        .with_some("publish", group.publish.as_ref().map(publish))
        .with_some("subscribe", group.subscribe.as_ref().map(subscribe));
    format!("\n[groups.{}]\n{}", group.name, fields.lines())
}

fn client_fields(fields: Fields, client: &ClientSpec) -> Fields {
    let will = client.will.as_ref().map(|will| {
        Fields::default()
            .with("topic", quoted(&will.topic))
            .with("payload", quoted(&will.payload))
            .with("qos", qos(will.qos))
            .with("retain", will.retain.to_string())
            .inline()
    });
    let reconnect = client.reconnect.map(|reconnect| {
        Fields::default()
            .with("delay", quoted(&format_span(reconnect.delay)))
            .with("delay_max", quoted(&format_span(reconnect.delay_max)))
            .inline()
    });
    let network = client.network.map(|network| {
        Fields::default()
            .with("delay", quoted(&format_span(network.delay)))
            .with("jitter", quoted(&format_span(network.jitter)))
            .with_some("bandwidth", network.bandwidth.map(byte_rate))
            .with_some(
                "cut_after",
                network.cut_after.map(|after| quoted(&format_span(after))),
            )
            .inline()
    });
    let receive_maximum = client.receive_maximum;
    let expiry = client.session_expiry;
    fields
        .with_some("version", client.version.map(version))
        .with_some(
            "keep_alive",
            client.keep_alive.map(|s| quoted(&format!("{s}s"))),
        )
        .with_some("client_id", client.id.as_deref().map(quoted))
        .with_some(
            "session_expiry",
            expiry.map(|expiry| quoted(&format_span(expiry))),
        )
        .with_some("username", client.username.as_deref().map(quoted))
        .with_some("password", client.password.as_deref().map(quoted))
        .with_some("will", will)
        .with_some("user_properties", properties(&client.user_properties))
        .with_some(
            "receive_maximum",
            receive_maximum.map(|number| number.to_string()),
        )
        .with_some("reconnect", reconnect)
        .with_some("network", network)
        .with_some("read_rate", client.read_rate.map(byte_rate))
}

fn publish(publish: &PublishSpec) -> String {
    let shape = match &publish.shape {
        Shape::Constant => None,
        Shape::Ramp { to } => Some(quoted(&format!("ramp to {}", rate(*to)))),
        Shape::Steps { rates } => {
            let rates = list(rates.iter().map(|step| quoted(&rate(*step))));
            Some(format!("{{ steps = {rates} }}"))
        }
    };
    Fields::default()
        .with("topic", quoted(&publish.topic))
        .with("rate", quoted(&rate(publish.rate)))
        .with_some("shape", shape)
        .with_if("arrivals", publish.arrivals != Arrivals::Even, || {
            quoted(publish.arrivals.text())
        })
        .with_some("window", publish.window.map(|window| window.to_string()))
        .with("qos", qos(publish.qos))
        .with_if("retain", publish.retain, || "true".to_owned())
        .with("payload", payload(&publish.payload))
        .with_some("user_properties", properties(&publish.user_properties))
        .with_some("expiry", publish.expiry.map(|seconds| seconds.to_string()))
        .with_some("response", publish.response.as_deref().map(quoted))
        .inline()
}

fn subscribe(subscribe: &SubscribeSpec) -> String {
    let fields = match subscribe.filters.as_slice() {
        [filter] => Fields::default().with("filter", quoted(filter)),
        filters => {
            let filters = list(filters.iter().map(|filter| quoted(filter)));
            Fields::default().with("filters", filters)
        }
    };
    fields
        .with("qos", qos(subscribe.qos))
        .with_if("respond", subscribe.respond, || "true".to_owned())
        .with_some(
            "strip_prefix",
            subscribe.strip_prefix.as_deref().map(quoted),
        )
        .inline()
}

fn fault_table(fault: &Fault) -> String {
    let fields = |victims: &Victims| {
        Fields::default()
            .with_some("group", victims.group.as_deref().map(quoted))
            .with("share", format!("{:?}", victims.share))
    };
    let (key, value) = match &fault.kind {
        FaultKind::Disconnect { victims, reset } => {
            let how = if *reset { "reset" } else { "close" };
            (
                "disconnect",
                fields(victims).with("how", quoted(how)).inline(),
            )
        }
        FaultKind::StopReading { victims } => ("stop_reading", fields(victims).inline()),
        FaultKind::Freeze { victims } => ("freeze", fields(victims).inline()),
        FaultKind::Hook { command } => ("hook", quoted(command)),
    };
    let fields = Fields::default()
        .with("at", quoted(&format_span(fault.at)))
        .with("lasts", quoted(&format_span(fault.lasts)))
        .with(key, value);
    format!("\n[[faults]]\n{}", fields.lines())
}

fn properties(properties: &[(String, String)]) -> Option<String> {
    if properties.is_empty() {
        return None;
    }
    let pairs = properties
        .iter()
        .map(|(name, text)| format!("{} = {}", key(name), quoted(text)));
    Some(format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", ")))
}

fn payload(payload: &PayloadSpec) -> String {
    match payload {
        PayloadSpec::Size(bytes) => quoted(&size((*bytes).into())),
        PayloadSpec::Random(bytes) => quoted(&format!("random:{}", size((*bytes).into()))),
        PayloadSpec::File(path) => quoted(&format!("file:{}", path.display())),
        PayloadSpec::Template(text) if text.starts_with('{') => {
            format!("{{ json = {} }}", quoted(text))
        }
        PayloadSpec::Template(text) => format!("{{ text = {} }}", quoted(text)),
    }
}

/// The shortest way to write a rate that is read as the same.
fn rate(rate: Rate) -> String {
    let each = rate.messages_per_second();
    let candidates = [
        format!("{each:.0}/s"),
        format!("{each:.3}")
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned()
            + "/s",
        format!("{:.0}/m", each * 60.0),
        format!("{:.0}/h", each * 3600.0),
    ];
    let exact = candidates
        .into_iter()
        .find(|text| Rate::parse(text) == Some(rate));
    exact.unwrap_or_else(|| format!("{each}/s"))
}

fn size(bytes: u64) -> String {
    format_size(bytes).unwrap_or_else(|| format!("{bytes}B"))
}

fn byte_rate(bytes: u64) -> String {
    quoted(&format!("{}/s", size(bytes)))
}

fn version(version: Version) -> String {
    quoted(version.name())
}

fn qos(qos: QoS) -> String {
    match qos {
        QoS::AtMostOnce => "0",
        QoS::AtLeastOnce => "1",
        QoS::ExactlyOnce => "2",
    }
    .to_owned()
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

/// A key, in quotes if it needs them.
fn key(name: &str) -> String {
    toml_edit::Key::new(name).to_string()
}

/// A text in the quotes of TOML.
fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}
