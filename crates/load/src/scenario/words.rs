//! Scenarios as text, for reports and for checking one before it runs.

use thrum_codec::{QoS, Version};
use thrum_figures::{count, figure, span};

use super::{Arrivals, Group, PayloadSpec, PublishSpec, Rate, Scenario, Shape};

impl Scenario {
    /// Protocol versions of its clients.
    pub fn version_text(&self) -> String {
        let versions = self
            .groups
            .iter()
            .map(|group| group.client.version.unwrap_or(self.version));
        let mut texts: Vec<&str> = versions.map(Version::name).collect();
        texts.sort_unstable();
        texts.dedup();
        texts.join(", ")
    }

    /// Kind of the payload of the first group that publishes.
    pub fn payload_kind(&self) -> &'static str {
        let publish = self.groups.iter().find_map(|group| group.publish.as_ref());
        publish.map_or("", |publish| publish.payload.kind())
    }

    /// The pacing of messages.
    pub fn load_text(&self) -> String {
        let publishing = self
            .groups
            .iter()
            .filter_map(|group| group.publish.as_ref());
        let mut texts: Vec<String> = publishing.map(PublishSpec::load_text).collect();
        texts.dedup();
        if texts.is_empty() {
            "no messages".to_owned()
        } else {
            texts.join("; ")
        }
    }

    /// The processes by which messages of open loops arrive: `even`, `poisson`; empty if there are
    /// none.
    pub fn arrivals_text(&self) -> String {
        let publishing = self
            .groups
            .iter()
            .filter_map(|group| group.publish.as_ref());
        let open = publishing.filter(|publish| publish.window.is_none());
        let mut texts: Vec<&str> = open.map(|publish| publish.arrivals.text()).collect();
        texts.sort_unstable();
        texts.dedup();
        texts.join(", ")
    }

    /// Whether messages of some group wait for the acknowledgement of earlier ones.
    pub fn has_closed_loop(&self) -> bool {
        let mut publishing = self
            .groups
            .iter()
            .filter_map(|group| group.publish.as_ref());
        publishing.any(|publish| publish.window.is_some())
    }
}

impl PayloadSpec {
    /// `binary`, `random`, `json`, `text` or `file`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Size(_) => "binary",
            Self::Random(_) => "random",
            Self::Template(text) if text.trim_start().starts_with('{') => "json",
            Self::Template(_) => "text",
            Self::File(_) => "file",
        }
    }
}

impl Arrivals {
    /// The process with this name.
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::Even, Self::Poisson, Self::Burst];
        all.into_iter().find(|arrivals| arrivals.text() == text)
    }

    /// Its name in files and reports.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Even => "even",
            Self::Poisson => "poisson",
            Self::Burst => "burst",
        }
    }
}

impl PublishSpec {
    fn load_text(&self) -> String {
        if let Some(window) = self.window {
            return format!("closed loop, window {window}");
        }
        match &self.shape {
            Shape::Constant => "open loop, constant rate".to_owned(),
            Shape::Ramp { to } => {
                format!(
                    "open loop, from {} to {} per publisher",
                    per_second(self.rate),
                    per_second(*to)
                )
            }
            Shape::Steps { rates } => {
                let rates: Vec<String> = rates.iter().copied().map(per_second).collect();
                format!("open loop, steps of {} per publisher", rates.join(", "))
            }
        }
    }
}

impl Group {
    /// The activity of its clients, in one line, with the size of their largest message.
    pub(crate) fn text(&self, payload_bytes: u32) -> String {
        let mut parts = Vec::new();
        if let Some(publish) = &self.publish {
            parts.push(publish_text(publish, payload_bytes));
            if publish.retain {
                parts.push("retained".to_owned());
            }
            parts.extend(
                publish
                    .response
                    .as_ref()
                    .map(|response| format!("answers at {response}")),
            );
        }
        if let Some(subscribe) = &self.subscribe {
            let what = if subscribe.respond {
                "answer"
            } else {
                "subscribe"
            };
            parts.push(format!(
                "{what} {} {}",
                subscribe.filters.join(" "),
                qos_text(subscribe.qos)
            ));
        }
        if parts.is_empty() {
            parts.push("stay connected".to_owned());
        }
        let client = &self.client;
        parts.extend(
            client
                .session_expiry
                .map(|expiry| format!("durable sessions ({})", span(expiry))),
        );
        parts.extend(
            client
                .reconnect
                .map(|reconnect| format!("reconnect after {}", span(reconnect.delay))),
        );
        parts.extend(
            client
                .read_rate
                .map(|rate| format!("read {} B/s", count(rate))),
        );
        parts.extend(client.network.map(|network| {
            format!(
                "over a network with {} ± {} delay",
                span(network.delay),
                span(network.jitter)
            )
        }));
        parts.join(" · ")
    }
}

fn publish_text(publish: &PublishSpec, payload_bytes: u32) -> String {
    let rate = match (publish.window, publish.arrivals) {
        (Some(window), _) => format!("window {window}"),
        (None, Arrivals::Even) => format!("{} each", per_second(publish.rate)),
        (None, arrivals) => {
            let rate = per_second(publish.rate);
            format!("{rate} each ({} arrivals)", arrivals.text())
        }
    };
    let what = if publish.response.is_some() {
        "requests to"
    } else {
        "publish"
    };
    let (topic, qos, payload) = (&publish.topic, qos_text(publish.qos), &publish.payload);
    format!(
        "{what} {topic} {rate}, {qos}, {payload_bytes} B {}",
        payload.kind()
    )
}

pub(super) fn per_second(rate: Rate) -> String {
    format!("{}/s", figure(rate.messages_per_second()))
}

pub(super) const fn qos_text(qos: QoS) -> &'static str {
    match qos {
        QoS::AtMostOnce => "QoS 0",
        QoS::AtLeastOnce => "QoS 1",
        QoS::ExactlyOnce => "QoS 2",
    }
}
