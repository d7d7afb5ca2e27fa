//! `/users`, `/roles`, `/user-groups` and the import of users.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use thrum_access::{Admission, Answer as Verdict, Gatekeeper, Login, Reply};
use thrum_auth::users::LockedStore;
use thrum_broker::Listening;
use thrum_broker::config::ListenerConfig;

use super::*;

/// The password of a test's user, which may be in no answer and no log.
const SECRET: &str = "hunter2-of-the-meters";

fn store(api: &TestApi) -> thrum_auth::users::UserStore {
    thrum_auth::users::read(&api.folder.join("users.jsonl")).unwrap()
}

#[tokio::test]
async fn a_user_is_added_changed_and_removed_and_its_password_is_nowhere() {
    let api = TestApi::with_users("users");
    let admin = api.admin().await;
    let body = json!({
        "name": "meter/7", "password": SECRET, "scram": true, "roles": ["meter"],
        "rules": ["allow pub a/#"],
    });
    let added = api.post(&admin, "/users", body.clone()).await;
    assert_eq!(added.status, 201, "{}", added.body);
    let expected = json!({
        "name": "meter/7", "password": "argon2id", "scram": true, "roles": ["meter"], "groups": [],
        "rules": ["allow pub a/#"], "superuser": false, "disabled": false,
        "etag": added.body["etag"],
    });
    assert_eq!(added.body, expected);
    let twice = api.post(&admin, "/users", body).await;
    assert_eq!(
        (twice.status, &twice.body["title"]),
        (409, &json!("exists already"))
    );
    assert_eq!(api.get(&admin, "/users/meter%2F7").await.body, expected);
    let change = json!({ "roles": [], "disabled": true });
    let changed = api.patch(&admin, "/users/meter%2F7", change).await;
    assert_eq!(changed.status, 200, "{}", changed.body);
    let user = &changed.body["user"];
    assert_eq!(
        (&user["roles"], &user["disabled"]),
        (&json!([]), &json!(true))
    );
    assert_eq!(
        user["rules"],
        json!(["allow pub a/#"]),
        "what is not named stays"
    );
    let password = json!({ "password": "another", "scram": false, "disconnect": true });
    let changed = api
        .post(&admin, "/users/meter%2F7/password", password)
        .await;
    assert_eq!(changed.status, 200, "{}", changed.body);
    assert_eq!(changed.body["user"]["scram"], false);
    let removed = api.delete(&admin, "/users/meter%2F7").await;
    assert_eq!((removed.status, &removed.body["user"]), (200, &Value::Null));
    assert_eq!(api.get(&admin, "/users/meter%2F7").await.status, 404);
    assert!(store(&api).user("meter/7").is_none());
    let log = api.audit(&admin, 5).await;
    assert_eq!(log[0], json!(["admin", "user.remove", "meter/7", "done"]));
    assert_eq!(log[1], json!(["admin", "user.password", "meter/7", "done"]));
    for file in std::fs::read_dir(api.folder.join("audit")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(
            !text.contains(SECRET) && !text.contains("argon2id"),
            "{text}"
        );
    }
}

/// Admits clients whose identifier begins with `j` by `jwt1`, and the others by the user store.
#[derive(Debug)]
struct TwoBackends;

impl Gatekeeper for TwoBackends {
    fn login(&self, login: Login, reply: Reply<Verdict>) {
        let mut identity = login.identity;
        let is_token = identity.client_id.starts_with('j');
        identity.backend = Some(if is_token { "jwt1" } else { "users" }.into());
        reply(Verdict::Admit(Box::new(Admission {
            identity,
            ..Admission::default()
        })));
    }
}

/// Connects `alice` with a client identifier of one letter.
fn alice(address: SocketAddr, client_id: u8) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut connect = *b"\x10\x17\0\x04MQTT\x04\xc2\0\0\0\x01a\0\x05alice\0\x01x";
    connect[14] = client_id;
    stream.write_all(&connect).unwrap();
    let mut connack = [0; 4];
    stream.read_exact(&mut connack).unwrap();
    assert_eq!(connack, [0x20, 2, 0, 0]);
    stream
}

#[tokio::test]
async fn clients_that_another_backend_admitted_stay_and_are_counted_as_left() {
    let mut api = TestApi::with_users("users-two-backends");
    let mut config = Config::default();
    config.node.workers = Workers::Count(1);
    config.listeners.clear();
    let listener = ListenerConfig {
        bind: vec![SocketAddr::from(([127, 0, 0, 1], 0)).into()],
        ..ListenerConfig::default()
    };
    config.listeners.insert("mqtt".to_owned(), listener);
    let access = Access {
        gatekeeper: Some(Arc::new(TwoBackends)),
        ..Access::default()
    };
    let broker = Broker::start(config, access).unwrap();
    let addresses = broker.addresses();
    let address = addresses.iter().find_map(Listening::socket_address);
    let managed = Managed::from(broker.queries());
    api.router = router(managed, api.security.clone(), Entrance::Port);
    api.broker.replace(broker).unwrap().stop();
    let admin = api.admin().await;
    let body = json!({ "name": "alice" });
    assert_eq!(api.post(&admin, "/users", body).await.status, 201);
    let _clients = [b'a', b'j'].map(|client_id| alice(address.unwrap(), client_id));
    let counts = |answer: &Answer| {
        assert_eq!(answer.status, 200, "{}", answer.body);
        (
            answer.body["disconnected"].clone(),
            answer.body["left"].clone(),
        )
    };
    let path = "/users/alice";
    // This broker asks no store, so that both stay.
    let disabled = api.patch(&admin, path, json!({ "disabled": true })).await;
    assert_eq!(counts(&disabled), (json!(1), json!(1)));
    let password = json!({ "password": SECRET });
    let kept = api.post(&admin, "/users/alice/password", password).await;
    assert_eq!(counts(&kept), (json!(0), json!(2)));
    let password = json!({ "password": SECRET, "disconnect": true });
    let ended = api.post(&admin, "/users/alice/password", password).await;
    assert_eq!(counts(&ended), (json!(1), json!(1)));
    // The name of a user is no pattern.
    let body = json!({ "name": "al*" });
    assert_eq!(api.post(&admin, "/users", body).await.status, 201);
    let disabled = json!({ "disabled": true });
    let other = api.patch(&admin, "/users/al%2A", disabled).await;
    assert_eq!(counts(&other), (json!(0), json!(0)));
    let removed = api.delete(&admin, path).await;
    assert_eq!(counts(&removed), (json!(0), json!(1)));
}

#[tokio::test]
async fn a_user_that_the_store_could_not_read_again_is_refused() {
    let api = TestApi::with_users("users-large");
    let admin = api.admin().await;
    let body = json!({ "name": "big" });
    assert_eq!(api.post(&admin, "/users", body).await.status, 201);
    let rules = vec![format!("allow pub {}", "x".repeat(60_000)); 15];
    let changed = api
        .patch(&admin, "/users/big", json!({ "rules": rules }))
        .await;
    assert_eq!(changed.status, 200, "{}", changed.body["detail"]);
    let groups: Vec<String> = (10..24)
        .map(|number| number.to_string().repeat(30_000))
        .collect();
    let refused = api
        .patch(&admin, "/users/big", json!({ "groups": groups }))
        .await;
    let problem = &refused.body;
    assert_eq!(
        (refused.status, &problem["title"]),
        (400, &json!("too large for the user store")),
        "{}",
        problem["detail"]
    );
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("give it fewer rules"), "{detail}");
    let big = store(&api).user("big").unwrap().clone();
    assert_eq!((big.rules.texts().len(), big.groups.len()), (15, 0));
    let other = json!({ "name": "other" });
    assert_eq!(api.post(&admin, "/users", other).await.status, 201);
}

#[tokio::test]
async fn the_command_and_the_interface_do_not_lose_each_others_changes() {
    let api = TestApi::with_users("users-both");
    let admin = api.admin().await;
    let path = api.folder.join("users.jsonl");
    for number in 0..5 {
        let mut locked = LockedStore::open(&path).unwrap();
        let name = format!("by-command-{number}");
        locked
            .store
            .set_user(&name, thrum_auth::users::User::default());
        locked.save().unwrap();
        drop(locked);
        let body = json!({ "name": format!("by-interface-{number}") });
        assert_eq!(api.post(&admin, "/users", body).await.status, 201);
        let total = &api.get(&admin, "/users?limit=1").await.body["total"];
        assert_eq!(*total, 2 * (number + 1), "both are in force at once");
    }
    assert_eq!(store(&api).users().len(), 10);
}

#[tokio::test]
async fn rules_that_two_add_at_the_same_time_are_all_there() {
    let api = TestApi::with_users("add-rules");
    let admin = api.admin().await;
    let body = json!({ "name": "alice", "rules": ["allow sub first"] });
    assert_eq!(api.post(&admin, "/users", body).await.status, 201);
    let path = "/users/alice";
    let add = |rule: &str| api.patch(&admin, path, json!({ "add_rules": [rule] }));
    let (one, other) = tokio::join!(add("allow sub a"), add("deny sub b"));
    assert_eq!((one.status, other.status), (200, 200), "{}", one.body);
    let found = api.get(&admin, path).await;
    let mut rules: Vec<String> = serde_json::from_value(found.body["rules"].clone()).unwrap();
    assert_eq!(rules[0], "deny sub b", "as the first match decides");
    rules.sort();
    assert_eq!(rules, ["allow sub a", "allow sub first", "deny sub b"]);
    let log = api.get(&admin, "/audit?limit=10").await.body;
    let log = log["entries"].as_array().unwrap().iter();
    let changes = log.filter(|entry| entry["action"] == "user.change");
    let after = changes.map(|entry| entry["after"]["rules"].as_array().unwrap().len());
    let mut after: Vec<usize> = after.collect();
    after.sort_unstable();
    assert_eq!(after, [2, 3], "what is there after each of them");
    let both = json!({ "rules": ["deny pub x"], "add_rules": ["allow pub y"] });
    let changed = api.patch(&admin, path, both).await;
    let expected = json!(["deny pub x", "allow pub y"]);
    assert_eq!(changed.body["user"]["rules"], expected);
    let wrong = json!({ "add_rules": ["maybe pub x"] });
    assert_eq!(api.patch(&admin, path, wrong).await.status, 400);
}

#[tokio::test]
async fn users_are_listed_by_page_and_filter() {
    let api = TestApi::with_users("users-list");
    let admin = api.admin().await;
    for number in 0..7 {
        let body = json!({
            "name": format!("u{number}"), "roles": if number > 4 { json!(["ops"]) } else { json!([]) },
            "disabled": number == 0,
        });
        assert_eq!(api.post(&admin, "/users", body).await.status, 201);
    }
    let all = api.pages(&admin, "/users?limit=3", "users").await;
    let names: Vec<&str> = all
        .iter()
        .map(|user| user["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["u0", "u1", "u2", "u3", "u4", "u5", "u6"]);
    for (filter, count) in [
        ("role=ops", 2),
        ("disabled=true", 1),
        ("name=3", 1),
        ("group=x", 0),
        ("superuser=false", 7),
    ] {
        let found = api
            .pages(&admin, &format!("/users?limit=1&{filter}"), "users")
            .await;
        assert_eq!(found.len(), count, "{filter}");
    }
    for bad in ["limit=0", "colour=red", "disabled=perhaps"] {
        assert_eq!(
            api.get(&admin, &format!("/users?{bad}")).await.status,
            400,
            "{bad}"
        );
    }
}

#[tokio::test]
async fn roles_and_groups_are_set_listed_and_removed() {
    let api = TestApi::with_users("roles");
    let admin = api.admin().await;
    let rules = json!({ "rules": ["allow sub #", "deny pub $SYS/#"] });
    for name in ["a", "b", "c"] {
        let set = api
            .put(&admin, &format!("/roles/{name}"), rules.clone())
            .await;
        assert_eq!(set.status, 200, "{}", set.body);
        let group = json!({ "roles": ["a"], "rules": [] });
        let set = api
            .put(&admin, &format!("/user-groups/{name}"), group)
            .await;
        assert_eq!(set.status, 200, "{}", set.body);
    }
    let roles = api.pages(&admin, "/roles?limit=2", "roles").await;
    assert_eq!(roles.len(), 3);
    assert_eq!(
        roles[0],
        json!({ "name": "a", "rules": rules["rules"], "etag": roles[0]["etag"] })
    );
    assert_eq!(
        api.pages(&admin, "/user-groups?limit=2", "groups")
            .await
            .len(),
        3
    );
    for path in ["/roles/a", "/user-groups/a"] {
        assert_eq!(api.delete(&admin, path).await.status, 204, "{path}");
        assert_eq!(api.delete(&admin, path).await.status, 404, "{path}");
    }
    let wrong = api
        .put(&admin, "/roles/x", json!({ "rules": ["allow everything"] }))
        .await;
    let detail = wrong.body["detail"].as_str().unwrap();
    assert!(
        wrong.status == 400 && detail.contains("allow everything"),
        "{detail}"
    );
    let empty = api
        .put(&admin, "/user-groups/x", json!({ "roles": [""] }))
        .await;
    assert_eq!(empty.status, 400, "{}", empty.body);
    assert_eq!(api.get(&admin, "/roles?limit=0").await.status, 400);
}

#[tokio::test]
async fn what_is_to_be_added_replaces_nothing_and_what_has_changed_meanwhile_stays() {
    let api = TestApi::with_users("preconditions");
    let admin = api.admin().await;
    let adding = admin.with("if-none-match", "*");
    let of = |rule: &str| json!({ "rules": [rule] });
    for (path, list, rows) in [
        ("/roles/a", "/roles", "roles"),
        ("/user-groups/a", "/user-groups", "groups"),
    ] {
        let first = api.put(&adding, path, of("allow pub a")).await;
        assert_eq!(first.status, 200, "{}", first.body);
        let taken = api.put(&adding, path, of("allow pub #")).await;
        assert_eq!(
            (taken.status, &taken.body["title"]),
            (412, &json!("exists already"))
        );
        assert!(
            taken.body["detail"]
                .to_string()
                .contains("nothing was changed"),
            "{}",
            taken.body
        );
        let seen = api.get(&admin, list).await.body[rows][0].clone();
        assert_eq!(seen, first.body, "{path}");
        let changing = admin.with("if-match", seen["etag"].as_str().unwrap());
        let changed = api.put(&changing, path, of("allow pub b")).await;
        assert_eq!(changed.status, 200, "{}", changed.body);
        let late = api.put(&changing, path, of("allow pub #")).await;
        assert_eq!(
            (late.status, &late.body["title"]),
            (412, &json!("changed meanwhile"))
        );
        let now = api.get(&admin, list).await.body[rows][0].clone();
        assert_eq!(now["rules"], json!(["allow pub b"]), "{path}");
        let stale = api.delete(&changing, path).await;
        assert_eq!(stale.status, 412, "{}", stale.body);
        assert_eq!(api.delete(&admin, path).await.status, 204);
        let gone = api.put(&changing, path, of("allow pub #")).await;
        assert_eq!(gone.status, 412, "{}", gone.body);
        assert!(
            gone.body["detail"].to_string().contains("no longer there"),
            "{}",
            gone.body
        );
        let garbage = admin.with("if-match", "garbage");
        assert_eq!(api.put(&garbage, path, of("allow pub #")).await.status, 400);
    }
}

#[tokio::test]
async fn a_user_that_has_changed_meanwhile_stays_as_it_is() {
    let api = TestApi::with_users("user-precondition");
    let admin = api.admin().await;
    let body = json!({ "name": "a", "superuser": true });
    let seen = api.post(&admin, "/users", body).await.body;
    let changing = admin.with("if-match", seen["etag"].as_str().unwrap());
    let taken = json!({ "superuser": false });
    assert_eq!(api.patch(&changing, "/users/a", taken).await.status, 200);
    let late = json!({ "superuser": true });
    let late = api.patch(&changing, "/users/a", late).await;
    assert_eq!(
        (late.status, &late.body["title"]),
        (412, &json!("changed meanwhile"))
    );
    let now = api.get(&admin, "/users/a").await.body;
    assert_eq!(now["superuser"], false);
    assert_ne!(now["etag"], seen["etag"]);
    let log = api.audit(&admin, 1).await;
    assert_eq!(log[0], json!(["admin", "user.change", "a", "failed"]));
    let stale = api.delete(&changing, "/users/a").await;
    assert_eq!(stale.status, 412, "{}", stale.body);
    let tag = now["etag"].as_str().unwrap();
    let password = json!({ "password": "another-password-1" });
    let set = api.post(&changing, "/users/a/password", password.clone());
    assert_eq!(set.await.status, 412);
    let current = admin.with("if-match", tag);
    let set = api.post(&current, "/users/a/password", password).await;
    assert_eq!(set.status, 200, "{}", set.body);
    let after = api.get(&admin, "/users/a").await.body;
    assert_ne!(after["etag"], tag, "a password is part of the user");
}

#[tokio::test]
async fn the_audit_log_has_what_was_there_when_each_change_was_made() {
    let api = TestApi::with_users("audit-before");
    let admin = api.admin().await;
    let body = json!({ "name": "a", "roles": ["first"] });
    assert_eq!(api.post(&admin, "/users", body).await.status, 201);
    let roles = ["b", "c", "d", "e"];
    let change = |role: &str| api.patch(&admin, "/users/a", json!({ "roles": [role] }));
    let [b, c, d, e] = roles.map(change);
    let done = tokio::join!(b, c, d, e);
    let statuses = [done.0, done.1, done.2, done.3].map(|answer| answer.status);
    assert_eq!(statuses, [200; 4]);
    let page = api.get(&admin, "/audit?action=user.change").await.body;
    let entries = page["entries"].as_array().unwrap().iter();
    let roles = |state: &Value| state["roles"][0].as_str().unwrap().to_owned();
    let mut steps: Vec<_> = entries
        .map(|entry| (roles(&entry["before"]), roles(&entry["after"])))
        .collect();
    // Each begins where another one ended.
    let mut at = "first".to_owned();
    while let Some(next) = steps.iter().position(|step| step.0 == at) {
        at = steps.remove(next).1;
    }
    assert_eq!(steps, [], "{page}");
}

#[tokio::test]
async fn users_of_other_programs_are_imported() {
    let api = TestApi::with_users("import");
    let admin = api.admin().await;
    let import = async |format: &str, text: &str| {
        let client = admin.with("content-type", "text/plain");
        api.send(
            &client,
            Method::POST,
            &format!("/import/users?format={format}"),
            text,
        )
        .await
    };
    let done = import("emqx-csv", "user_id,password\nalice,secret\nbob,secret\n").await;
    assert_eq!(
        (done.status, &done.body),
        (200, &json!({ "added": 2, "replaced": 0 }))
    );
    let again = import("emqx-csv", "user_id,password\nalice,other\n").await;
    assert_eq!(again.body, json!({ "added": 0, "replaced": 1 }));
    let lines =
        "{\"role\":\"ops\",\"rules\":[\"allow sub #\"]}\n{\"user\":\"eve\",\"roles\":[\"ops\"]}\n";
    let store = import("jsonl", lines).await;
    assert_eq!(store.body, json!({ "added": 1, "replaced": 0 }));
    assert_eq!(
        api.get(&admin, "/roles").await.body["roles"][0]["name"],
        "ops"
    );
    for (format, text, said) in [
        ("jsonl", "{\"user\":7}", "body:1: "),
        ("mosquitto", "alice", "line 1"),
        ("emqx-json", "{}", "a JSON list"),
        ("passwd", "", "format"),
    ] {
        let refused = import(format, text).await;
        assert_eq!(refused.status, 400, "{format}");
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.contains(said), "{format}: {detail}");
    }
    let mut many = vec!["user_id,password".to_owned()];
    many.extend((0..201).map(|number| format!("u{number},secret")));
    let refused = import("emqx-csv", &many.join("\n")).await;
    assert_eq!(refused.status, 400, "{}", refused.body);
    assert_eq!(api.get(&admin, "/users").await.body["total"], 3);
}

#[tokio::test]
async fn wrong_users_and_missing_scopes_are_refused_with_what_is_wrong() {
    let api = TestApi::with_users("users-wrong");
    let admin = api.admin().await;
    for (body, said) in [
        (json!({ "name": "" }), "a name is empty"),
        (json!({ "name": "a", "rules": ["allow pubb a"] }), "pubb"),
        (
            json!({ "name": "a", "scram": true }),
            "scram needs a password",
        ),
        (
            json!({ "name": "a", "password": "" }),
            "a password has 1 to",
        ),
        (json!({ "name": "a", "roles": [""] }), "role"),
        (json!({ "name": "a", "hash": "x" }), "hash"),
    ] {
        let refused = api.post(&admin, "/users", body.clone()).await;
        let detail = refused.body["detail"].as_str().unwrap_or_default();
        assert_eq!(refused.status, 400, "{body}");
        assert!(detail.contains(said), "{body}: {detail}");
    }
    let nothing = api.patch(&admin, "/users/a", json!({})).await;
    assert_eq!(nothing.status, 400, "{}", nothing.body);
    let missing = api
        .patch(&admin, "/users/a", json!({ "disabled": true }))
        .await;
    assert_eq!(
        (missing.status, &missing.body["title"]),
        (404, &json!("not there"))
    );
    assert_eq!(api.delete(&admin, "/users/a").await.status, 404);
    let password = api
        .post(&admin, "/users/a/password", json!({ "password": "x" }))
        .await;
    assert_eq!(password.status, 404);
    let reader = api.key(&admin, &["users:read"]).await;
    assert_eq!(api.get(&reader, "/users").await.status, 200);
    for (method, path) in [
        (Method::POST, "/users"),
        (Method::PATCH, "/users/a"),
        (Method::DELETE, "/users/a"),
        (Method::POST, "/users/a/password"),
        (Method::POST, "/import/users?format=jsonl"),
        (Method::PUT, "/roles/a"),
        (Method::DELETE, "/roles/a"),
        (Method::PUT, "/user-groups/a"),
        (Method::DELETE, "/user-groups/a"),
    ] {
        let refused = api
            .ask(&reader, method.clone(), path, json!({ "name": "a" }))
            .await;
        assert_eq!(refused.status, 403, "{method} {path}");
    }
    let other = api.key(&admin, &["clients:read"]).await;
    for path in ["/users", "/users/a", "/roles", "/user-groups"] {
        assert_eq!(api.get(&other, path).await.status, 403, "{path}");
    }
    let without = TestApi::with_admin("users-without");
    let admin = without.admin().await;
    let refused = without.get(&admin, "/users").await;
    assert_eq!(
        (refused.status, &refused.body["title"]),
        (409, &json!("no user store"))
    );
}
