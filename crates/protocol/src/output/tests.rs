//! An output contains exactly the appended bytes, with any sharing and any order of removal.

use proptest::prelude::*;
use thrum_codec::QoS;

use super::*;
use crate::Publication;

fn message(payload: &[u8]) -> Arc<Message> {
    Arc::new(Message::new(&Publication::new(
        "not sent",
        payload,
        QoS::AtMostOnce,
    )))
}

/// An operation on an output.
#[derive(Clone, Debug)]
enum Step {
    Append(Vec<u8>),
    Share(Vec<u8>),
    Advance(usize),
    Clear,
    /// Splits off the bytes after the given number, and appends them again.
    Split(usize),
    /// Appends another output, which results from these operations.
    Join(Vec<Self>),
}

fn step() -> impl Strategy<Value = Step> + Clone {
    let bytes = || proptest::collection::vec(any::<u8>(), 1..9);
    prop_oneof![
        6 => bytes().prop_map(Step::Append),
        6 => bytes().prop_map(Step::Share),
        6 => (0_usize..30).prop_map(Step::Advance),
        1 => Just(Step::Clear),
        3 => (0_usize..30).prop_map(Step::Split),
    ]
}

fn step_or_join() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => step(),
        1 => proptest::collection::vec(step(), 0..12).prop_map(Step::Join),
    ]
}

/// An output, and the plain bytes that it must contain.
#[derive(Default)]
struct Pair {
    output: Output,
    plain: Vec<u8>,
}

impl Pair {
    fn new(steps: &[Step]) -> Self {
        let mut pair = Self::default();
        for step in steps {
            pair.step(step);
        }
        pair
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Append(bytes) => {
                self.output.own().extend_from_slice(bytes);
                self.plain.extend_from_slice(bytes);
            }
            Step::Share(payload) => {
                self.output.share(&message(payload));
                self.plain.extend_from_slice(payload);
            }
            Step::Advance(len) => {
                self.output.advance(*len);
                self.plain.drain(..(*len).min(self.plain.len()));
            }
            Step::Split(len) => {
                let behind = self.output.split_off(*len);
                let (front, back) = self.plain.split_at((*len).min(self.plain.len()));
                assert_eq!(
                    (self.output.to_vec(), behind.to_vec()),
                    (front.to_vec(), back.to_vec())
                );
                self.output.append(behind);
            }
            Step::Clear => {
                self.output.clear();
                self.plain.clear();
            }
            Step::Join(steps) => {
                let other = Self::new(steps);
                self.output.append(other.output);
                self.plain.extend(other.plain);
            }
        }
    }

    fn check(&self) {
        let Self { output, plain } = self;
        assert_eq!(output.to_vec(), *plain);
        assert_eq!(
            (output.len(), output.is_empty()),
            (plain.len(), plain.is_empty())
        );
        assert!(output.pieces().all(|piece| !piece.is_empty()));
        let has_shared = output.shared.as_ref().is_some_and(|shared| shared.len > 0);
        assert_eq!(output.as_contiguous(), (!has_shared).then_some(&plain[..]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_output_contains_the_appended_bytes(
        steps in proptest::collection::vec(step_or_join(), 1..60)
    ) {
        let mut pair = Pair::default();
        for step in &steps {
            pair.step(step);
            pair.check();
        }
    }
}

#[test]
fn two_writes_may_end_at_any_byte() {
    let append = |bytes: &[u8]| Step::Append(bytes.to_vec());
    let share = |payload: &[u8]| Step::Share(payload.to_vec());
    let steps = [
        append(b"head"),
        share(b"first"),
        share(b"second"),
        append(b"own"),
        append(b"more"),
        share(b"third"),
        append(b"tail"),
    ];
    let len = Pair::new(&steps).plain.len();
    for first in 0..=len {
        for second in 0..=len - first {
            let mut pair = Pair::new(&steps);
            pair.step(&Step::Advance(first));
            pair.check();
            // New bytes are appended after the rest.
            pair.step(&append(b"new"));
            pair.step(&share(b"fourth"));
            pair.check();
            pair.step(&Step::Advance(second));
            pair.check();
        }
    }
}

#[test]
fn a_payload_is_released_after_its_last_byte() {
    let payload = message(b"payload");
    let mut output = Output::new();
    output.own().extend_from_slice(b"head");
    output.share(&payload);
    output.own().push(0);
    assert_eq!(Arc::strong_count(&payload), 2);
    output.advance(10);
    assert_eq!(Arc::strong_count(&payload), 2);
    output.advance(1);
    assert_eq!(Arc::strong_count(&payload), 1);
    assert_eq!(output.as_contiguous(), Some(&[0][..]));
}

#[test]
fn a_payload_is_sent_without_a_copy() {
    let payload = message(b"payload");
    let mut output = Output::new();
    output.share(&payload);
    let pieces: Vec<_> = output.pieces().map(<[u8]>::as_ptr).collect();
    assert_eq!(pieces, [payload.payload().as_ptr()]);
}

#[test]
fn an_output_without_memory_reuses_that_of_the_appended_one() {
    let mut other = Output::new();
    other.own().extend_from_slice(b"held back");
    let place = other.own().as_ptr();
    let mut output = Output::new();
    output.append(other);
    assert_eq!(output.own().as_ptr(), place);
    output.append(Output::new());
    assert_eq!(output.to_vec(), b"held back");
}

#[test]
fn capacity_includes_all_memory_that_an_emptied_output_keeps() {
    let mut output = Output::new();
    assert_eq!(output.capacity(), 0);
    output.own().extend_from_slice(&[0; 100]);
    assert!((100..200).contains(&output.capacity()));
    let payload = message(b"payload");
    for _ in 0..1000 {
        output.share(&payload);
    }
    output.advance(usize::MAX);
    assert!(output.is_empty());
    assert!(output.capacity() >= 16_000);
}
