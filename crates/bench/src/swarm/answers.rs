//! Answers to requests: a responder sends each request's payload back to the requester's topic.

use thrum_codec::packet::Publish;
use thrum_codec::properties::PublishProperties;
use thrum_codec::{QoS, Version};
use thrum_load::mark::Mark;
use thrum_protocol::client::PublishError;

use super::Swarm;
use super::outbox::slot;
use super::peer::Answer;

/// Answers that wait for the broker to take them, per responder: more are dropped and counted.
const ANSWERS_WAITING_MAX: usize = 4_096;

impl Swarm {
    /// Answers a request that a responder received.
    pub(super) fn answer(&mut self, peer: u32, request: &Publish<'_>) {
        let Some(mark) = Mark::read(request.payload) else {
            return;
        };
        let extra = self.peers[slot(peer)].extra.as_ref();
        let has_waiting = extra.is_some_and(|extra| !extra.answers.is_empty());
        let correlation = request.properties.correlation_data;
        if !has_waiting && self.send_answer(peer, mark.publisher, request.payload, correlation) {
            return;
        }
        let answers = &mut self.peers[slot(peer)].extra().answers;
        if answers.len() < ANSWERS_WAITING_MAX {
            answers.push_back(Answer {
                publisher: mark.publisher,
                payload: request.payload.to_vec(),
                correlation: correlation.map(<[u8]>::to_vec),
            });
        } else {
            self.tally
                .slice
                .note("answer dropped: too many wait for the window", 1);
        }
    }

    /// The window has opened: sends answers that wait.
    pub(super) fn send_waiting_answers(&mut self, peer: u32) {
        while let Some(extra) = self.peers[slot(peer)].extra.as_mut() {
            let Some(answer) = extra.answers.pop_front() else {
                return;
            };
            let correlation = answer.correlation.as_deref();
            if !self.send_answer(peer, answer.publisher, &answer.payload, correlation) {
                self.peers[slot(peer)].extra().answers.push_front(answer);
                return;
            }
        }
    }

    /// Sends one answer; false if the window is full.
    fn send_answer(
        &mut self,
        peer: u32,
        publisher: u32,
        payload: &[u8],
        correlation: Option<&[u8]>,
    ) -> bool {
        let planned = self.plan.publishers().get(slot(publisher));
        let Some(topic) = planned.and_then(|planned| planned.response.as_deref()) else {
            // Not a request: it has no response topic.
            return true;
        };
        let state = &mut self.peers[slot(peer)];
        let is_v5 = state.client.options().version == Version::V5;
        let publish = Publish {
            dup: false,
            qos: self.groups[slot(state.group)].answer_qos,
            retain: false,
            topic,
            packet_id: None,
            properties: PublishProperties {
                correlation_data: correlation.filter(|_| is_v5),
                ..PublishProperties::default()
            },
            payload,
        };
        match state
            .client
            .publish(&publish, self.time, &mut self.out.replies.bytes)
        {
            Ok(_) => {
                self.out.answers += 1;
                true
            }
            Err(PublishError::WindowFull) if publish.qos != QoS::AtMostOnce => false,
            Err(_) => {
                self.tally
                    .slice
                    .note("answer not sent: the broker does not allow it", 1);
                true
            }
        }
    }
}
