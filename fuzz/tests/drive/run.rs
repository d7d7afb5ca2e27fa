//! The loop: its duration, its seed, and the report of a failure.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use thrum_fuzz::Sight;

use super::mutate::mutate;
use super::random::Random;

/// Highest number of inputs that are kept for their new behaviour.
const KEPT_MAX: usize = 4096;

/// Number of inputs between two checks of the clock.
const BATCH: usize = 64;

/// Runs the target on inputs of `make_up` and their mutations until the time has passed.
///
/// # Panics
/// If the target panics: the message contains the seed and the input in hexadecimal.
#[expect(
    clippy::print_stdout,
    reason = "the seed is needed to run the same inputs again"
)]
pub(crate) fn drive(name: &str, target: fn(&[u8]) -> Sight, make_up: fn(&mut Random) -> Vec<u8>) {
    if let Ok(input) = std::env::var("THRUM_FUZZ_INPUT") {
        target(&bytes_of(&input));
        return;
    }
    let seed = number("THRUM_FUZZ_SEED").unwrap_or_else(|| RandomState::new().hash_one(name));
    let time = Duration::from_secs(number("THRUM_FUZZ_SECONDS").unwrap_or(5));
    println!("{name}: THRUM_FUZZ_SEED={seed}");
    let mut run = Run {
        name,
        target,
        make_up,
        seed,
        random: Random::new(seed),
        seen: HashSet::new(),
        kept: Vec::new(),
        count: 0,
    };
    let end = now() + time;
    while now() < end {
        for _ in 0..BATCH {
            run.step();
        }
    }
    println!(
        "{name}: {} inputs, {} of them new",
        run.count,
        run.seen.len()
    );
    assert!(
        run.seen.len() > 1,
        "{name}: all inputs had the same behaviour, so nothing was tested"
    );
}

struct Run<'a> {
    name: &'a str,
    target: fn(&[u8]) -> Sight,
    make_up: fn(&mut Random) -> Vec<u8>,
    seed: u64,
    random: Random,
    seen: HashSet<Sight>,
    kept: Vec<Vec<u8>>,
    count: u64,
}

impl Run<'_> {
    fn step(&mut self) {
        let input = self.next_input();
        self.count += 1;
        let Ok(sight) = catch_unwind(AssertUnwindSafe(|| (self.target)(&input))) else {
            panic!(
                "{}: THRUM_FUZZ_SEED={} THRUM_FUZZ_INPUT={}",
                self.name,
                self.seed,
                hex(&input)
            );
        };
        if self.seen.insert(sight) {
            self.keep(input);
        }
    }

    fn keep(&mut self, input: Vec<u8>) {
        if self.kept.len() < KEPT_MAX {
            self.kept.push(input);
        } else {
            self.kept[self.random.below(KEPT_MAX)] = input;
        }
    }

    fn next_input(&mut self) -> Vec<u8> {
        if self.kept.is_empty() || self.random.below(4) == 0 {
            return (self.make_up)(&mut self.random);
        }
        let input = self.random.below(self.kept.len());
        let other = self.random.below(self.kept.len());
        mutate(&self.kept[input], &self.kept[other], &mut self.random)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the clock only limits the duration"
)]
fn now() -> Instant {
    Instant::now()
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} is not a number: {text}")),
    )
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
        text
    })
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .chars()
        .map(|digit| {
            digit
                .to_digit(16)
                .and_then(|digit| u8::try_from(digit).ok())
        })
        .map(|digit| digit.expect("THRUM_FUZZ_INPUT is hexadecimal"))
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit))
        .collect()
}
