//! Passwords to be looked at, from everywhere at once.

use std::collections::VecDeque;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use thrum_conformance::packets::{Connect, unique};
use thrum_conformance::{Version, Wire, clock};

use super::identity::connack;
use crate::outcome::Outcome;
use crate::victim::{Setup, Site, Victim};

/// How long the flood lasts.
const FLOOD: Duration = Duration::from_secs(5);
/// Between two logins of the user, and between two of an attacker.
const LOGIN_PAUSE: Duration = Duration::from_millis(200);
const ATTACKER_PAUSE: Duration = Duration::from_micros(500);
/// Logins of one attacker that wait at a time.
const WAITING: usize = 300;
const ATTACKERS: u16 = 2;
/// Longest acceptable login of the user: the hash alone takes 20 ms of a core.
const LOGIN_MAX: Duration = Duration::from_secs(1);
const ALICE: (&str, &str) = ("alice", "a-1234567");

/// A known user logs in repeatedly while other clients guess passwords.
pub fn flood_of_passwords(site: &Site) -> Outcome {
    let setup = Setup {
        settings: &[
            ("THRUM_AUTH__USERS", "{folder}users.jsonl"),
            ("THRUM_ACL__FILE", "{folder}rules"),
            // Each login is hashed, as the first one after a start is.
            ("THRUM_AUTH__CACHE", "0"),
            ("THRUM_LISTENERS__PROXY__BIND", "{proxy}"),
            ("THRUM_LISTENERS__PROXY__PROXY_PROTOCOL", "true"),
            ("THRUM_LISTENERS__PROXY__PROXY_FROM", "[\"127.0.0.0/8\"]"),
        ],
        files: &[("rules", "allow all pubsub #\n")],
        users: &[ALICE],
        uses_all_cores: true,
        ..Setup::default()
    };
    let mut victim = Victim::start(site, &setup);
    let home = Ipv6Addr::new(0x2001, 0xDB8, 0xA, 0, 0, 0, 0, 1);
    let proxy = victim.proxy;
    let login = || {
        let start = clock::now();
        let mut wire = log_in(proxy, home, ALICE);
        (connack(&mut wire), start.elapsed())
    };
    assert_eq!(login().0, Some(0), "the user is admitted before the attack");
    victim.begin();
    let is_over = AtomicBool::new(false);
    let (logins, guesses) = thread::scope(|scope| {
        let mut attackers = Vec::new();
        for attacker in 0..ATTACKERS {
            let is_over = &is_over;
            attackers.push(scope.spawn(move || guess(proxy, attacker, is_over)));
        }
        let start = clock::now();
        let mut logins = Vec::new();
        while start.elapsed() < FLOOD {
            clock::sleep(LOGIN_PAUSE);
            logins.push(login());
        }
        is_over.store(true, Ordering::Relaxed);
        let guesses = attackers
            .into_iter()
            .filter_map(|attacker| attacker.join().ok());
        (logins, guesses.sum::<u32>())
    });
    let refused = logins.iter().filter(|(code, _)| *code != Some(0)).count();
    let longest = logins
        .iter()
        .map(|(_, took)| *took)
        .max()
        .unwrap_or_default();
    let told = format!(
        "{guesses} guesses, {} logins of a known user, {refused} refused, longest {} ms",
        logins.len(),
        longest.as_millis()
    );
    let is_wrong = refused > 0 || longest > LOGIN_MAX;
    victim.end_with(is_wrong.then(|| told.clone()), told)
}

fn log_in(proxy: SocketAddr, from: Ipv6Addr, (user, password): (&str, &str)) -> Wire {
    let mut wire = Wire::open(proxy, Version::V5);
    let header = format!("PROXY TCP6 {from} 2001:db8::1 40000 1883\r\n");
    let connect = Connect::new(Version::V5).client_id(&unique("c"));
    let connect = connect.credentials(user, password).bytes();
    wire.send(&[header.as_bytes(), &connect].concat());
    wire
}

/// Each guess from another network of 64 bits, for another user; how many there were.
fn guess(proxy: SocketAddr, attacker: u16, is_over: &AtomicBool) -> u32 {
    let mut waiting = VecDeque::new();
    let mut number = 0_u32;
    while !is_over.load(Ordering::Relaxed) {
        number += 1;
        let [high, low] =
            [number >> 16, number & 0xFFFF].map(|part| u16::try_from(part).unwrap_or(0));
        // The network is the first half of the address.
        let from = Ipv6Addr::new(0x2A00, attacker, high, low, 0, 0, 0, 1);
        waiting.push_back(log_in(proxy, from, (&unique("u"), "guess-1")));
        if waiting.len() > WAITING {
            waiting.pop_front();
        }
        clock::sleep(ATTACKER_PAUSE);
    }
    number
}
