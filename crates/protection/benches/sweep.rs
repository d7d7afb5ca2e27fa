//! What one worker does each second for all others: forgetting what is over, in tables that
//! attackers have filled.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use thrum_protection::{
    FlappingLimits, LoginLimits, OverloadLimits, Paces, Protection, ProtectionSettings, Rate,
    SubjectRef,
};
use thrum_protocol::Time;

/// More than any table takes.
const ADDRESSES: u32 = 1 << 19;
const BANS: u32 = 1 << 16;

fn settings(connects: u64, flapping: u32) -> ProtectionSettings {
    let free = Paces::new(&Rate::NONE, &Rate::NONE, &Rate::NONE);
    let connects = Rate::per_second(connects);
    ProtectionSettings {
        client: free,
        user: free,
        address: Paces::new(&connects, &Rate::NONE, &Rate::NONE),
        flapping: FlappingLimits {
            window: Duration::from_mins(1),
            connects: flapping,
            user_connects: 0,
            address_connects: flapping,
            ban: Duration::from_mins(5),
        },
        logins: LoginLimits {
            failures: 30,
            window: Duration::from_mins(1),
            wait: Duration::from_mins(1),
        },
        overload: OverloadLimits {
            turn: Duration::from_millis(200),
            publish_turn: Duration::from_secs(1),
            turns: 5,
            calm: Duration::from_secs(5),
            handshakes: 4096,
        },
    }
}

/// After connections from many addresses, each once.
fn crowded(settings: &ProtectionSettings) -> Protection {
    let protection = Protection::default();
    for number in 0..ADDRESSES {
        let address = IpAddr::V4(Ipv4Addr::from_bits(number.wrapping_mul(0x9E37_79B9)));
        assert!(black_box(protection.may_open(Some(address), settings, at(0))).is_ok());
    }
    for second in 100..160 {
        protection.sweep(settings, at(second));
    }
    protection
}

const fn at(seconds: u64) -> Time {
    Time::from_millis(1_000 * seconds)
}

fn bench_sweeps(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sweep");
    for (name, settings) in [
        ("accounts of addresses", settings(10, 0)),
        ("counts of connections", settings(0, 15)),
    ] {
        group.bench_function(format!("{name}, when half is over"), |bencher| {
            bencher.iter_batched(
                || crowded(&settings),
                |protection| {
                    protection.sweep(&settings, at(200));
                    protection
                },
                BatchSize::PerIteration,
            );
        });
    }
    let protection = Protection::default();
    let settings = settings(0, 15);
    let names: Vec<_> = (0..BANS).map(|number| format!("client-{number}")).collect();
    for name in &names {
        let subject = SubjectRef::ClientId(name);
        let bans = protection.bans();
        assert!(bans.ban_temporarily(subject, at(1_000_000), at(0)));
    }
    group.bench_function("temporary bans that last", |bencher| {
        bencher.iter(|| protection.sweep(&settings, at(1)));
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600));
    targets = bench_sweeps
}
criterion_main!(benches);
