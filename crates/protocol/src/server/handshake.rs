//! Checks a CONNECT against the limits, and derives the parameters of the session or a refusal.

use alloc::boxed::Box;

use thrum_codec::packet::{Connect, Will as WillPacket};
use thrum_codec::topic::level_count;
use thrum_codec::{QoS, ReasonCode, Version};

use super::authentication::Method;
use super::connack::{append_refusal, connack_fits};
use super::will::Will;
use crate::{Limits, Message, MountPoint, Output, Violation};

/// A client whose CONNECT passed the checks but that has no session yet.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent options of one CONNECT"
)]
pub struct Handshake {
    pub(super) version: Version,
    pub(super) is_bridge: bool,
    pub(super) clean_start: bool,
    /// Effective keep alive in seconds; 0 turns it off.
    pub(super) keep_alive: u16,
    /// The effective keep alive, if it differs from the client's.
    pub(super) server_keep_alive: Option<u16>,
    /// Effective session expiry in seconds; with 0 the session ends with the connection, with
    /// `u32::MAX` it never expires.
    pub(super) session_expiry: u32,
    /// The effective session expiry, if it differs from the client's.
    pub(super) changed_session_expiry: Option<u32>,
    pub(super) receive_maximum: u16,
    pub(super) packet_bytes_max: u32,
    pub(super) topic_alias_maximum: u16,
    pub(super) wants_response_information: bool,
    pub(super) wants_problem_information: bool,
    /// Whether the CONNACK must contain the assigned client identifier.
    pub(super) is_client_id_assigned: bool,
    pub(super) client_id: Box<str>,
    pub(super) will: Option<Box<Will>>,
    /// State of the enhanced authentication.
    pub(super) method: Option<Method>,
    pub(super) mount: Option<MountPoint>,
    /// Whether the client may publish retained messages.
    pub(super) retain_available: bool,
}

impl Handshake {
    /// Checks a CONNECT against the limits. `assigned` is the identifier to use if the client sent
    /// none.
    ///
    /// The call does not authenticate the client: a client with an
    /// [`authentication_method`](Handshake::authentication_method) still has to take the steps of
    /// it.
    ///
    /// # Errors
    /// The refusal to encode with [`refuse_connect`](super::refuse_connect): reason code and
    /// description.
    pub fn new(connect: &Connect<'_>, assigned: &str, limits: &Limits) -> Result<Self, Violation> {
        check_client_id(connect, limits)?;
        let will = connect.will.map(|will| WillPacket {
            // 3.x has no way to announce that retained messages are unavailable.
            retain: will.retain && (limits.retain_available || connect.version == Version::V5),
            ..will
        });
        if let Some(will) = &will {
            check_will(will, limits)?;
        }
        let is_client_id_assigned = connect.client_id.is_empty();
        // [MQTT-3.1.3-6] [MQTT-3.1.3-7] [MQTT3-3.1.3-6]
        let client_id = if is_client_id_assigned {
            assigned
        } else {
            connect.client_id
        };
        let keep_alive = keep_alive(connect, limits);
        let session_expiry = session_expiry(connect, limits);
        let asked_expiry = connect.properties.session_expiry.unwrap_or(0);
        let properties = &connect.properties;
        let handshake = Self {
            version: connect.version,
            is_bridge: connect.is_bridge,
            clean_start: connect.clean_start,
            keep_alive,
            server_keep_alive: Some(keep_alive).filter(|seconds| *seconds != connect.keep_alive),
            session_expiry,
            changed_session_expiry: Some(session_expiry).filter(|seconds| *seconds != asked_expiry),
            receive_maximum: properties
                .receive_maximum
                .map_or(u16::MAX, core::num::NonZeroU16::get),
            packet_bytes_max: properties.maximum_packet_size.unwrap_or(u32::MAX),
            topic_alias_maximum: properties.topic_alias_maximum.unwrap_or(0),
            wants_response_information: properties.request_response_information.unwrap_or(false),
            wants_problem_information: properties.request_problem_information.unwrap_or(true),
            is_client_id_assigned,
            client_id: client_id.into(),
            // [MQTT-3.1.2-7] [MQTT3-3.1.2-8] [MQTT3-3.1.2-12]
            will: will.as_ref().map(|will| Box::new(Will::new(will))),
            method: properties.authentication_method.map(Method::new),
            mount: None,
            retain_available: limits.retain_available,
        };
        // [MQTT-3.1.2-24] [MQTT-3.2.0-1]: a client that cannot receive a CONNACK cannot be
        // accepted.
        if !connack_fits(&handshake, limits) {
            return Err(Violation::new(
                ReasonCode::PacketTooLarge,
                "the maximum packet size leaves no room for CONNACK",
            ));
        }
        Ok(handshake)
    }

    /// The message of the will, and its topic as the client sees it.
    pub fn will(&self) -> Option<(&Message, &str)> {
        let message = self.will.as_deref()?.view().message;
        let seen = match &self.mount {
            None => message.topic(),
            Some(mount) => mount.seen_topic(message.topic())?,
        };
        Some((message, seen))
    }

    /// The mount point of the connection.
    pub fn mount_point(&self) -> Option<&MountPoint> {
        self.mount.as_ref()
    }

    /// Client identifier.
    pub fn client_id(&self) -> &str {
        &self.client_id
    }

    /// Whether the client sent no identifier, so that the CONNACK contains an assigned one.
    pub fn is_client_id_assigned(&self) -> bool {
        self.is_client_id_assigned
    }

    /// Protocol version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Seconds that the session outlives its connection; 0 if it ends with it.
    pub fn session_expiry(&self) -> u32 {
        self.session_expiry
    }

    /// Clean start.
    pub fn clean_start(&self) -> bool {
        self.clean_start
    }

    /// Sets the mount point of this connection: the prefix is added to the topic of the will now,
    /// and removed from the topics that the client receives. The node adds it to the topics and
    /// filters that the client sends. Call it at most once.
    ///
    /// # Errors
    /// The topic of the will with the prefix is too long: encode the refusal with
    /// [`Handshake::refuse`].
    pub fn mount(&mut self, mount: MountPoint) -> Result<(), Violation> {
        if let Some(will) = &mut self.will {
            will.mount(&mount).ok_or_else(|| {
                Violation::new(
                    ReasonCode::TopicNameInvalid,
                    "topic name of the will is too long with the listener's mount point",
                )
            })?;
        }
        self.mount = Some(mount);
        Ok(())
    }

    /// Appends the CONNACK of a refusal, as [`refuse_connect`](super::refuse_connect).
    /// [MQTT-4.12.0-4]
    pub fn refuse(&self, violation: &Violation, out: &mut Output) {
        append_refusal(
            self.version,
            violation.reason,
            violation.what,
            self.packet_bytes_max,
            out,
        );
    }
}

/// Accepts any UTF-8 text up to the limit, including all letters and digits. [MQTT-3.1.3-5]
/// [MQTT3-3.1.3-5]
fn check_client_id(connect: &Connect<'_>, limits: &Limits) -> Result<(), Violation> {
    let refused = |what| Err(Violation::new(ReasonCode::ClientIdentifierNotValid, what));
    if connect.client_id.is_empty() {
        return match connect.version {
            _ if !limits.assigns_client_ids => {
                refused("a client identifier is required (limits.allow_zero_length_clientid)")
            }
            Version::V31 => refused("MQTT 3.1 requires a client identifier"),
            // [MQTT3-3.1.3-7] [MQTT3-3.1.3-8]
            Version::V311 if !connect.clean_start => {
                refused("a session without client identifier must be clean")
            }
            Version::V311 | Version::V5 => Ok(()),
        };
    }
    // [MQTT-3.1.3-8] [MQTT3-3.1.3-9]
    if connect.client_id.len() > usize::from(limits.client_id_bytes_max) {
        return refused("client identifier longer than the limit");
    }
    Ok(())
}

fn check_will(will: &WillPacket<'_>, limits: &Limits) -> Result<(), Violation> {
    // [MQTT-3.2.2-12]
    check_qos(will.qos, limits)?;
    // [MQTT-3.2.2-13]
    check_retain(will.retain, limits.retain_available)?;
    if will.payload.len() > limits.payload_bytes_max as usize {
        return Err(Violation::new(
            ReasonCode::QuotaExceeded,
            "the will's payload is larger than limits.max_payload",
        ));
    }
    check_topic(will.topic, limits)
}

pub(super) fn check_qos(qos: QoS, limits: &Limits) -> Result<(), Violation> {
    if qos > limits.maximum_qos {
        return Err(Violation::new(
            ReasonCode::QoSNotSupported,
            "QoS above the maximum QoS",
        ));
    }
    Ok(())
}

pub(super) fn check_retain(retain: bool, is_available: bool) -> Result<(), Violation> {
    if retain && !is_available {
        return Err(Violation::new(
            ReasonCode::RetainNotSupported,
            "retained messages are not available",
        ));
    }
    Ok(())
}

pub(super) fn check_topic(topic: &str, limits: &Limits) -> Result<(), Violation> {
    let refused = |what| Err(Violation::new(ReasonCode::TopicNameInvalid, what));
    if topic.len() > usize::from(limits.topic_bytes_max) {
        return refused("topic name longer than the limit");
    }
    let levels_max = usize::from(limits.topic_levels_max);
    // A topic with fewer bytes than the highest number of levels cannot exceed it.
    if topic.len() >= levels_max && level_count(topic) > levels_max {
        return refused("topic name with more levels than the limit");
    }
    Ok(())
}

/// The client's keep alive, or a shorter one of the server. 3.x cannot announce it, so the client's
/// keep alive applies there.
fn keep_alive(connect: &Connect<'_>, limits: &Limits) -> u16 {
    let asked = connect.keep_alive;
    let max = limits.keep_alive_max;
    match connect.version {
        Version::V5 if max > 0 && (asked == 0 || asked > max) => max,
        // [MQTT-3.2.2-22]
        Version::V31 | Version::V311 | Version::V5 => asked,
    }
}

fn session_expiry(connect: &Connect<'_>, limits: &Limits) -> u32 {
    let asked = match connect.version {
        Version::V5 => connect.properties.session_expiry.unwrap_or(0),
        // [MQTT3-3.1.2-6]
        Version::V31 | Version::V311 if connect.clean_start => 0,
        // [MQTT3-3.1.2-4] [MQTT3-3.1.2-5]
        Version::V31 | Version::V311 => limits.session_expiry_v3,
    };
    asked.min(limits.session_expiry_max)
}
