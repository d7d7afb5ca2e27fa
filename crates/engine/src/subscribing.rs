//! Handling of SUBSCRIBE and UNSUBSCRIBE: checks, index, answers, and the start of replays.

use thrum_codec::packet::{RetainHandling, Subscribe, SubscriptionRequest, Unsubscribe};
use thrum_codec::topic::TopicFilter;
use thrum_codec::{QoS, ReasonCode, Version, topic};
use thrum_protection::MemoryLevel;
use thrum_protocol::Violation;
use thrum_protocol::server::GroupId;

use super::client::{Client, Replay, Written};
use super::core::Core;
use super::replay::Replays;
use super::rights::{subscribed_in_part, subscription_denied};
use super::router::Router;
use super::subscriber::{Check, Terms};
use super::topics::Topics;
use super::turn::FILTER_UNITS;
use crate::access::Grant;
use crate::ids::Slot;
use crate::interest::{EventKind, Member, SessionRef};
use crate::node::metrics::Counter;
use crate::subscription_cost::subscription_bytes;
use crate::timeline::{ClientEvent, RefusalCause, cut, tell};

/// Reason string of a SUBACK with a filter that is allowed in part.
const IN_PART: &str = "only the topics that the rules allow are delivered";

/// Why the rules refuse a filter.
const NO_RULE: &str = "no rule allows any of it";

/// Memory in bytes of subscriptions that a client may have regardless of the memory level.
const SMALL_BYTES: u32 = 16 * 1024;

/// Number of queued messages that are checked in one unit of work.
const QUEUED_OF_UNIT: usize = 32;

/// The answer about one filter of a SUBSCRIBE.
#[derive(Clone, Copy, Debug)]
struct Granted {
    code: ReasonCode,
    /// The rules allow only a part of the topics that the filter matches.
    in_part: bool,
}

impl From<ReasonCode> for Granted {
    fn from(code: ReasonCode) -> Self {
        Self {
            code,
            in_part: false,
        }
    }
}

/// Why a filter is refused.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) code: ReasonCode,
    pub(super) why: RefusalCause,
    /// The counter of the limit.
    counter: Option<Counter>,
}

impl Refused {
    const fn limit(code: ReasonCode, name: &'static str, counter: Counter) -> Self {
        Self {
            code,
            why: RefusalCause::Limit(name),
            counter: Some(counter),
        }
    }

    const fn other(code: ReasonCode, what: &'static str) -> Self {
        Self {
            code,
            why: RefusalCause::Other(what),
            counter: None,
        }
    }
}

/// The subscription identifier and the rights of a requested filter.
#[derive(Clone, Copy, Debug)]
struct RequestedFilter {
    identifier: u32,
    by_rules: Grant,
}

/// The parts of the engine that change subscriptions.
#[derive(Debug)]
pub struct Subscribing<'a> {
    pub(super) core: &'a mut Core,
    pub(super) router: &'a mut Router,
    pub(super) replays: &'a mut Replays,
    /// Buffer for reason codes, kept to reuse its memory.
    pub(super) codes: &'a mut Vec<ReasonCode>,
}

impl Subscribing<'_> {
    /// Handles a SUBSCRIBE of a client, up to its SUBACK and the start of the replays.
    pub fn subscribe_from(&mut self, slot: Slot, subscribe: &Subscribe<'_>) {
        let identifier = subscribe.properties.subscription_identifier.unwrap_or(0);
        let mut codes = std::mem::take(self.codes);
        codes.clear();
        let mut in_part = false;
        // [MQTT-3.8.4-5] [MQTT-3.8.4-6] [MQTT-3.8.4-7] [MQTT3-3.8.4-4] [MQTT3-3.8.4-5]
        let filters_max = self.core.settings.subscriptions.packet_filters_max;
        let access = self.core.sessions[slot].access.as_deref_mut();
        // The list is empty if the client may do everything.
        let mut by_rules = access
            .map_or_else(Vec::new, |access| std::mem::take(access.grants()))
            .into_iter();
        for request in subscribe.requests.iter().take(filters_max) {
            self.core.turn.work += FILTER_UNITS;
            let requested = RequestedFilter {
                identifier,
                by_rules: by_rules.next().unwrap_or(Grant::Whole),
            };
            let granted = self.subscribe(slot, &request, requested);
            in_part |= granted.in_part;
            codes.push(granted.code);
        }
        let refused = subscribe.requests.iter().skip(filters_max).count();
        self.core
            .row()
            .add(Counter::LimitPacketFilters, refused as u64);
        codes.resize(codes.len() + refused, ReasonCode::QuotaExceeded);
        // [MQTT-3.8.4-1] [MQTT-3.8.4-2]
        let what = in_part.then_some(IN_PART);
        self.core.with(slot, |session, out| {
            session
                .link_mut()
                .suback(subscribe.packet_id, &codes, what, out);
        });
        self.core.row().add(Counter::AnswersSent, 1);
        *self.codes = codes;
        self.replays.replay(self.core, &self.router.topics, slot);
        self.replays
            .write_begun(self.core, &self.router.topics, slot);
    }

    fn subscribe(
        &mut self,
        slot: Slot,
        request: &SubscriptionRequest<'_>,
        requested: RequestedFilter,
    ) -> Granted {
        let RequestedFilter {
            identifier,
            by_rules,
        } = requested;
        let mount = self.core.sessions[slot].mount_point();
        let mut text = String::new();
        let filter = match &mount {
            None => request.filter,
            Some(mount) => match mount.mounted_filter(request.filter, &mut text) {
                Some(filter) => filter,
                None => return ReasonCode::TopicFilterInvalid.into(),
            },
        };
        if let Err(refused) = self.may_subscribe(slot, request.filter, filter) {
            return self.refuse(slot, filter, refused);
        }
        let mut options = request.options;
        // [MQTT-3.2.2-10]: a higher QoS is accepted and granted at ours.
        options.qos = options.qos.min(self.core.settings.session.maximum_qos);
        let is_shared = request.filter.shared().is_some();
        let policy = &self.core.settings.access.access.policy;
        let check = match by_rules.as_given(is_shared, policy) {
            Grant::Whole => Check::Never,
            Grant::Checked { or_allowed } => {
                subscribed_in_part(self.core, slot, request.filter.as_str());
                Check::each(or_allowed)
            }
            // The limit of questions about the packet is reached.
            Grant::Refused | Grant::Ask => {
                subscription_denied(self.core, slot, request.filter.as_str());
                let refused = Refused {
                    code: ReasonCode::NotAuthorized,
                    why: RefusalCause::Rule(NO_RULE.into()),
                    counter: None,
                };
                return self.refuse(slot, filter, refused);
            }
        };
        if self.core.sessions[slot].session.link().is_bridge() {
            options.no_local = !is_shared;
            options.retain_as_published = true;
        }
        let terms = Terms {
            options,
            identifier,
        };
        if is_shared {
            self.join(slot, filter, terms);
        } else {
            self.index_filter(slot, filter, terms, check);
        }
        if let Some(reporter) = self.core.reporter(EventKind::SessionSubscribed) {
            reporter.subscribed(slot, filter.as_str(), terms);
        }
        let event = || ClientEvent::Subscribed {
            filter: cut(filter.as_str()).into(),
            qos: options.qos,
            in_part: check != Check::Never,
        };
        tell(self.core, slot, event);
        Granted {
            code: match options.qos {
                QoS::AtMostOnce => ReasonCode::Success,
                QoS::AtLeastOnce => ReasonCode::GrantedQoS1,
                QoS::ExactlyOnce => ReasonCode::GrantedQoS2,
            },
            in_part: check != Check::Never,
        }
    }

    /// Records in the client's timeline why a filter is refused.
    fn refuse(&mut self, slot: Slot, filter: TopicFilter<'_>, refused: Refused) -> Granted {
        let Refused { code, why, .. } = refused;
        let event = || ClientEvent::SubscriptionRefused {
            filter: cut(filter.as_str()).into(),
            reason: code,
            why,
        };
        tell(self.core, slot, event);
        code.into()
    }

    /// Checks a filter against the limits, and counts the one that refuses it; `whole` is the
    /// filter with the mount point.
    fn may_subscribe(
        &self,
        slot: Slot,
        filter: TopicFilter<'_>,
        whole: TopicFilter<'_>,
    ) -> Result<(), Refused> {
        let topics = &self.router.topics;
        let Some(refused) = subscription_refusal(self.core, topics, slot, filter, whole) else {
            return Ok(());
        };
        if let Some(counter) = refused.counter {
            self.core.row().add(counter, 1);
        }
        if let RefusalCause::Limit(name) = &refused.why {
            let client_id = self.core.sessions[slot].session.client_id();
            tracing::debug!(client_id, "subscription refused: {name} is reached");
        }
        Err(refused)
    }

    fn index_filter(&mut self, slot: Slot, filter: TopicFilter<'_>, terms: Terms, check: Check) {
        // [MQTT-3.8.4-3] [MQTT3-3.8.4-3]: the same filter replaces the subscription.
        let is_new = self
            .router
            .topics
            .insert_filter(self.core, slot, filter, terms);
        if check != Check::Never {
            self.router.topics.set_check(slot, filter, check);
        }
        self.core
            .durable
            .write_subscription(&self.core.sessions[slot].session, filter, terms);
        // [MQTT-3.8.4-4] [MQTT-3.3.1-9] [MQTT-3.3.1-10] [MQTT-3.3.1-11] [MQTT3-3.3.1-6]
        let wanted = match terms.options.retain_handling {
            RetainHandling::Send => true,
            RetainHandling::SendIfNew => is_new,
            RetainHandling::Never => false,
        };
        let client = &mut self.core.sessions[slot];
        let replays = client.rare.as_deref_mut().map(|rare| &mut rare.replays);
        if wanted {
            // A replay that is not complete begins again.
            let replays = &mut client.rare_mut().replays;
            replays.insert(filter.as_str().into(), Replay::default());
        } else if let Some(replay) = replays.and_then(|all| all.get_mut(filter.as_str())) {
            replay.written = Written::Nothing;
        } else {
            return;
        }
        if client.session.is_durable() {
            self.replays.begun.push(filter.as_str().into());
        }
    }

    /// Makes a session a member of a shared group. Shared subscriptions receive no retained
    /// messages, as each member would receive a part of them.
    fn join(&mut self, slot: Slot, filter: TopicFilter<'_>, terms: Terms) {
        let Some(shared) = filter.shared() else {
            return;
        };
        let client = &mut self.core.sessions[slot];
        let session = SessionRef {
            worker: self.core.id,
            slot,
            id: client.session.id(),
        };
        let durable = client.session.is_durable();
        let room = self.core.rooms.of_member(slot, client);
        let joined = self.core.node.interest.join(
            shared,
            Member {
                session,
                options: terms.options,
                identifier: (terms.identifier != 0).then_some(terms.identifier),
                durable,
                room,
            },
        );
        self.core
            .durable
            .write_subscription(&self.core.sessions[slot].session, filter, terms);
        let client = &mut self.core.sessions[slot];
        if !joined.existed {
            client.rare_mut().groups.push(joined.group);
            client.add_subscription_bytes(filter);
            self.core.groups_changed(slot);
            self.core.row().add(Counter::Subscriptions, 1);
            self.core.row().add(Counter::SharedSubscriptions, 1);
        }
    }

    /// Handles an UNSUBSCRIBE of a client, up to its UNSUBACK. UNSUBACK has no reason code "quota
    /// exceeded": a filter beyond the limit of a packet is answered with "implementation specific
    /// error".
    ///
    /// # Errors
    /// A packet with too many filters of a client before MQTT 5.0, whose UNSUBACK would confirm the
    /// end of all subscriptions.
    pub fn unsubscribe_from(
        &mut self,
        slot: Slot,
        unsubscribe: &Unsubscribe<'_>,
    ) -> Result<(), Violation> {
        let filters_max = self.core.settings.subscriptions.packet_filters_max;
        let refused = unsubscribe.filters.iter().skip(filters_max).count();
        self.core
            .row()
            .add(Counter::LimitPacketFilters, refused as u64);
        if refused > 0 && self.core.sessions[slot].session.link().version() != Version::V5 {
            let what =
                "an UNSUBSCRIBE with more filters than the server takes (limits.packet_filters)";
            return Err(Violation::new(ReasonCode::QuotaExceeded, what));
        }
        let mut codes = std::mem::take(self.codes);
        codes.clear();
        // [MQTT-3.10.4-6] [MQTT3-3.10.4-6]
        let mount = self.core.sessions[slot].mount_point();
        let mut text = String::new();
        let mut left = Vec::new();
        for filter in unsubscribe.filters.iter().take(filters_max) {
            let whole = match &mount {
                None => Some(filter),
                Some(mount) => mount.mounted_filter(filter, &mut text),
            };
            // [MQTT-3.10.4-1] [MQTT3-3.10.4-1]
            let existed =
                whole.is_some_and(|filter| self.end_subscription(slot, filter, &mut left));
            codes.push(if existed {
                ReasonCode::Success
            } else {
                ReasonCode::NoSubscriptionExisted
            });
        }
        self.redispatch_left(slot, left);
        let refusal = ReasonCode::ImplementationSpecificError;
        codes.resize(codes.len() + refused, refusal);
        // [MQTT-3.10.4-4] [MQTT-3.10.4-5] [MQTT3-3.10.4-4] [MQTT3-3.10.4-5]
        self.core.with(slot, |session, out| {
            session
                .link_mut()
                .unsuback(unsubscribe.packet_id, &codes, out);
        });
        self.core.row().add(Counter::AnswersSent, 1);
        *self.codes = codes;
        Ok(())
    }

    /// Ends a subscription; false if there is none.
    pub fn unsubscribe(&mut self, slot: Slot, filter: TopicFilter<'_>) -> bool {
        let mut left = Vec::new();
        let existed = self.end_subscription(slot, filter, &mut left);
        self.redispatch_left(slot, left);
        existed
    }

    /// Sends the queued messages of groups that the session has left to other members, with one
    /// pass over its queue.
    fn redispatch_left(&mut self, slot: Slot, mut left: Vec<GroupId>) {
        if left.is_empty() {
            return;
        }
        left.sort_unstable();
        let session = &mut self.core.sessions[slot].session;
        self.core.turn.work += (session.outbound().backlog().0 / QUEUED_OF_UNIT) as u64;
        let (id, messages) = (
            session.id(),
            session.outbound_mut().take_shared(Some(&left)),
        );
        self.router.redispatch(self.core, messages, id, false);
    }

    /// Ends a subscription without sending queued messages of its group to other members; the group
    /// is added to `left`. False if there is no such subscription.
    fn end_subscription(
        &mut self,
        slot: Slot,
        filter: TopicFilter<'_>,
        left: &mut Vec<GroupId>,
    ) -> bool {
        self.core.turn.work += FILTER_UNITS;
        if let Some(shared) = filter.shared() {
            let Some(group) = self.core.node.interest.find_group(shared) else {
                return false;
            };
            let client = &mut self.core.sessions[slot];
            let Some(rare) = client.rare.as_deref_mut() else {
                return false;
            };
            let Some(at) = rare.groups.iter().position(|joined| *joined == group) else {
                return false;
            };
            rare.groups.swap_remove(at);
            client.subtract_subscription_bytes(filter);
            let id = client.session.id();
            self.leave(group, id);
            self.core.groups_changed(slot);
            self.core
                .durable
                .write_unsubscribed(&self.core.sessions[slot].session, filter);
            left.push(group);
            self.report_unsubscribed(slot, filter);
            return true;
        }
        let topics = &mut self.router.topics;
        let Some(found) = topics.find(filter.as_str()) else {
            return false;
        };
        if topics.subscriber(slot, filter.as_str()).is_none() {
            return false;
        }
        // [MQTT-3.10.4-2] [MQTT3-3.10.4-2]
        let durable = self.core.sessions[slot].session.is_durable();
        self.router.topics.unindex(self.core, slot, found, durable);
        self.core
            .durable
            .write_unsubscribed(&self.core.sessions[slot].session, filter);
        let client = &mut self.core.sessions[slot];
        if let Some(at) = client.subscriptions.iter().position(|id| *id == found) {
            client.subscriptions.swap_remove(at);
            client.subtract_subscription_bytes(filter);
        }
        if let Some(rare) = client.rare.as_deref_mut() {
            rare.replays.remove(filter.as_str());
        }
        self.report_unsubscribed(slot, filter);
        true
    }

    fn report_unsubscribed(&mut self, slot: Slot, filter: TopicFilter<'_>) {
        let event = || ClientEvent::Unsubscribed {
            filter: cut(filter.as_str()).into(),
        };
        tell(self.core, slot, event);
        if let Some(reporter) = self.core.reporter(EventKind::SessionUnsubscribed) {
            reporter.unsubscribed(slot, filter.as_str());
        }
    }

    fn leave(&mut self, group: u32, session: u64) {
        if self.core.node.interest.leave(group, session) {
            self.core.row().subtract(Counter::Subscriptions, 1);
            self.core.row().subtract(Counter::SharedSubscriptions, 1);
        }
    }

    /// Ends all subscriptions of a session that ends, and sends the queued messages of its groups
    /// to other members.
    pub fn unsubscribe_all(&mut self, slot: Slot, client: &mut Client) {
        let durable = client.session.is_durable();
        for filter in std::mem::take(&mut client.subscriptions) {
            self.core.turn.work += FILTER_UNITS;
            self.router.topics.unindex(self.core, slot, filter, durable);
        }
        let id = client.session.id();
        for group in client
            .rare
            .take()
            .map(|rare| rare.groups)
            .unwrap_or_default()
        {
            self.leave(group, id);
        }
        let messages = client.session.outbound_mut().take_shared(None);
        self.router.redispatch(self.core, messages, id, true);
    }

    /// Sets in all groups of a session whether it has a connection.
    pub fn set_groups_online(&mut self, slot: Slot, online: bool) {
        let client = &self.core.sessions[slot];
        for group in client.groups() {
            self.core
                .node
                .interest
                .set_online(*group, client.session.id(), online);
        }
    }
}

/// Why a filter is refused because of a limit; none if it is not. `whole` is the filter with the
/// mount point.
pub(super) fn subscription_refusal(
    core: &Core,
    topics: &Topics,
    slot: Slot,
    filter: TopicFilter<'_>,
    whole: TopicFilter<'_>,
) -> Option<Refused> {
    let limits = &core.settings.session;
    let text = filter.as_str();
    // The filter is the prefix of shared subscriptions alone, which matches no topic, as clients
    // may not publish to it.
    if text == "$share" {
        let what = "it is no filter: $share is the prefix of shared subscriptions";
        return Some(Refused::other(ReasonCode::TopicFilterInvalid, what));
    }
    if text.len() > usize::from(limits.topic_bytes_max)
        || topic::level_count(text) > usize::from(limits.topic_levels_max)
    {
        let limit = "limits.topic_length or limits.topic_levels";
        let code = ReasonCode::TopicFilterInvalid;
        return Some(Refused::limit(code, limit, Counter::LimitTopic));
    }
    if !limits.wildcard_available && filter.has_wildcard() {
        let what = "subscriptions with wildcards are turned off";
        let code = ReasonCode::WildcardSubscriptionsNotSupported;
        return Some(Refused::other(code, what));
    }
    if !limits.shared_available && filter.shared().is_some() {
        let what = "shared subscriptions are turned off";
        let code = ReasonCode::SharedSubscriptionsNotSupported;
        return Some(Refused::other(code, what));
    }
    let client = &core.sessions[slot];
    if let Some((limit, name)) = subscription_limit(core, client, whole)
        && !topics.is_subscribed(core, slot, whole)
    {
        return Some(Refused::limit(ReasonCode::QuotaExceeded, name, limit));
    }
    if core.durable.is_disk_full()
        && client.session.is_durable()
        && !topics.is_subscribed(core, slot, whole)
    {
        return Some(Refused {
            code: ReasonCode::QuotaExceeded,
            why: RefusalCause::Other("the broker's disk is full"),
            counter: Some(Counter::StorageRefused),
        });
    }
    None
}

/// Returns the limit that one more subscription of the client would exceed; none if it exceeds
/// none.
fn subscription_limit(
    core: &Core,
    client: &Client,
    filter: TopicFilter<'_>,
) -> Option<(Counter, &'static str)> {
    let limits = &core.settings.subscriptions;
    let bytes = subscription_bytes(filter).saturating_add(client.subscription_bytes);
    if client.subscription_count() >= core.settings.session.subscriptions_max as usize {
        Some((Counter::LimitSubscriptions, "limits.client.subscriptions"))
    } else if filter.shared().is_some() && client.groups().len() >= limits.shared_max {
        let name = "limits.client.shared_subscriptions";
        Some((Counter::LimitSharedSubscriptions, name))
    } else if bytes > limits.bytes_max {
        let name = "limits.client.subscription_bytes";
        Some((Counter::LimitSubscriptionBytes, name))
    } else if core.memory.level >= MemoryLevel::Full && bytes > SMALL_BYTES {
        Some((Counter::LimitMemorySubscriptions, "limits.memory"))
    } else {
        None
    }
}
