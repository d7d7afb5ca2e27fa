//! The steps of a packet in words.

use thrum_broker::{
    DecidedBy, DropReason, Foreseen, GroupAnswer, QueueState, Step, StepCheck, StepOutcome,
};
use thrum_figures::{bytes, fraction};

use super::super::timeline::dropped;

/// The name of a check.
pub(super) const fn name(check: &StepCheck) -> &'static str {
    match check {
        StepCheck::Access(_) => "access",
        StepCheck::Name => "name",
        StepCheck::Limit { .. } | StepCheck::Limits(_) => "limit",
        StepCheck::Mount { .. } => "mount_point",
        StepCheck::Reserved => "reserved",
        StepCheck::Disk => "disk",
        StepCheck::Sinks => "sinks",
    }
}

/// A step in words.
pub(super) fn step(step: &Step) -> String {
    let passes = step.outcome == StepOutcome::Passes;
    let depends = step.outcome == StepOutcome::Depends;
    match &step.check {
        StepCheck::Access(by) => access(by, step.outcome),
        StepCheck::Name if passes => "the name is valid".to_owned(),
        StepCheck::Name => "the name is not valid".to_owned(),
        StepCheck::Limit { key, has, most } => {
            let (most, has) = (amount(key, *most), amount(key, *has));
            let joined = if passes { "and" } else { "but" };
            format!("{key} is {most}, {joined} this has {has}")
        }
        StepCheck::Limits(None) if passes => "no limit of subscriptions is reached".to_owned(),
        StepCheck::Limits(None) => "it is not available, or the disk is full".to_owned(),
        StepCheck::Limits(Some(key)) => format!("the limit {key} is reached"),
        StepCheck::Mount { name } if passes => format!("with the mount point it is {name}"),
        StepCheck::Mount { name } => format!("{name} does not fit behind the mount point"),
        StepCheck::Reserved if passes => "the topic is not one of the broker".to_owned(),
        StepCheck::Reserved => "the topic is reserved for the broker".to_owned(),
        StepCheck::Disk if passes => "the disk has room".to_owned(),
        StepCheck::Disk if depends => {
            "the disk is full: it is refused if a durable session is to get it".to_owned()
        }
        StepCheck::Disk => "the disk is full".to_owned(),
        StepCheck::Sinks if passes => "no sink refuses it".to_owned(),
        StepCheck::Sinks => "a sink is full and refuses it".to_owned(),
    }
}

/// A number with the unit of its key.
fn amount(key: &str, number: u64) -> String {
    match key {
        "limits.max_payload" => bytes(fraction(number)),
        _ => number.to_string(),
    }
}

fn access(by: &DecidedBy, outcome: StepOutcome) -> String {
    let verb = match outcome {
        StepOutcome::Passes => "allowed",
        StepOutcome::Refuses(_) => "denied",
        StepOutcome::Depends => "not decided",
    };
    match by {
        DecidedBy::Nothing => "the client may do everything".to_owned(),
        DecidedBy::Rule(rule) => format!("{verb}: {rule}"),
        DecidedBy::Rules => format!("{verb} by the rules"),
        DecidedBy::Default => format!("{verb} by acl.default: no rule matches"),
        DecidedBy::Backend if outcome == StepOutcome::Depends => {
            "no rule decides: a backend has to be asked".to_owned()
        }
        DecidedBy::Backend => format!("{verb} by an earlier answer of a backend"),
    }
}

/// What a session would do with a message, in words.
pub(super) fn foreseen(foreseen: Foreseen, queue: QueueState) -> String {
    let QueueState {
        messages,
        messages_max,
        inflight,
        ..
    } = queue;
    match foreseen {
        Foreseen::Sent => "sent at once".to_owned(),
        Foreseen::Queued if !queue.is_connected => {
            format!("queued until the client returns: {messages} of {messages_max} messages wait")
        }
        Foreseen::Queued => format!(
            "queued: {inflight} messages are not acknowledged, {messages} of {messages_max} wait"
        ),
        Foreseen::QueuedForOlder => format!(
            "queued, and the oldest message is dropped for it: {messages} of {messages_max} wait"
        ),
        Foreseen::Held => {
            format!("its publisher waits for room: {messages} of {messages_max} messages wait")
        }
        Foreseen::Dropped(DropReason::QueueFull) => {
            format!(
                "dropped: {}",
                full(messages, messages_max, queue.is_connected)
            )
        }
        Foreseen::Dropped(reason) => format!("dropped: {}", dropped(reason)),
    }
}

/// That a queue is full, and whether it is so because its client is away.
fn full(messages: usize, messages_max: u32, is_connected: bool) -> String {
    let away = if is_connected {
        ""
    } else {
        "; the client is away"
    };
    let reason = dropped(DropReason::QueueFull);
    format!("{reason}, {messages} of {messages_max} messages wait{away}")
}

/// The choice of a member in words.
pub(super) fn group(group: &GroupAnswer) -> String {
    let GroupAnswer {
        strategy,
        members,
        online,
        ..
    } = group;
    let of = format!("{strategy} among {online} of {members} members that are connected");
    match (&group.next, group.has_room) {
        (None, _) => format!("one member, by {of}"),
        (Some(next), true) => format!("{next}, by {of}"),
        (Some(next), false) => {
            format!("by {of} it would be {next}, whose queue has no room: another member gets it")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_for_a_full_queue_is_said_to_be_dropped_and_whether_its_client_is_away() {
        let words = "the queue is full (limits.client.queue), 1000 of 1000 messages wait";
        assert_eq!(full(1000, 1000, true), words);
        let away = format!("{words}; the client is away");
        assert_eq!(full(1000, 1000, false), away);
    }

    #[test]
    fn a_size_has_its_unit_and_a_number_none() {
        let limit = |key| Step {
            check: StepCheck::Limit {
                key,
                has: 5,
                most: 2048,
            },
            outcome: StepOutcome::Passes,
        };
        assert_eq!(
            step(&limit("limits.max_payload")),
            "limits.max_payload is 2 KiB, and this has 5 B"
        );
        assert_eq!(step(&limit("limits.x")), "limits.x is 2048, and this has 5");
    }
}
