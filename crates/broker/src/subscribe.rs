//! A filter enters or leaves: check, index, answer, replay what is retained.

use thrum_codec::packet::{
    RetainHandling, Subscribe, SubscriptionOptions, SubscriptionRequest, Unsubscribe,
};
use thrum_codec::topic::TopicFilter;
use thrum_codec::{QoS, ReasonCode, topic};
use thrum_protection::MemoryLevel;
use thrum_protocol::Violation;
use thrum_protocol::server::GroupId;
use thrum_routing::{Destination, FilterId};

use crate::access::Grant;
use crate::ids::Slot;
use crate::interest::{Member, SessionRef};
use crate::metrics::Counter;
use crate::subscription_cost::subscription_bytes;
use crate::worker::{Client, FILTER_UNITS, Replay, SubscriptionChange, Worker, Written};

/// What a SUBACK says of a filter of which a part is allowed.
const IN_PART: &str = "only the topics that the rules allow are delivered";

/// Subscriptions of a client that are granted however short memory is.
const SMALL_BYTES: u32 = 16 * 1024;

/// Messages of a queue that are looked at in the time of a unit of work.
const QUEUED_OF_UNIT: usize = 32;

/// A session's subscription as it stands in the worker's index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subscriber {
    pub(crate) slot: Slot,
    /// Subscription identifier, 0 is none; it has 28 bits, and above them stands whether messages
    /// are checked.
    tag: u32,
    pub(crate) options: SubscriptionOptions,
}

/// Whether each message of a subscription is checked against the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// All of it is allowed.
    Never,
    /// What no rule decides is denied.
    OrDenied,
    /// What no rule decides is allowed.
    OrAllowed,
}

impl Check {
    pub(crate) const fn each(or_allowed: bool) -> Self {
        if or_allowed {
            Self::OrAllowed
        } else {
            Self::OrDenied
        }
    }
}

impl Subscriber {
    const CHECKED: u32 = 1 << 31;
    const OR_ALLOWED: u32 = 1 << 30;
    const IDENTIFIER: u32 = (1 << 28) - 1;

    const fn new(slot: Slot, identifier: u32, options: SubscriptionOptions) -> Self {
        Self {
            slot,
            tag: identifier & Self::IDENTIFIER,
            options,
        }
    }

    /// Subscription identifier; 0 is none.
    #[inline]
    pub(crate) const fn identifier(&self) -> u32 {
        self.tag & Self::IDENTIFIER
    }

    /// Whether each message is checked.
    #[inline]
    pub(crate) const fn is_checked(&self) -> bool {
        self.tag & Self::CHECKED != 0
    }

    /// What no rule decides is allowed.
    pub(crate) const fn or_allowed(&self) -> bool {
        self.tag & Self::OR_ALLOWED != 0
    }

    const fn with(self, check: Check) -> Self {
        let bits = match check {
            Check::Never => 0,
            Check::OrDenied => Self::CHECKED,
            Check::OrAllowed => Self::CHECKED | Self::OR_ALLOWED,
        };
        Self {
            tag: self.tag & Self::IDENTIFIER | bits,
            ..self
        }
    }
}

/// What a client is told of one of its filters.
#[derive(Clone, Copy, Debug)]
struct Granted {
    code: ReasonCode,
    /// Of what it matches, only what the rules allow is delivered.
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

/// A subscription that a session has.
#[derive(Debug)]
pub(crate) struct Standing {
    /// With `$share/GROUP/` and the mount point.
    pub(crate) filter: Box<str>,
    pub(crate) qos: QoS,
}

impl Client {
    /// One more subscription.
    pub(crate) fn subscription_came(&mut self, filter: TopicFilter<'_>) {
        let bytes = subscription_bytes(filter);
        self.subscription_bytes = self.subscription_bytes.saturating_add(bytes);
    }

    /// One less.
    fn subscription_went(&mut self, filter: TopicFilter<'_>) {
        let bytes = subscription_bytes(filter);
        self.subscription_bytes = self.subscription_bytes.saturating_sub(bytes);
    }
}

impl Destination for Subscriber {
    type Key = Slot;

    fn key(&self) -> Slot {
        self.slot
    }
}

impl Worker {
    /// A SUBSCRIBE of a client, up to its SUBACK and the start of the replays.
    pub(crate) fn subscribe_from(&mut self, slot: Slot, subscribe: &Subscribe<'_>) {
        let identifier = subscribe.properties.subscription_identifier.unwrap_or(0);
        let mut codes = std::mem::take(&mut self.code_scratch);
        codes.clear();
        let mut in_part = false;
        // [MQTT-3.8.4-5] [MQTT-3.8.4-6] [MQTT-3.8.4-7] [MQTT3-3.8.4-4] [MQTT3-3.8.4-5]
        let filters_max = self.local.settings.packet_filters_max;
        let access = self.local.clients[slot].access.as_deref_mut();
        // None if everything is allowed.
        let mut by_rules = access
            .map_or_else(Vec::new, |access| std::mem::take(access.grants()))
            .into_iter();
        for request in subscribe.requests.iter().take(filters_max) {
            self.local.work += FILTER_UNITS;
            let by_rules = by_rules.next().unwrap_or(Grant::Whole);
            let granted = self.subscribe(slot, &request, (identifier, by_rules));
            in_part |= granted.in_part;
            codes.push(granted.code);
        }
        let refused = subscribe.requests.iter().skip(filters_max).count();
        self.local
            .row()
            .add(Counter::LimitPacketFilters, refused as u64);
        codes.resize(codes.len() + refused, ReasonCode::QuotaExceeded);
        // [MQTT-3.8.4-1] [MQTT-3.8.4-2]
        let (client, out) = self.local.client_and_output(slot);
        let what = in_part.then_some(IN_PART);
        client
            .session
            .suback(subscribe.packet_id, &codes, what, out);
        self.local.row().add(Counter::AnswersSent, 1);
        self.code_scratch = codes;
        self.replay(slot);
        self.write_begun(slot);
    }

    fn subscribe(
        &mut self,
        slot: Slot,
        request: &SubscriptionRequest<'_>,
        (identifier, by_rules): (u32, Grant),
    ) -> Granted {
        let mount = self.local.clients[slot].session.mount_point().cloned();
        let mut text = String::new();
        let filter = match &mount {
            None => request.filter,
            Some(mount) => match mount.mounted_filter(request.filter, &mut text) {
                Some(filter) => filter,
                None => return ReasonCode::TopicFilterInvalid.into(),
            },
        };
        if let Err(refusal) = self.may_subscribe(slot, request.filter, filter) {
            return refusal.into();
        }
        let mut options = request.options;
        // [MQTT-3.2.2-10]: a higher QoS is accepted and granted at ours.
        options.qos = options.qos.min(self.local.settings.session.maximum_qos);
        let is_shared = request.filter.shared().is_some();
        let check = match self.grant_as(by_rules, is_shared) {
            Grant::Whole => Check::Never,
            Grant::Checked { or_allowed } => {
                self.subscribed_in_part(slot, request.filter.as_str());
                Check::each(or_allowed)
            }
            // Nobody can be asked any more.
            Grant::Refused | Grant::Ask => {
                self.subscription_denied(slot, request.filter.as_str());
                return ReasonCode::NotAuthorized.into();
            }
        };
        if self.local.clients[slot].session.is_bridge() {
            options.no_local = !is_shared;
            options.retain_as_published = true;
        }
        if is_shared {
            self.join(slot, filter, options, identifier);
        } else {
            self.index_filter(slot, filter, (options, check), identifier);
        }
        Granted {
            code: match options.qos {
                QoS::AtMostOnce => ReasonCode::Success,
                QoS::AtLeastOnce => ReasonCode::GrantedQoS1,
                QoS::ExactlyOnce => ReasonCode::GrantedQoS2,
            },
            in_part: check != Check::Never,
        }
    }

    /// Whether a filter keeps to the limits; `whole` is it with the mount point.
    fn may_subscribe(
        &self,
        slot: Slot,
        filter: TopicFilter<'_>,
        whole: TopicFilter<'_>,
    ) -> Result<(), ReasonCode> {
        let limits = &self.local.settings.session;
        let text = filter.as_str();
        // The prefix of shared subscriptions alone: no topic can match it, as clients may not
        // publish to it.
        if text == "$share" {
            return Err(ReasonCode::TopicFilterInvalid);
        }
        if text.len() > usize::from(limits.topic_bytes_max)
            || topic::level_count(text) > usize::from(limits.topic_levels_max)
        {
            self.local.row().add(Counter::LimitTopic, 1);
            return Err(ReasonCode::TopicFilterInvalid);
        }
        if !limits.wildcard_available && filter.has_wildcard() {
            return Err(ReasonCode::WildcardSubscriptionsNotSupported);
        }
        if !limits.shared_available && filter.shared().is_some() {
            return Err(ReasonCode::SharedSubscriptionsNotSupported);
        }
        let client = &self.local.clients[slot];
        if let Some((limit, name)) = self.subscription_limit(client, whole)
            && !self.is_subscribed(slot, whole)
        {
            self.local.row().add(limit, 1);
            let client_id = client.session.client_id();
            tracing::debug!(client_id, "subscription refused: {name} is reached");
            return Err(ReasonCode::QuotaExceeded);
        }
        if self.is_disk_full() && client.session.is_durable() && !self.is_subscribed(slot, whole) {
            self.local.row().add(Counter::StorageRefused, 1);
            return Err(ReasonCode::QuotaExceeded);
        }
        Ok(())
    }

    /// The limit that one more subscription of the client would exceed.
    fn subscription_limit(
        &self,
        client: &Client,
        filter: TopicFilter<'_>,
    ) -> Option<(Counter, &'static str)> {
        let limits = &self.local.settings.subscriptions;
        let bytes = subscription_bytes(filter).saturating_add(client.subscription_bytes);
        if client.subscription_count() >= self.local.settings.session.subscriptions_max as usize {
            Some((Counter::LimitSubscriptions, "limits.client.subscriptions"))
        } else if filter.shared().is_some() && client.groups().len() >= limits.shared_max {
            let name = "limits.client.shared_subscriptions";
            Some((Counter::LimitSharedSubscriptions, name))
        } else if bytes > limits.bytes_max {
            let name = "limits.client.subscription_bytes";
            Some((Counter::LimitSubscriptionBytes, name))
        } else if self.local.memory.level >= MemoryLevel::Full && bytes > SMALL_BYTES {
            Some((Counter::LimitMemorySubscriptions, "limits.memory"))
        } else {
            None
        }
    }

    fn is_subscribed(&self, slot: Slot, filter: TopicFilter<'_>) -> bool {
        if let Some(shared) = filter.shared() {
            let groups = self.local.clients[slot].groups();
            let group = self.node.interest.find_group(shared);
            return group.is_some_and(|group| groups.contains(&group));
        }
        let found = self.index.find(filter.as_str());
        found.is_some_and(|filter| self.index.destination(filter, slot).is_some())
    }

    fn index_filter(
        &mut self,
        slot: Slot,
        filter: TopicFilter<'_>,
        (options, check): (SubscriptionOptions, Check),
        identifier: u32,
    ) {
        // [MQTT-3.8.4-3] [MQTT3-3.8.4-3]: the same filter replaces the subscription.
        let is_new = self.insert_filter(slot, filter, options, identifier);
        if check != Check::Never {
            self.set_check(slot, filter, check);
        }
        self.write_subscription(slot, filter, options, identifier);
        // [MQTT-3.8.4-4] [MQTT-3.3.1-9] [MQTT-3.3.1-10] [MQTT-3.3.1-11] [MQTT3-3.3.1-6]
        let wanted = match options.retain_handling {
            RetainHandling::Send => true,
            RetainHandling::SendIfNew => is_new,
            RetainHandling::Never => false,
        };
        let client = &mut self.local.clients[slot];
        let replays = client.rare.as_deref_mut().map(|rare| &mut rare.replays);
        if wanted {
            // One that is not at its end begins anew.
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

    /// Enters a subscription in the index; true if the session did not have it.
    pub(crate) fn insert_filter(
        &mut self,
        slot: Slot,
        filter: TopicFilter<'_>,
        options: SubscriptionOptions,
        identifier: u32,
    ) -> bool {
        let subscriber = Subscriber::new(slot, identifier, options);
        self.announce_subscription(slot, filter.as_str(), options.qos);
        let inserted = self.index.insert(filter.as_str(), subscriber);
        if inserted.first {
            self.routes.changes.note(filter.as_str());
            self.node
                .interest
                .add_worker(filter.as_str(), self.local.id);
        }
        let change = SubscriptionChange {
            before: inserted.replaced.map(|replaced| replaced.options.qos),
            now: Some(options.qos),
        };
        self.subscription_changed(slot, inserted.filter, filter.as_str(), change);
        let is_new = inserted.replaced.is_none();
        if is_new {
            let client = &mut self.local.clients[slot];
            if client.subscriptions.is_empty() {
                // Most clients have one subscription: the first step of growth would be four.
                client.subscriptions.reserve_exact(1);
            }
            client.subscriptions.push(inserted.filter);
            client.subscription_came(filter);
            if client.session.is_durable() {
                self.durable_came(inserted.filter, filter.as_str());
            }
            self.local.row().add(Counter::Subscriptions, 1);
        }
        is_new
    }

    /// Each message of a subscription is checked from now on, or none is.
    pub(crate) fn set_check(&mut self, slot: Slot, filter: TopicFilter<'_>, check: Check) {
        let found = self.index.find(filter.as_str());
        let subscriber = found.and_then(|id| self.index.destination(id, slot).copied());
        if let Some(subscriber) = subscriber {
            self.index.insert(filter.as_str(), subscriber.with(check));
        }
    }

    /// Whether each message of a subscription is checked.
    pub(crate) fn check_of(&self, slot: Slot, filter: TopicFilter<'_>) -> Check {
        let found = self.index.find(filter.as_str());
        let subscriber = found.and_then(|id| self.index.destination(id, slot));
        match subscriber.filter(|subscriber| subscriber.is_checked()) {
            None => Check::Never,
            Some(subscriber) => Check::each(subscriber.or_allowed()),
        }
    }

    /// What the session has subscribed to.
    pub(crate) fn standing_subscriptions(&self, slot: Slot) -> Vec<Standing> {
        let client = &self.local.clients[slot];
        let plain = client.subscriptions.iter().filter_map(|id| {
            let mut text = String::new();
            self.index.filter_text(*id, &mut text);
            let subscriber = self.index.destination(*id, slot)?;
            Some(Standing {
                filter: text.into(),
                qos: subscriber.options.qos,
            })
        });
        let id = client.session.id();
        let shared = client.groups().iter().filter_map(|group| {
            let members = self.node.interest.members(*group)?;
            let (member, _) = members.members().find(|(one, _)| one.session.id == id)?;
            Some(Standing {
                filter: self.node.interest.group_text(*group)?.into(),
                qos: member.options.qos,
            })
        });
        plain.chain(shared).collect()
    }

    /// Shared subscriptions get no retained messages, as their members would each get a part.
    fn join(
        &mut self,
        slot: Slot,
        filter: TopicFilter<'_>,
        options: SubscriptionOptions,
        identifier: u32,
    ) {
        let Some(shared) = filter.shared() else {
            return;
        };
        let client = &mut self.local.clients[slot];
        let session = SessionRef {
            worker: self.local.id,
            slot,
            id: client.session.id(),
        };
        let durable = client.session.is_durable();
        let identifier = (identifier != 0).then_some(identifier);
        let joined = self.node.interest.join(
            shared,
            Member {
                session,
                options,
                identifier,
                durable,
                room: self.local.room_of_member(slot),
            },
        );
        self.write_subscription(slot, filter, options, identifier.unwrap_or(0));
        let client = &mut self.local.clients[slot];
        if !joined.existed {
            client.rare_mut().groups.push(joined.group);
            client.subscription_came(filter);
            self.local.groups_changed(slot);
            self.local.row().add(Counter::Subscriptions, 1);
            self.local.row().add(Counter::SharedSubscriptions, 1);
        }
    }

    /// An UNSUBSCRIBE of a client, up to its UNSUBACK. UNSUBACK knows no exceeded quota: a filter
    /// beyond the limit of a packet is one that the server is not willing to accept.
    ///
    /// # Errors
    /// Before MQTT 5.0 an UNSUBACK says that all subscriptions have ended, and some have not.
    pub(crate) fn unsubscribe_from(
        &mut self,
        slot: Slot,
        unsubscribe: &Unsubscribe<'_>,
    ) -> Result<(), Violation> {
        let filters_max = self.local.settings.packet_filters_max;
        let refused = unsubscribe.filters.iter().skip(filters_max).count();
        self.local
            .row()
            .add(Counter::LimitPacketFilters, refused as u64);
        if refused > 0 && self.is_v3(slot) {
            let what =
                "an UNSUBSCRIBE with more filters than the server takes (limits.packet_filters)";
            return Err(Violation::new(ReasonCode::QuotaExceeded, what));
        }
        let mut codes = std::mem::take(&mut self.code_scratch);
        codes.clear();
        // [MQTT-3.10.4-6] [MQTT3-3.10.4-6]
        let mount = self.local.clients[slot].session.mount_point().cloned();
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
        let (client, out) = self.local.client_and_output(slot);
        client.session.unsuback(unsubscribe.packet_id, &codes, out);
        self.local.row().add(Counter::AnswersSent, 1);
        self.code_scratch = codes;
        Ok(())
    }

    /// A subscription ends; false if there is none.
    pub(crate) fn unsubscribe(&mut self, slot: Slot, filter: TopicFilter<'_>) -> bool {
        let mut left = Vec::new();
        let existed = self.end_subscription(slot, filter, &mut left);
        self.redispatch_left(slot, left);
        existed
    }

    /// Other members get what waits for groups that the session has left, one look at its queue for
    /// all of them.
    fn redispatch_left(&mut self, slot: Slot, mut left: Vec<GroupId>) {
        if left.is_empty() {
            return;
        }
        left.sort_unstable();
        let session = &mut self.local.clients[slot].session;
        self.local.work += (session.backlog().0 / QUEUED_OF_UNIT) as u64;
        let (id, messages) = (session.id(), session.take_shared(Some(&left)));
        self.redispatch(messages, id, false);
    }

    /// The same but for what waits for groups, which are added to those that the session has
    /// `left`.
    fn end_subscription(
        &mut self,
        slot: Slot,
        filter: TopicFilter<'_>,
        left: &mut Vec<GroupId>,
    ) -> bool {
        self.local.work += FILTER_UNITS;
        if let Some(shared) = filter.shared() {
            let Some(group) = self.node.interest.find_group(shared) else {
                return false;
            };
            let client = &mut self.local.clients[slot];
            let Some(rare) = client.rare.as_deref_mut() else {
                return false;
            };
            let Some(at) = rare.groups.iter().position(|joined| *joined == group) else {
                return false;
            };
            rare.groups.swap_remove(at);
            client.subscription_went(filter);
            let id = client.session.id();
            self.leave(group, id);
            self.local.groups_changed(slot);
            self.write_unsubscribed(slot, filter);
            left.push(group);
            return true;
        }
        let Some(found) = self.index.find(filter.as_str()) else {
            return false;
        };
        if self.index.destination(found, slot).is_none() {
            return false;
        }
        // [MQTT-3.10.4-2] [MQTT3-3.10.4-2]
        let durable = self.local.clients[slot].session.is_durable();
        self.unindex(slot, found, durable);
        self.write_unsubscribed(slot, filter);
        let client = &mut self.local.clients[slot];
        if let Some(at) = client.subscriptions.iter().position(|id| *id == found) {
            client.subscriptions.swap_remove(at);
            client.subscription_went(filter);
        }
        if let Some(rare) = client.rare.as_deref_mut() {
            rare.replays.remove(filter.as_str());
        }
        true
    }

    fn leave(&mut self, group: u32, session: u64) {
        if self.node.interest.leave(group, session) {
            self.local.row().subtract(Counter::Subscriptions, 1);
            self.local.row().subtract(Counter::SharedSubscriptions, 1);
        }
    }

    fn unindex(&mut self, slot: Slot, filter: FilterId, durable: bool) {
        let mut text = std::mem::take(&mut self.text_scratch);
        text.clear();
        self.index.filter_text(filter, &mut text);
        if let Some(removed) = self.index.remove_by_id(filter, slot) {
            let change = SubscriptionChange {
                before: Some(removed.destination.options.qos),
                now: None,
            };
            self.subscription_changed(slot, filter, &text, change);
            self.local.row().subtract(Counter::Subscriptions, 1);
            if durable {
                self.durable_went(filter, &text);
            }
            if removed.last {
                self.routes.changes.note(&text);
                self.filter_went(filter, &text);
                self.node.interest.remove_worker(&text, self.local.id);
            }
        }
        self.text_scratch = text;
    }

    /// Every subscription of a session that ends; what its groups are owed goes to other members.
    pub(crate) fn unsubscribe_all(&mut self, slot: Slot, client: &mut Client) {
        let durable = client.session.is_durable();
        for filter in std::mem::take(&mut client.subscriptions) {
            self.local.work += FILTER_UNITS;
            self.unindex(slot, filter, durable);
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
        let messages = client.session.take_shared(None);
        self.redispatch(messages, id, true);
    }

    /// The session's groups learn that its connection came or went.
    pub(crate) fn set_groups_online(&mut self, slot: Slot, online: bool) {
        let client = &self.local.clients[slot];
        for group in client.groups() {
            self.node
                .interest
                .set_online(*group, client.session.id(), online);
        }
    }
}
