//! Acknowledgements to publishers of several workers agree with the messages in a short queue.

use std::time::Duration;

use proptest::prelude::*;
use thrum_codec::{QoS, ReasonCode};
use thrum_protocol::limits::QueuePolicy;

use crate::node::{Answer, Node, publish};

const WORKERS: usize = 3;

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    /// A publisher of that worker publishes.
    Publish(usize),
    ReadInputs(usize),
    WriteOutputs(usize),
    /// The receiver acknowledges a message.
    Acknowledge,
    Pass,
}

fn a_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..WORKERS).prop_map(Step::Publish),
        4 => (0..WORKERS).prop_map(Step::ReadInputs),
        4 => (0..WORKERS).prop_map(Step::WriteOutputs),
        2 => Just(Step::Acknowledge),
        1 => Just(Step::Pass),
    ]
}

fn run(policy: QueuePolicy, filter: &str, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut node = Node::planned(WORKERS, |plan| {
        plan.limits().inflight_max = 2;
        plan.limits().queue.messages_max = 3;
        plan.limits().queue.policy = policy;
        if policy == QueuePolicy::Hold {
            plan.settings.queue_hold = Duration::from_secs(2);
        }
    });
    let receiver = node.subscriber(0, "receiver", filter);
    let publishers: Vec<usize> = (0..WORKERS)
        .map(|worker| node.join(worker, &format!("p{worker}")))
        .collect();
    for publisher in &publishers {
        node.answers(*publisher);
    }
    let mut posted = vec![Vec::new(); WORKERS];
    let mut answers = vec![Vec::new(); WORKERS];
    let mut unacknowledged = Vec::new();
    let mut received = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        match *step {
            Step::Publish(worker) => {
                let payload = format!("{worker} {number}");
                node.post(publishers[worker], publish("t", &payload, QoS::AtLeastOnce));
                posted[worker].push(payload);
            }
            Step::ReadInputs(worker) => node.shell.read_inputs(worker),
            Step::WriteOutputs(worker) => node.shell.write_outputs(worker),
            Step::Acknowledge => {
                node.read(receiver);
                unacknowledged.extend(node.messages(receiver));
                if !unacknowledged.is_empty() {
                    let message = unacknowledged.remove(0);
                    node.confirm(receiver, &message);
                    received.push(message.payload);
                }
            }
            Step::Pass => node.shell.advance_time(Duration::from_millis(500)),
        }
    }
    node.settle();
    for message in unacknowledged {
        node.acknowledge(receiver, &message);
        received.push(message.payload);
    }
    received.extend(node.drain(receiver));
    for worker in 0..WORKERS {
        answers[worker].extend(node.answers(publishers[worker]));
        prop_assert_eq!(answers[worker].len(), posted[worker].len());
        let told = posted[worker].iter().zip(&answers[worker]);
        let is_taken = |answer: &Answer| *answer == Answer::Puback(ReasonCode::Success);
        let taken: Vec<&String> = told
            .filter(|(_, answer)| is_taken(answer))
            .map(|(payload, _)| payload)
            .collect();
        let from = format!("{worker} ");
        let got: Vec<&String> = received
            .iter()
            .filter(|one| one.starts_with(&from))
            .collect();
        prop_assert_eq!(got, taken, "of worker {}", worker);
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_message_is_delivered_if_and_only_if_it_was_acknowledged(
        is_hold in any::<bool>(),
        is_shared in any::<bool>(),
        steps in prop::collection::vec(a_step(), 1..80),
    ) {
        let policy = if is_hold { QueuePolicy::Hold } else { QueuePolicy::RejectNew };
        run(policy, if is_shared { "$share/g/t" } else { "t" }, &steps)?;
    }
}
