//! Runs one case of the hot path a given number of times, for callgrind: `thrum-counts CASE TIMES`.
//!
//! `cargo xtask counts` builds it, runs every case that `thrum-counts list` names and lets
//! callgrind collect inside [`counted`] alone. Set-up and warm-up therefore cost nothing; a case
//! must not depend on a clock, an address or a random number.
#![expect(
    clippy::print_stdout,
    reason = "the program prints its results on the terminal"
)]

mod access;
mod codec;
mod engine;
mod routing;
mod session;

use std::hint::black_box;
use std::process::ExitCode;

/// Runs before counting begins, so that tables and buffers have reached their size.
const WARM_UP: u32 = 200;

/// A case: its name in docs/performance/instructions.toml, and the function that sets it up and
/// runs it.
type Case = (&'static str, fn(u32));

const CASES: [Case; 24] = [
    ("decode_publish_v311", codec::decode_publish_v311),
    ("decode_publish_v5", codec::decode_publish_v5),
    ("decode_puback", codec::decode_puback),
    ("encode_publish_v311", codec::encode_publish_v311),
    ("encode_publish_v5", codec::encode_publish_v5),
    ("encode_puback", codec::encode_puback),
    ("match_exact_of_100k", routing::match_exact),
    (
        "match_exact_repeated_of_100k",
        routing::match_exact_repeated,
    ),
    ("match_wildcard_of_100k", routing::match_wildcard),
    ("match_nothing_of_100k", routing::match_nothing),
    ("replace_filter_of_100k", routing::replace_filter),
    ("pick_of_shared_group", routing::pick_of_shared_group),
    ("session_publish_qos1_in", session::publish_in),
    ("session_deliver_qos0", session::deliver_qos0),
    ("session_deliver_qos1_and_puback", session::deliver_qos1),
    ("fan_out_to_100", session::fan_out),
    ("publish_by_10_rules", access::allow_publish),
    ("subscribe_by_10_rules", access::allow_subscribe),
    ("engine_publish_unstamped", engine::publish_unstamped),
    ("engine_publish_stamped", engine::publish_stamped),
    ("engine_publish_observed", engine::publish_observed),
    ("engine_publish_metered", engine::publish_metered),
    ("engine_publish_untraced", engine::publish_untraced),
    ("engine_publish_traced", engine::publish_traced),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["list"] => {
            for (name, _) in CASES {
                println!("{name}");
            }
            ExitCode::SUCCESS
        }
        [name, times] => run(name, times),
        _ => usage(),
    }
}

fn run(name: &str, times: &str) -> ExitCode {
    let case = CASES.iter().find(|(known, _)| *known == name);
    match (case, times.parse()) {
        (Some((_, case)), Ok(times)) => {
            case(times);
            ExitCode::SUCCESS
        }
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    println!("usage: thrum-counts list | CASE TIMES");
    ExitCode::from(2)
}

/// Warms an operation up and runs it the given number of times in [`counted`].
fn repeat<R>(times: u32, mut operation: impl FnMut() -> R) {
    for _ in 0..WARM_UP {
        black_box(operation());
    }
    counted(times, &mut operation);
}

/// The only function in which callgrind collects; xtask refers to it by name.
#[inline(never)]
fn counted<R>(times: u32, operation: &mut impl FnMut() -> R) {
    for _ in 0..times {
        black_box(operation());
    }
}
