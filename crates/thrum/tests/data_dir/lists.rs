//! Lists of a running broker in every form, and what is explained.

use std::io::{BufRead as _, BufReader};

use serde_json::{Value, json};

use crate::folder::Folder;
use crate::server::Server;

/// A broker with three clients that are away, and messages in their queues.
fn broker(name: &str) -> (Folder, Server) {
    let folder = Folder::empty(name);
    let server = Server::start(&folder, "data");
    for (id, topics) in [
        ("a", "-t all"),
        ("b", "-t all -t b/#"),
        ("c", "-t $share/g/all"),
    ] {
        folder.printed(&format!(
            "sub -p {} -i {id} -c -q 1 {topics} -E",
            server.port
        ));
    }
    server.publish(&folder, "-t all -m one");
    server.publish(&folder, "-t b/1 -m two -r");
    (folder, server)
}

fn ids(rows: &[Value]) -> Vec<&str> {
    rows.iter()
        .map(|row| row["client_id"].as_str().unwrap())
        .collect()
}

#[test]
fn clients_are_listed_in_every_form() {
    let (folder, _server) = broker("forms");
    let list = |options: &str| folder.printed(&format!("clients ls --data-dir data {options}"));
    assert_eq!(
        list("--columns client_id,queue -o csv"),
        "client_id,queued_messages\na,1\nb,2\nc,1\n"
    );
    assert_eq!(
        list("--columns id,queue -o yaml --limit 1"),
        "- client_id: \"a\"\n  queued_messages: 1\n"
    );
    assert_eq!(
        list("--top 1 --columns id,queue -o json"),
        "{\"client_id\":\"b\",\"queued_messages\":2}\n"
    );
    // Without the columns that are ages: a second may pass between two lists.
    let same = "--columns client_id,away_since,connected,queue,queued_bytes,subscriptions";
    assert_eq!(
        list(&format!("{same} -o json")),
        list(&format!("{same} -o jsonl"))
    );
    assert!(list("-o wide").lines().next().unwrap().contains("PROBLEMS"));
    let table = list("--columns id,queue --sort queue --reverse");
    assert_eq!(
        table,
        "CLIENT ID  QUEUED\nb          2\nc          1\na          1\n\n3 clients\n"
    );
    assert_eq!(list("--filter user=nobody"), "0 clients\n");
    folder.check_fails(
        "clients ls --data-dir data --columns colour",
        2,
        "error: clients have no colour; the keys are away_since, client_id, connected, connected_at, idle_secs, inflight, \
         listener, messages_dropped, messages_received, messages_sent, oldest_queued_secs, oldest_unacknowledged_secs, peer, \
         problems, protocol_version, queued_bytes, queued_messages, session_expiry_secs, subscriptions, user\n",
    );
    let output = folder.thrum("clients ls --data-dir data --sort colour");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn subscriptions_and_groups_are_filtered_and_sorted_here() {
    let (folder, _server) = broker("subs");
    let subs = |options: &str| folder.json(&format!("subs ls --data-dir data -o json {options}"));
    assert_eq!(ids(&subs("")), ["a", "b", "b", "c"]);
    assert_eq!(ids(&subs("--filter filter=b/*")), ["b"]);
    assert_eq!(ids(&subs("--exactly all")), ["a", "b"]);
    assert_eq!(ids(&subs("--sort filter --limit 2")), ["c", "a"]);
    assert_eq!(ids(&subs("--reverse --limit 1")), ["c"]);
    let table = folder.printed("subs ls --data-dir data --limit 2");
    assert!(
        table
            .ends_with("2 subscriptions, and there are more; --all lists all, --limit N lists N\n"),
        "{table}"
    );
    let groups = folder.json("groups ls --data-dir data -o json");
    assert_eq!(
        (&groups[0]["group"], &groups[0]["queued_messages"]),
        (&json!("g"), &json!(1))
    );
    let long = folder.json("groups ls --filter lag>0 --data-dir data -o json");
    assert_eq!(long, groups, "short names are those of --sort");
    assert_eq!(
        folder
            .json("groups ls --filter lag>1 --data-dir data -o json")
            .len(),
        0
    );
    folder.check_fails(
        "subs ls --filter qos>x --data-dir data",
        2,
        "error: --filter: qos is a number, and x is none\n",
    );
    assert_eq!(folder.printed("slow --data-dir data -o json"), "");
    assert_eq!(folder.printed("drops ls --data-dir data"), "0 rows\n");
}

#[test]
fn explanations_and_timelines_are_text_or_data() {
    let (folder, server) = broker("explain");
    let line = |line: &str| folder.printed(&format!("{line} --data-dir data"));
    let publish = line("explain publish a b/1 --qos 1");
    assert!(
        publish.starts_with("it would be accepted\n  login "),
        "{publish}"
    );
    assert!(
        publish.contains("\nreceivers (1)\n  b  qos 1, by b/#: "),
        "{publish}"
    );
    let subscribe = line("explain subscribe a all --qos 1");
    assert!(
        subscribe.contains("it replaces a subscription"),
        "{subscribe}"
    );
    assert!(line("clients explain b").contains("queue      2 of 10 000 messages"));
    let timeline = line("clients timeline a");
    assert!(timeline.contains("Z  connected"), "{timeline}");
    let events = folder.json("clients timeline a --data-dir data -o json");
    assert_eq!(events[0]["event"], "connected");
    folder.check_fails(
        "explain drops none --data-dir data",
        3,
        "error: no session has the client identifier \"none\"; list the clients with thrum clients ls\n",
    );
    let trace = folder.start("clients trace t --seconds 10 --packets 1 --data-dir data -o json");
    let address = format!("pub -p {} -i t -t x -m y", server.port);
    let mut child = trace;
    while child.try_wait().unwrap().is_none() {
        folder.printed(&address);
    }
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    // The trace may begin amid a connection.
    let first: Value = serde_json::from_str(printed.lines().next().unwrap()).unwrap();
    let packet = first["packet"]["packet"].as_str().expect(&printed);
    assert!(
        ["CONNECT", "CONNACK", "PUBLISH", "DISCONNECT"].contains(&packet),
        "{printed}"
    );
    assert!(printed.ends_with("{\"ended\":\"packets\"}\n"), "{printed}");
}

#[test]
fn a_trace_prints_packets_while_they_pass_and_ends_after_its_packets() {
    let (folder, server) = broker("traced");
    let line = "trace --topic x --seconds 3600 --packets 2 --data-dir data";
    let mut child = folder.start(line);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (sender, receiver) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let first = lines.next().unwrap().unwrap();
        sender.send(first).unwrap();
        lines.map(Result::unwrap).collect::<Vec<_>>()
    });
    // The first packet, from which on the trace is there.
    let first = loop {
        server.publish(&folder, "-i t -t x -m y");
        if let Ok(first) = receiver.try_recv() {
            break first;
        }
    };
    assert!(first.contains("t -> PUBLISH"), "{first}");
    while child.try_wait().unwrap().is_none() {
        server.publish(&folder, "-i t -t x -m y");
    }
    assert!(child.wait().unwrap().success());
    let rest = reader.join().unwrap();
    assert!(rest.last().unwrap().contains("t -> PUBLISH"), "{rest:?}");
    let messages = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert_eq!(messages, "the trace ended: packets\n");
    folder.check_fails(
        "trace --topic x --seconds 30 --write f --data-dir data",
        2,
        "error: --write: a file has at most 10 seconds and 10000 packets; without --write a trace takes up to an hour\n",
    );
    assert!(!folder.path("f").exists());
}

#[test]
fn an_empty_answer_says_so() {
    let (folder, _server) = broker("nothing");
    for (line, expected) in [
        ("certs reload", "no listener has a certificate"),
        ("alarms history", "no alarm has ended since the start"),
        ("drops ls", "no message that this asks for was dropped"),
    ] {
        let output = folder.thrum(&format!("{line} --data-dir data"));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.success() && said.starts_with(expected),
            "{line}: {said}"
        );
    }
    let banned = folder.printed("clients ban b --data-dir data");
    assert_eq!(
        banned, "client b is banned for good\n",
        "as bans add says it"
    );
    let topic = folder.thrum("topics get nobody/uses/it --data-dir data");
    assert_eq!(topic.status.code(), Some(3), "{topic:?}");
}

#[test]
fn a_client_that_is_away_has_no_address_by_which_it_is_banned() {
    let (folder, _server) = broker("ban-away");
    folder.check_fails(
        "clients ban b --by address --data-dir data",
        2,
        "error: the client \"b\" is not connected, so its address is not known; ban its client_id, or the address \
         itself with thrum bans add\n",
    );
}

#[test]
fn retained_messages_of_a_running_broker_are_shown_removed_and_stored() {
    let (folder, server) = broker("retained-running");
    let run = |line: &str| folder.printed(&format!("retained {line} --data-dir data"));
    assert_eq!(run("get b/1 --payload"), "two");
    assert!(run("get b/1").ends_with("\n\ntwo\n"));
    run("export kept.jsonl");
    assert_eq!(
        run("rm b/# --dry-run"),
        "would remove 1 retained message with 3 B\n  b/1\n"
    );
    let unasked = folder.thrum("retained rm b/# --data-dir data");
    assert_eq!(unasked.status.code(), Some(2), "nobody can be asked");
    run("rm b/# -y");
    folder.check_fails(
        "retained get b/1 --data-dir data",
        3,
        "error: the topic \"b/1\" has no retained message; thrum retained ls lists them\n",
    );
    run("import kept.jsonl");
    let sub = format!("sub -p {} -t b/1 -C 1", server.port);
    assert_eq!(folder.printed(&sub), "two\n");
}

#[test]
fn topics_are_listed_and_shown_while_messages_come() {
    let folder = Folder::empty("topics");
    let server = Server::start(&folder, "data");
    let list = || folder.json("topics ls site --data-dir data -o json");
    // The observation begins with the first look.
    let first = folder.thrum("topics ls --data-dir data");
    let said = String::from_utf8(first.stderr).unwrap();
    assert!(said.contains("ask again while messages come"), "{said}");
    while list().len() < 2 {
        server.publish(&folder, "-t site/a/state -m on");
        server.publish(&folder, "-t site/b -m \u{9b}off");
    }
    let names: Vec<Value> = list().iter().map(|row| row["name"].clone()).collect();
    assert_eq!(names, ["a", "b"]);
    let tree = folder.printed("topics tree --depth 3 --data-dir data");
    let levels: Vec<&str> = tree
        .lines()
        .map(|line| line.split("  ").next().unwrap())
        .collect();
    assert_eq!(levels[0], "site", "{tree}");
    assert!(
        tree.contains("    state  ") && tree.contains("  on\n"),
        "{tree}"
    );
    assert!(tree.contains("\\u{9b}off"), "{tree}");
    let one = folder.printed("topics get site/a/state --data-dir data");
    assert!(one.starts_with("topic        site/a/state\n"), "{one}");
    let table = folder.printed("topics ls site --data-dir data");
    assert!(table.starts_with("LEVEL  BELOW  MESSAGES  RATE"), "{table}");
}
