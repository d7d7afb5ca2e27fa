//! Records events of clients, and returns the timeline of one.

use std::time::Duration;

use super::{Alike, ClientEvent, ClientTimeline, RefusalCause, TimelineEntry};
use crate::access::Wanted;
use crate::client::DropEpisode;
use crate::core::Core;
use crate::ids::Slot;
use crate::node::metrics::Counter;
use crate::timers::Target;

/// Longest text of an event in bytes: most topics are shorter. A longer one is cut.
const TEXT_BYTES_MAX: usize = 256;

/// Timelines that are forgotten at once when their memory is limited: less than half a
/// millisecond.
const STORIES_OF_PORTION: usize = 512;
/// Time between two such portions.
const PORTION_INTERVAL: Duration = Duration::from_millis(10);

/// An event that happens now.
fn happens(core: &Core, event: ClientEvent) -> TimelineEntry {
    let order = core.node.next_timeline_event();
    TimelineEntry::new(event, core.turn.now, order)
}

/// Records an event of the client of a session. Without timelines the event is not made.
#[cold]
pub fn tell(core: &mut Core, slot: Slot, event: impl FnOnce() -> ClientEvent) {
    let bytes_max = core.settings.timeline_bytes;
    if bytes_max == 0 {
        return;
    }
    let entry = happens(core, event());
    let client_id = core.sessions[slot].session.client_id();
    let forgotten = core.timelines.record(client_id, entry, bytes_max);
    count_forgotten(core, forgotten);
}

/// Records that a CONNECT with that client identifier was refused.
#[cold]
pub fn tell_refused(core: &mut Core, client_id: &str, event: ClientEvent) {
    let bytes_max = core.settings.timeline_bytes;
    if bytes_max == 0 {
        return;
    }
    let entry = happens(core, event);
    let forgotten = core.timelines.record(client_id, entry, bytes_max);
    count_forgotten(core, forgotten);
}

/// Records that the rules deny a PUBLISH. The rule is searched for once, not for each repetition.
#[cold]
pub(crate) fn tell_publish_denied(core: &mut Core, slot: Slot, wanted: Wanted<'_>) {
    let client = &core.sessions[slot];
    let denied = cut(wanted.topic);
    let is_same = |event: &ClientEvent| match event {
        ClientEvent::PublishRefused { topic, why } => {
            **topic == *denied && matches!(why, RefusalCause::Rule(_))
        }
        _ => false,
    };
    let client_id = client.session.client_id();
    let alike = Alike {
        same: is_same,
        kind: |event: &ClientEvent| matches!(event, ClientEvent::PublishRefused { .. }),
        is_refusal: false,
    };
    if core.settings.timeline_bytes == 0 || core.timelines.count(client_id, core.turn.now, alike) {
        return;
    }
    let policy = &core.settings.access.access.policy;
    let access = client.access.as_deref();
    let rule = access.map(|access| access.denial(wanted, policy));
    let why = RefusalCause::Rule(rule.unwrap_or_default().into());
    let topic = denied.into();
    tell(core, slot, || ClientEvent::PublishRefused { topic, why });
}

/// Records drops that no further one has followed for a time.
#[cold]
pub(crate) fn tell_drops_over(core: &mut Core, slot: Slot, episode: DropEpisode) {
    let bytes_max = core.settings.timeline_bytes;
    if bytes_max == 0 {
        return;
    }
    let client_id = core.sessions[slot].session.client_id();
    let entry = TimelineEntry {
        order: core.node.next_timeline_event(),
        ..episode.into()
    };
    let forgotten = core.timelines.add(client_id, entry, bytes_max);
    count_forgotten(core, forgotten);
}

/// Records the drops of a session that ends.
pub(crate) fn tell_drops(core: &mut Core, slot: Slot) {
    let episodes = core.sessions[slot].drop_episodes();
    for episode in episodes.collect::<Vec<_>>() {
        tell_drops_over(core, slot, episode);
    }
}

/// Forgets timelines until they are within a limit that has become smaller, a portion at a time;
/// a timer continues.
pub fn trim_timelines(core: &mut Core) {
    let bytes_max = core.settings.timeline_bytes;
    let forgotten = core.timelines.fit(bytes_max, STORIES_OF_PORTION);
    count_forgotten(core, forgotten.events);
    if !core.timelines.fits(bytes_max) {
        let at = core.turn.now.plus(PORTION_INTERVAL);
        core.timers.insert(at, Target::Timelines);
    }
}

fn count_forgotten(core: &Core, forgotten: u64) {
    if forgotten > 0 {
        core.row().add(Counter::TimelineEventsForgotten, forgotten);
    }
}

/// What this worker knows of a client.
pub fn timeline_of(core: &Core, client_id: &str) -> ClientTimeline {
    let mut found = ClientTimeline::default();
    if let Some(number) = core.timelines.find(client_id) {
        let story = &core.timelines.stories[number as usize];
        found.entries.extend(story.events.iter().cloned());
        found.forgotten = story.forgotten.into();
    }
    if let Some(slot) = core.sessions.find(client_id) {
        let episodes = core.sessions[slot].drop_episodes();
        found.entries.extend(episodes.map(TimelineEntry::from));
    }
    found.entries.sort_by_key(|entry| (entry.at, entry.order));
    found
}

/// The beginning of a text that is too long for an event.
pub(crate) fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

impl From<DropEpisode> for TimelineEntry {
    fn from(episode: DropEpisode) -> Self {
        Self {
            at: episode.first,
            // Behind what happened at the same time.
            order: u64::MAX,
            last: episode.last,
            count: episode.count,
            others: 0,
            event: ClientEvent::Dropped(episode.reason),
        }
    }
}
