//! The roles of the clients of a run.

use thrum_conformance::Version;

use crate::client::{Habit, Publishes, Role, WillRole};

const PUBLISHERS: usize = 6;
const TOPICS: usize = 4;

/// All clients: every kind of session, delivery and end at once.
pub fn all_roles() -> Vec<Role> {
    let mut roles = publishers();
    roles.extend(subscribers());
    roles.extend(group_members());
    roles.extend(clients_with_wills());
    roles
}

fn version(index: usize) -> Version {
    Version::STANDARD[index % Version::STANDARD.len()]
}

/// Topics `t/P/N` for all clients, `s/P` for shared groups, `ret/P/N` that are retained.
fn publishers() -> Vec<Role> {
    let mut roles = Vec::new();
    for index in 0..PUBLISHERS {
        let mut role = Role::new(&format!("publisher{index}"), version(index));
        let mut topics: Vec<_> = (0..TOPICS)
            .map(|number| format!("t/{index}/{number}"))
            .collect();
        topics.push(format!("s/{index}"));
        role.publishes = Some(Publishes {
            topics,
            qos: [vec![1], vec![2], vec![0, 1, 2], vec![1, 2]][index % 4].clone(),
            retain: false,
            window: [1, 4, 20][index % 3],
            pause_max: 8,
        });
        // Two of them connect and disconnect in the middle of their handshakes.
        if index >= PUBLISHERS - 2 {
            role.habit = Habit::Restless(60);
        }
        roles.push(role);
    }
    for index in 0..2 {
        let mut role = Role::new(&format!("keeper{index}"), version(index));
        role.publishes = Some(Publishes {
            topics: (0..TOPICS)
                .map(|number| format!("ret/{index}/{number}"))
                .collect(),
            // One QoS per topic: a QoS 1 message that is sent again overtakes one of QoS 2 that is
            // not taken twice.
            qos: vec![1 + u8::from(index == 1)],
            retain: true,
            window: 3,
            pause_max: 40,
        });
        roles.push(role);
    }
    roles
}

fn subscribers() -> Vec<Role> {
    let mut roles = Vec::new();
    let filters = ["t/#", "t/+/1", "t/0/#", "t/5/#"];
    let mut add = |name: String, habit, qos: u8, filter: &str| {
        let index = roles.len();
        let mut role = Role::new(&name, version(index));
        role.habit = habit;
        role.filters = vec![(filter.to_owned(), qos)];
        role.answer_max = [0, 5, 60][index % 3];
        role.receive_maximum = [0, 5, 50][index % 3];
        roles.push(role);
    };
    for (index, filter) in filters.iter().enumerate() {
        add(format!("present{index}"), Habit::Present, 2, filter);
        add(format!("absent{index}"), Habit::Absent(5), 2, filter);
        add(format!("restless{index}"), Habit::Restless(50), 2, filter);
    }
    add("present-one".to_owned(), Habit::Present, 1, "t/+/2");
    add("absent-one".to_owned(), Habit::Absent(4), 1, "t/+/2");
    add("restless-zero".to_owned(), Habit::Restless(50), 0, "t/+/3");
    add("archive".to_owned(), Habit::Present, 2, "ret/#");
    add("archive-absent".to_owned(), Habit::Absent(3), 1, "ret/#");
    add("mourner".to_owned(), Habit::Present, 2, "will/#");
    add("mourner-absent".to_owned(), Habit::Absent(3), 2, "will/#");
    for role in &mut roles {
        if role.name.starts_with("restless") {
            role.fickle = Some(("ret/0/#".to_owned(), 2));
        }
    }
    roles
}

/// `one` and `two` keep their members, of which one each is mostly disconnected; members of `three`
/// end their sessions.
fn group_members() -> Vec<Role> {
    let mut roles = Vec::new();
    for (group, member) in [
        ("one", 0),
        ("one", 1),
        ("one", 2),
        ("two", 0),
        ("two", 1),
        ("two", 2),
        ("three", 0),
        ("three", 1),
    ] {
        let mut role = Role::new(&format!("{group}-{member}"), version(roles.len()));
        let qos = if group == "one" {
            1 + u8::from(member == 1)
        } else {
            2
        };
        role.filters = vec![(format!("$share/{group}/s/#"), qos)];
        role.answer_max = 20;
        role.habit = match member {
            0 => Habit::Present,
            1 => Habit::Restless(80),
            _ => Habit::Absent(4),
        };
        role.ends_sessions = group == "three" && member == 1;
        roles.push(role);
    }
    roles
}

/// Clients with wills, and clients whose sessions end.
fn clients_with_wills() -> Vec<Role> {
    let mut roles = Vec::new();
    for (index, delay_secs) in [0, 0, 0, 1, 1, 2].into_iter().enumerate() {
        let is_new = delay_secs > 0 || index == 0;
        let version = if is_new { Version::V5 } else { Version::V311 };
        let mut role = Role::new(&format!("mortal{index}"), version);
        role.habit = Habit::Mourned(100);
        role.will = Some(WillRole {
            qos: [2, 1, 2][index % 3],
            retain: index % 2 == 0,
            delay_secs,
        });
        role.ends_sessions = index == 5;
        roles.push(role);
    }
    let mut brief = Role::new("brief", Version::V5);
    brief.expiry_secs = 0;
    brief.habit = Habit::Mourned(100);
    brief.will = Some(WillRole {
        qos: 1,
        retain: true,
        delay_secs: 0,
    });
    roles.push(brief);
    for index in 0..3 {
        let mut role = Role::new(&format!("ender{index}"), version(index));
        role.habit = Habit::Restless(100);
        role.ends_sessions = true;
        role.filters = vec![("t/1/#".to_owned(), 2)];
        role.answer_max = 10;
        roles.push(role);
    }
    let mut short = Role::new("short", Version::V5);
    short.expiry_secs = 2;
    short.habit = Habit::Absent(3);
    short.filters = vec![("t/2/0".to_owned(), 2)];
    roles.push(short);
    let mut passing = Role::new("passing", Version::V5);
    passing.expiry_secs = 0;
    passing.habit = Habit::Restless(50);
    passing.filters = vec![("t/3/#".to_owned(), 2)];
    roles.push(passing);
    roles
}
