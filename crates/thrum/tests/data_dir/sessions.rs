//! `thrum sessions`.

use serde_json::json;

use crate::folder::Folder;

#[test]
fn ls_prints_a_table_and_its_sum() {
    let folder = Folder::filled("sessions-ls");
    assert_eq!(
        folder.printed("sessions ls --data-dir data"),
        "CLIENT ID  VERSION  EXPIRY  AWAY SINCE                SUBSCRIPTIONS  QUEUED  INFLIGHT  BYTES\n\
         desk       5.0      7d      -                         0              0       0         0 B\n\
         meter-1    5.0      7d      2023-11-14T22:13:20.000Z  1              1       2         30 B\n\n\
         2 sessions: 30 B\n"
    );
}

#[test]
fn ls_lists_those_that_are_meant() {
    let folder = Folder::filled("sessions-filter");
    let ids = |line: &str| -> Vec<String> {
        let rows = folder.json(&format!("sessions ls --data-dir data --json {line}"));
        let ids = rows
            .iter()
            .map(|row| row["client_id"].as_str().unwrap().to_owned());
        ids.collect()
    };
    assert_eq!(ids(""), ["desk", "meter-1"]);
    assert_eq!(ids("--away-for 7d"), ["meter-1"]);
    assert_eq!(ids("--away-for 36500d"), [""; 0]);
    assert_eq!(ids("--filter es"), ["desk"]);
    let printed = folder.printed("sessions ls --data-dir data --filter none");
    assert_eq!(printed, "0 sessions: 0 B\n");
    assert_eq!(ids("--filter queued>0"), ["meter-1"]);
    assert_eq!(ids("--top 1 --sort bytes"), ["meter-1"]);
    let csv = folder.printed("sessions ls --data-dir data -o csv --columns id,queue");
    assert_eq!(csv, "client_id,queued\ndesk,0\nmeter-1,1\n");
}

#[test]
fn a_line_of_json_has_every_column() {
    let folder = Folder::filled("sessions-json");
    let rows = folder.json("sessions ls --data-dir data --json");
    assert_eq!(
        rows[1],
        json!({
            "client_id": "meter-1", "version": "5.0", "expiry_secs": 604_800, "away_since": "2023-11-14T22:13:20.000Z",
            "subscriptions": 1, "queued": 1, "inflight": 2, "bytes": 30,
        })
    );
    assert_eq!(rows[0]["away_since"], json!(null));
}

#[test]
fn get_prints_all_of_one_session() {
    let folder = Folder::filled("sessions-get");
    assert_eq!(
        folder.printed("sessions get meter-1 --data-dir data"),
        "client id        meter-1\n\
         user             fleet\n\
         version          5.0\n\
         expiry           7d\n\
         away since       2023-11-14T22:13:20.000Z\n\
         last packet id   17\n\
         awaits PUBREL    9\n\
         will             state/meter-1, qos 1, retained, 17 B, due 30s after leaving\n\n\
         subscriptions (1)\n\
         qos 2  $share/g/a/+, retain as published, no retained messages, identifier 7\n\n\
         deliveries (3)\n\
         PACKET ID  STATE           QOS  RETAIN  SIZE  EXPIRES  TOPIC\n\
         41         awaits PUBACK   1    no      15 B  -        a/b\n\
         42         awaits PUBCOMP  2    no      -     -        -\n\
         -          queued          1    no      15 B  -        a/b\n"
    );
    let cut = folder.printed("sessions get meter-1 --data-dir data --limit 1");
    assert!(
        cut.ends_with("a/b\n… and 2 more; --limit N shows N\n"),
        "{cut}"
    );
    let bare = folder.printed("sessions get desk --data-dir data");
    assert!(
        bare.ends_with("\nwill             -\n\nsubscriptions (0)\n\ndeliveries (0)\n"),
        "{bare}"
    );
}

#[test]
fn get_gives_programs_the_same() {
    let folder = Folder::filled("sessions-get-json");
    let found = folder
        .json("sessions get meter-1 --data-dir data --json")
        .remove(0);
    assert_eq!(found["awaits_pubrel"], json!([9]));
    assert_eq!(found["will"]["topic"], json!("state/meter-1"));
    assert_eq!(found["subscriptions"][0]["retain_handling"], json!(2));
    let states: Vec<_> = found["deliveries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["state"].clone())
        .collect();
    assert_eq!(states, ["awaits PUBACK", "awaits PUBCOMP", "queued"]);
    assert_eq!(found["deliveries"][2]["topic"], json!("a/b"));
    assert_eq!(found["deliveries_total"], json!(3));
}

#[test]
fn purge_removes_every_session_of_a_client_once_it_is_confirmed() {
    let folder = Folder::filled("sessions-purge");
    let line = "sessions purge meter-1 --data-dir data";
    let asked = "remove 1 session with 1 subscription, 1 queued and 2 inflight (30 B)? [y/N] ";
    let refused = "error: not confirmed, nothing was changed; -y does it without asking\n";
    folder.check_fails(line, 2, &format!("{asked}{refused}"));
    assert_eq!(folder.state("data").sessions.len(), 3);
    let output = folder.thrum_with(line, "y\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "meter-1\n");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.ends_with("removed 1 session with 1 subscription, 1 queued and 2 inflight (30 B)\n"),
        "{said}"
    );
    let state = folder.state("data");
    assert_eq!(state.sessions.len(), 1);
    assert_eq!(&*state.sessions[0].client_id, "desk");
    assert_eq!((state.messages.len(), state.retained.len()), (2, 2));
}

#[test]
fn purge_by_time_keeps_connected_sessions_and_all_keeps_none() {
    let folder = Folder::filled("sessions-purge-away");
    let purge = |line: &str| folder.printed(&format!("sessions purge --data-dir data -y {line}"));
    assert_eq!(purge("--away-for 36500d"), "");
    assert_eq!(purge("--away-for 30d"), "meter-1\n");
    assert_eq!(purge("--all"), "desk\n");
    assert_eq!(folder.state("data").sessions, []);
    assert_eq!(purge("--all"), "");
}
