//! The strings and lists that a generated packet borrows from.

use alloc::string::String;
use alloc::vec::Vec;

use super::choices::Choices;
use crate::packet::{QoS, RetainHandling, SubscriptionOptions, SubscriptionRequest, Version};
use crate::reason::{Carrier, ReasonCode};
use crate::topic::TopicFilter;
use crate::wire::VARIABLE_MAX;

/// The owned parts.
pub(super) struct Material {
    texts: Vec<String>,
    topics: Vec<String>,
    blobs: Vec<Vec<u8>>,
    pairs: Vec<(String, String)>,
    filters: Vec<(String, SubscriptionOptions)>,
    identifiers: Vec<u32>,
    suback: Vec<ReasonCode>,
    unsuback: Vec<ReasonCode>,
}

impl Material {
    pub(super) fn draw(choices: &mut Choices<'_>, version: Version) -> Self {
        let pair_count = choices.below(3);
        let filter_count = 1 + choices.below(3);
        let identifier_count = choices.below(3);
        Self {
            pairs: (0..pair_count)
                .map(|_| (choices.text(), choices.text()))
                .collect(),
            filters: (0..filter_count)
                .map(|_| request(choices, version))
                .collect(),
            identifiers: (0..identifier_count)
                .map(|_| choices.u32() % VARIABLE_MAX + 1)
                .collect(),
            texts: (0..4).map(|_| choices.text()).collect(),
            topics: (0..2).map(|_| choices.topic()).collect(),
            blobs: (0..2).map(|_| choices.blob()).collect(),
            suback: match version {
                Version::V31 | Version::V311 => codes(choices, &GRANTED_OR_FAILURE),
                Version::V5 => codes(choices, &possible(Carrier::SubAck)),
            },
            unsuback: match version {
                Version::V31 | Version::V311 => Vec::new(),
                Version::V5 => codes(choices, &possible(Carrier::UnsubAck)),
            },
        }
    }
}

const GRANTED_OR_FAILURE: [ReasonCode; 4] = [
    ReasonCode::Success,
    ReasonCode::GrantedQoS1,
    ReasonCode::GrantedQoS2,
    ReasonCode::UnspecifiedError,
];

/// The reason codes that this 5.0 packet may have, success first if it is one of them.
pub(super) fn possible(carrier: Carrier) -> Vec<ReasonCode> {
    (0..=u8::MAX)
        .filter_map(ReasonCode::from_u8)
        .filter(|reason| reason.may_be_in(carrier))
        .collect()
}

fn codes(choices: &mut Choices<'_>, possible: &[ReasonCode]) -> Vec<ReasonCode> {
    let count = 1 + choices.below(4);
    (0..count).map(|_| choices.one_of(possible)).collect()
}

fn request(choices: &mut Choices<'_>, version: Version) -> (String, SubscriptionOptions) {
    let prefix = choices.share_prefix();
    let filter = String::from(prefix) + &choices.filter();
    let qos = choices.one_of(&QOS);
    let mut options = SubscriptionOptions {
        qos,
        ..SubscriptionOptions::default()
    };
    if version == Version::V5 {
        options.no_local = choices.flag() && prefix.is_empty();
        options.retain_as_published = choices.flag();
        options.retain_handling = choices.one_of(&[
            RetainHandling::Send,
            RetainHandling::SendIfNew,
            RetainHandling::Never,
        ]);
    }
    (filter, options)
}

pub(super) const QOS: [QoS; 3] = [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce];

/// The parts in the form that packets borrow.
pub(super) struct Lists<'a> {
    texts: Vec<&'a str>,
    topics: Vec<&'a str>,
    blobs: Vec<&'a [u8]>,
    pub(super) pairs: Vec<(&'a str, &'a str)>,
    pub(super) requests: Vec<SubscriptionRequest<'a>>,
    pub(super) filters: Vec<TopicFilter<'a>>,
    pub(super) identifiers: &'a [u32],
    pub(super) suback: &'a [ReasonCode],
    pub(super) unsuback: &'a [ReasonCode],
}

impl<'a> Lists<'a> {
    pub(super) fn new(material: &'a Material) -> Self {
        let requests: Vec<_> = material
            .filters
            .iter()
            .map(|(filter, options)| SubscriptionRequest {
                filter: TopicFilter::parse(filter).expect("only valid filters are drawn"),
                options: *options,
            })
            .collect();
        Self {
            texts: material.texts.iter().map(String::as_str).collect(),
            topics: material.topics.iter().map(String::as_str).collect(),
            blobs: material.blobs.iter().map(Vec::as_slice).collect(),
            pairs: material
                .pairs
                .iter()
                .map(|(name, value)| (&**name, &**value))
                .collect(),
            filters: requests.iter().map(|request| request.filter).collect(),
            identifiers: &material.identifiers,
            suback: &material.suback,
            unsuback: &material.unsuback,
            requests,
        }
    }

    pub(super) fn text(&self, choices: &mut Choices<'_>) -> &'a str {
        choices.one_of(&self.texts)
    }

    pub(super) fn topic(&self, choices: &mut Choices<'_>) -> &'a str {
        choices.one_of(&self.topics)
    }

    pub(super) fn blob(&self, choices: &mut Choices<'_>) -> &'a [u8] {
        choices.one_of(&self.blobs)
    }
}
