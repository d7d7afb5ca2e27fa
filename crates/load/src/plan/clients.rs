//! The CONNECT parameters of each group's clients, and the publishers among them.

use std::sync::Arc;
use std::time::Duration;

use thrum_codec::QoS;
use thrum_figures::as_index;
use thrum_figures::nanos;
use thrum_protocol::client::{ClientOptions, WillOptions};

use super::{PlanError, PlannedGroup, Publisher};
use crate::delivered;
use crate::pacing::Pace;
use crate::payload::{ReadFile, Template};
use crate::scenario::{ClientSpec, Group, PublishSpec, Scenario, fill};

/// The CONNECT parameters of a group's clients; shared by all of them unless they name the client.
#[derive(Clone, Debug)]
pub struct ClientPattern {
    id: Option<String>,
    common: Arc<ClientOptions>,
    is_personal: bool,
}

impl ClientPattern {
    pub(super) fn new(scenario: &Scenario, spec: &ClientSpec, run_tag: &str) -> Self {
        let in_run = |text: &String| text.replace("{run}", run_tag);
        let will = spec.will.as_ref().map(|will| WillOptions {
            topic: in_run(&will.topic),
            payload: in_run(&will.payload).into_bytes(),
            qos: will.qos,
            retain: will.retain,
            ..WillOptions::default()
        });
        let expiry = spec.session_expiry.as_ref().map_or(0, Duration::as_secs);
        let defaults = ClientOptions::default();
        let common = ClientOptions {
            version: spec.version.unwrap_or(scenario.version),
            // A durable session is never cleaned: identifiers are unique, so there is no older one.
            clean_start: spec.session_expiry.is_none(),
            session_expiry: u32::try_from(expiry).unwrap_or(u32::MAX),
            keep_alive: spec.keep_alive.unwrap_or(scenario.keep_alive),
            receive_maximum: spec.receive_maximum.unwrap_or(defaults.receive_maximum),
            username: spec.username.as_ref().map(in_run),
            password: spec
                .password
                .as_ref()
                .map(|password| in_run(password).into_bytes()),
            will,
            user_properties: spec.user_properties.clone(),
            ..defaults
        };
        let texts = [spec.username.as_deref(), spec.password.as_deref()];
        let will = spec
            .will
            .as_ref()
            .map(|will| [will.topic.as_str(), will.payload.as_str()]);
        let mut texts = texts
            .into_iter()
            .flatten()
            .chain(will.into_iter().flatten());
        Self {
            id: spec.id.as_ref().map(in_run),
            is_personal: texts.any(|text| text.contains("{i")),
            common: Arc::new(common),
        }
    }

    /// The identifier of a client, if the scenario has a pattern for it.
    pub fn id(&self, number: u32) -> Option<String> {
        let id = self.id.as_ref()?;
        Some(fill(id, number + 1, ""))
    }

    /// The options of a client.
    pub fn options(&self, number: u32) -> Arc<ClientOptions> {
        if !self.is_personal {
            return Arc::clone(&self.common);
        }
        let personal = |text: &str| fill(text, number + 1, "");
        let bytes = |text: &[u8]| personal(&String::from_utf8_lossy(text)).into_bytes();
        let mut options = ClientOptions::clone(&self.common);
        options.username = options.username.as_deref().map(personal);
        options.password = options.password.as_deref().map(bytes);
        if let Some(will) = &mut options.will {
            will.topic = personal(&will.topic);
            will.payload = bytes(&will.payload);
        }
        Arc::new(options)
    }
}

pub(super) fn planned_groups(
    scenario: &Scenario,
    run_tag: &str,
    read: ReadFile<'_>,
) -> Result<Vec<PlannedGroup>, PlanError> {
    let (mut clients, mut publishers, mut subscribers) = (0, 0, 0);
    let mut planned = Vec::with_capacity(scenario.groups.len());
    for (index, group) in (0..).zip(&scenario.groups) {
        check(group)?;
        let requests = group
            .publish
            .as_ref()
            .is_some_and(|publish| publish.response.is_some());
        let subscribes = requests || group.subscribe.is_some();
        let payload = group
            .publish
            .as_ref()
            .map(|publish| Template::new(&publish.payload, read));
        let payload = payload.transpose().map_err(|source| PlanError::Payload {
            group: group.name.clone(),
            source,
        })?;
        planned.push(PlannedGroup {
            first_client: clients,
            first_publisher: publishers,
            first_subscriber: subscribers,
            subscribes,
            pace: group
                .publish
                .as_ref()
                .and_then(|publish| pace(scenario, index, publish)),
            payload,
            answers: requests.then(|| delivered::answers(scenario, group.target)),
            pattern: ClientPattern::new(scenario, &group.client, run_tag),
        });
        clients += group.clients;
        publishers += if group.publish.is_some() {
            group.clients
        } else {
            0
        };
        subscribers += if subscribes { group.clients } else { 0 };
    }
    Ok(planned)
}

fn pace(scenario: &Scenario, group: u32, publish: &PublishSpec) -> Option<Pace> {
    let (warm_up, hold) = (nanos(scenario.stages.warm_up), nanos(scenario.stages.hold));
    let is_open = publish.window.is_none();
    let clients = scenario.groups.get(as_index(group))?.clients;
    is_open.then(|| {
        let pace = Pace::new(publish.rate, &publish.shape, clients, warm_up, hold);
        pace.arriving(publish.arrivals, group)
    })
}

fn check(group: &Group) -> Result<(), PlanError> {
    let Some(publish) = &group.publish else {
        return Ok(());
    };
    let group_name = || group.name.clone();
    if publish.window.is_some() && publish.qos == QoS::AtMostOnce {
        return Err(PlanError::WindowWithoutAcknowledgement {
            group: group_name(),
        });
    }
    if publish.response.is_some() && group.subscribe.is_some() {
        return Err(PlanError::RequestsAndSubscribes {
            group: group_name(),
        });
    }
    Ok(())
}

pub(super) fn planned_publishers(
    scenario: &Scenario,
    run_tag: &str,
) -> Result<Vec<Publisher>, PlanError> {
    let mut publishers = Vec::with_capacity(as_index(scenario.publishers()));
    for (index, group) in scenario.groups.iter().enumerate() {
        let Some(publish) = &group.publish else {
            continue;
        };
        for number in 0..group.clients {
            let topic = |pattern: &str| topic(group, &fill(pattern, number + 1, run_tag));
            publishers.push(Publisher {
                topic: topic(&publish.topic)?,
                response: publish.response.as_deref().map(topic).transpose()?,
                fan_out: 0,
                measured_fan_out: 0,
                group: index,
                number,
            });
        }
    }
    Ok(publishers)
}

fn topic(group: &Group, topic: &str) -> Result<Box<str>, PlanError> {
    if thrum_codec::topic::is_valid_name(topic) {
        Ok(topic.into())
    } else {
        Err(PlanError::BadTopic {
            group: group.name.clone(),
            topic: topic.to_owned(),
        })
    }
}
