//! Explanations as text.

use thrum_figures::{bytes, count, fraction};
use thrum_management::api::{
    DropsExplanation, ExplainedLogin, ExplainedQueue, ExplainedStep, PublishExplanation,
    SubscribeExplanation,
};

use crate::command::clients::events;
use crate::command::shown::{NOTHING, name};

/// A PUBLISH and who gets it.
pub(super) fn publish(answer: &PublishExplanation) -> String {
    let mut text = verdict(answer.accepted, "accepted");
    text.push_str(&login(answer.login.as_ref()));
    text.push_str(&steps(&answer.steps));
    text.push_str(&limited(&answer.limited));
    if answer.accepted == Some(false) {
        return text;
    }
    let receivers = answer.receivers.len() + answer.more_receivers;
    text.extend([format!("\nreceivers ({receivers})\n")]);
    for one in &answer.receivers {
        let filters: Vec<_> = one.filters.iter().map(|filter| name(filter)).collect();
        text.extend([format!(
            "  {}  qos {}, by {}: {}\n",
            name(&one.client_id),
            one.qos,
            filters.join(" and "),
            name(&one.text)
        )]);
    }
    if answer.more_receivers > 0 {
        text.extend([format!("  … and {} more\n", answer.more_receivers)]);
    }
    if !answer.groups.is_empty() {
        text.extend([format!("\nshared groups ({})\n", answer.groups.len())]);
    }
    for group in &answer.groups {
        text.extend([format!(
            "  {}: {}\n",
            name(&group.filter),
            name(&group.text)
        )]);
    }
    text
}

/// A filter.
pub(super) fn subscribe(answer: &SubscribeExplanation) -> String {
    let mut text = verdict(answer.granted, "granted");
    text.push_str(&login(answer.login.as_ref()));
    text.push_str(&steps(&answer.steps));
    if let Some(qos) = answer.qos {
        text.extend([format!("  it is granted with qos {qos}\n")]);
    }
    if answer.in_part {
        text.push_str("  the rules allow only some of its topics: each message is checked\n");
    }
    if answer.replaces {
        text.push_str("  it replaces a subscription that the client has\n");
    }
    text
}

/// What a client did not get.
pub(super) fn drops(answer: &DropsExplanation) -> String {
    let dropped = answer.dropped.iter();
    let dropped = dropped.map(|one| format!("{} {}", count(one.messages), one.reason));
    let dropped: Vec<String> = dropped.collect();
    let dropped = if dropped.is_empty() {
        "nothing".to_owned()
    } else {
        dropped.join(", ")
    };
    let mut text = format!("dropped    {dropped}\n");
    text.extend([format!("queue      {}\n", queue(&answer.queue))]);
    text.push_str(&limited(&answer.limited));
    text.push_str("\nnow\n");
    for line in &answer.now {
        text.extend([format!("  {}\n", name(line))]);
    }
    if !answer.last.is_empty() {
        text.push_str("\nlast drops\n");
        text.push_str(&events(&answer.last));
    }
    text
}

fn verdict(outcome: Option<bool>, good: &str) -> String {
    match outcome {
        Some(true) => format!("it would be {good}\n"),
        Some(false) => "it would be refused\n".to_owned(),
        None => format!("whether it would be {good} depends on an answer that is not known now\n"),
    }
}

/// How the client was admitted, which is the first step.
fn login(login: Option<&ExplainedLogin>) -> String {
    login.map_or_else(String::new, |login| {
        format!("  {:<21} {}\n", "login", name(&login.text))
    })
}

fn steps(steps: &[ExplainedStep]) -> String {
    let mut text = String::new();
    for step in steps {
        let code = step.reason_code;
        let code = code
            .map(|code| format!(" ({code:#04x})"))
            .unwrap_or_default();
        text.extend([format!(
            "  {:<12} {:<8} {}{code}\n",
            step.check,
            step.outcome,
            name(&step.text)
        )]);
    }
    text
}

fn limited(reasons: &[String]) -> String {
    if reasons.is_empty() {
        return String::new();
    }
    format!("slowed     {}\n", reasons.join(", "))
}

fn queue(queue: &ExplainedQueue) -> String {
    let state = match (queue.connected, queue.congested) {
        (false, _) => "the client is away",
        (true, true) => "the client does not take its output",
        (true, false) => NOTHING,
    };
    let state = if state == NOTHING {
        String::new()
    } else {
        format!("; {state}")
    };
    format!(
        "{} of {} messages, {} of {}; {} in flight, room for {} more{state}",
        count(queue.queued.messages),
        count(queue.limit.messages),
        bytes(fraction(queue.queued.bytes)),
        bytes(fraction(queue.limit.bytes)),
        queue.inflight,
        queue.free_window
    )
}
