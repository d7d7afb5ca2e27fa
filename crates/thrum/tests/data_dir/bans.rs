//! `thrum bans`.

use serde_json::{Value, json};

use crate::folder::Folder;

/// Bans without their times, which are this moment's.
fn bans(folder: &Folder) -> Vec<Value> {
    let mut bans = folder.json("bans ls --data-dir . --json");
    for ban in &mut bans {
        assert!(ban["since"].take().as_str().unwrap().ends_with('Z'));
        ban.as_object_mut().unwrap().remove("by");
        if !ban["until"].is_null() {
            ban["until"] = "some time".into();
        }
    }
    bans
}

#[test]
fn added_bans_are_listed_and_lifted() {
    let folder = Folder::empty("bans");
    folder.printed("bans add --client-id meter-7 --for 1h --reason noise --data-dir .");
    folder.printed("bans add --user jo --data-dir .");
    folder.printed("bans add --address 192.0.2.7/24 --for never --data-dir .");
    let line = |key: &str, who: &str, until: Value, reason: &str| {
        let mut line = json!({
            "client_id": null, "user": null, "address": null, "since": null, "until": until,
            "reason": reason, "disconnect": true, "temporary": false,
        });
        line[key] = who.into();
        line
    };
    assert_eq!(
        bans(&folder),
        [
            line("client_id", "meter-7", "some time".into(), "noise"),
            line("user", "jo", Value::Null, ""),
            line("address", "192.0.2.0/24", Value::Null, ""),
        ]
    );
    let printed = folder.printed("bans ls --data-dir .");
    assert!(
        printed.starts_with("CLIENT ID  USER  ADDRESS       SINCE "),
        "{printed}"
    );
    assert!(
        printed.contains("\n-          -     192.0.2.0/24  2") && printed.contains("Z  for good  "),
        "{printed}"
    );
    assert!(printed.ends_with("\n\n3 bans\n"), "{printed}");
    folder.printed("bans rm --address 192.0.2.0/24 --data-dir .");
    folder.printed("bans rm --client-id meter-7 --data-dir .");
    assert_eq!(bans(&folder).len(), 1);
}

#[test]
fn one_client_of_a_user_or_of_an_address_is_banned_and_lifted() {
    let folder = Folder::empty("bans-one");
    for who in ["--user jo", "--address 2001:db8::7"] {
        folder.printed(&format!("bans add --client-id meter-7 {who} --data-dir ."));
    }
    let found = bans(&folder);
    let who = |ban: &Value| [&ban["client_id"], &ban["user"], &ban["address"]].map(Clone::clone);
    assert_eq!(
        found.iter().map(who).collect::<Vec<_>>(),
        [
            [json!("meter-7"), json!("jo"), Value::Null],
            [json!("meter-7"), Value::Null, json!("2001:db8::/64")],
        ]
    );
    folder.printed("bans rm --client-id meter-7 --user jo --data-dir .");
    folder.printed("bans rm --client-id meter-7 --address 2001:db8::8 --data-dir .");
    assert_eq!(bans(&folder).len(), 0);
    let wide = "error: --client-id with --address takes one address, and no network\n";
    let line = "bans add --client-id a --address 192.0.2.0/24 --data-dir .";
    folder.check_fails(line, 2, wide);
}

#[test]
fn each_change_prints_the_ban_in_force() {
    let folder = Folder::empty("bans-said");
    let said = |line: &str| String::from_utf8(folder.thrum(line).stderr).unwrap();
    assert_eq!(
        said("bans add --user jo --data-dir ."),
        "user jo is banned for good\n"
    );
    let again = said("bans add --user jo --for 7d --data-dir .");
    assert!(again.starts_with("user jo is banned until 2"), "{again}");
    assert!(
        again.ends_with("Z, in place of an earlier ban\n"),
        "{again}"
    );
    assert_eq!(
        said("bans rm --user jo --data-dir ."),
        "user jo is not banned any more\n"
    );
}

#[test]
fn bans_that_the_broker_made_are_listed_and_lifted() {
    let folder = Folder::empty("bans-temporary");
    let text = "{\"client_id\":\"a\",\"by\":\"flapping\",\"until\":99999999999}\n{\"client_id\":\"b\",\"until\":1}\n";
    std::fs::write(folder.path("bans-temporary.jsonl"), text).unwrap();
    let found = bans(&folder);
    assert_eq!((found.len(), &found[0]["temporary"]), (1, &json!(true)));
    folder.printed("bans rm --client-id a --data-dir .");
    assert_eq!(bans(&folder).len(), 0);
}

#[test]
fn a_ban_may_keep_connected_clients_until_it_is_replaced() {
    let folder = Folder::empty("bans-kept");
    folder.printed("bans add --user jo --keep-connected --data-dir .");
    let line = std::fs::read_to_string(folder.path("bans.jsonl")).unwrap();
    assert!(line.contains("\"disconnect\":false"), "{line}");
    assert_eq!(bans(&folder)[0]["disconnect"], json!(false));
    folder.printed("bans add --user jo --data-dir .");
    assert_eq!(bans(&folder)[0]["disconnect"], json!(true));
}

#[test]
fn bans_are_listed_in_every_form_and_found_by_the_configuration() {
    let folder = Folder::empty("bans-forms");
    std::fs::create_dir(folder.path("data")).unwrap();
    let config = "node.data_dir = \"data\"\nprotection.bans = \"own.jsonl\"\n";
    std::fs::write(folder.path("thrum.toml"), config).unwrap();
    for line in ["--user jo --for 1h", "--client-id b", "--client-id a"] {
        folder.printed(&format!("bans add {line} -c thrum.toml"));
    }
    assert!(folder.path("own.jsonl").exists());
    let csv = folder.printed("bans ls -c thrum.toml -o csv --columns client,user --sort client");
    assert_eq!(csv, "client_id,user\na,\nb,\n,jo\n");
    let filtered = folder.json("bans ls -c thrum.toml -o json --filter user=jo");
    assert_eq!((filtered.len(), &filtered[0]["user"]), (1, &json!("jo")));
    folder.printed("bans rm --user jo -c thrum.toml");
    assert_eq!(folder.json("bans ls -c thrum.toml -o json").len(), 2);
}

#[test]
fn a_file_of_another_name_may_be_meant() {
    let folder = Folder::empty("bans-file");
    folder.printed("bans add --user jo --file other.jsonl");
    assert_eq!(folder.json("bans ls --file other.jsonl --json").len(), 1);
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
}

#[test]
fn impossible_changes_are_refused_with_the_reason() {
    let folder = Folder::empty("bans-refused");
    let missing =
        "error: there is no directory none; name the directory that node.data_dir names\n";
    for line in ["bans ls", "bans add --user jo", "bans rm --user jo"] {
        folder.check_fails(&format!("{line} --data-dir none"), 2, missing);
    }
    assert!(!folder.path("none").exists());
    let unknown = "error: user jo is not banned in ./bans.jsonl; thrum bans ls lists the bans\n";
    folder.check_fails("bans rm --user jo --data-dir .", 3, unknown);
    folder.printed("bans add --address 192.0.2.0/24 --data-dir .");
    let wider = "error: address 192.0.2.7 is not banned in ./bans.jsonl; address 192.0.2.0/24 is: lift that\n";
    folder.check_fails("bans rm --address 192.0.2.7 --data-dir .", 3, wider);
    let short = "error: --for: a ban takes at least a second\n";
    folder.check_fails("bans add --user jo --for 1ms --data-dir .", 2, short);
    std::fs::write(folder.path("bans.jsonl"), "{}\n").unwrap();
    let wrong = "error: ./bans.jsonl:1: expected client_id, username or address, or client_id with one of the others; mend the line or \
         remove it\n";
    folder.check_fails("bans ls --data-dir .", 2, wrong);
    folder.check_fails("bans add --user jo --data-dir .", 2, wrong);
}
