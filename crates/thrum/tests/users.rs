//! `thrum users` as people run it.
#![expect(clippy::unwrap_used, reason = "a failed setup should panic")]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

/// Made by `mosquitto_passwd`: `secret` and `pass word`.
const PASSWD: &str = "alice:$6$N6MwR5kcsKRHlobT$C65Rq/vZdi7Uhruf39cxLQKItZhwlhYLhTar4sOqWtnju1X9z673j0dxKLf8Zys8ZNetjSng89OcQOlxB+hEPg==\n\
    bob:$7$101$TbmVBh14tXSnz8TM$8m54Rj2eqN0rN7n0ga++IKxvsApywEh7n5Mt+9MdatVW2IEZ/oPAkyl0RGTLr00ijTV7/8fNYbTGWDCoie6RGA==\n";

/// A folder with a user store in it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("users-{name}"));
        if path.exists() {
            fs::remove_dir_all(&path).unwrap();
        }
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("password"), "secret\n").unwrap();
        Self(path)
    }

    /// Runs `thrum users` with these arguments, and this on its standard input.
    fn run_with(&self, args: &[&str], input: &str) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_thrum"))
            .arg("users")
            .args(args)
            .args(["--users", "store.jsonl"])
            .current_dir(&self.0)
            .env_remove("RUST_LOG")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that asks nothing has ended before it reads.
        child.stdin.take().unwrap().write_all(input.as_bytes()).ok();
        child.wait_with_output().unwrap()
    }

    /// The output of a successful line.
    fn run(&self, args: &[&str]) -> (String, String) {
        let output = self.run_with(args, "");
        let texts = texts(&output);
        assert!(output.status.success(), "{args:?}: {}", texts.1);
        texts
    }

    /// Adds a user with the password `secret`; returns the output, except the warning of root about
    /// a new file.
    fn add(&self, args: &[&str]) -> String {
        let (_, said) = self.run(&[&["add"], args, &["--password-file", "password"]].concat());
        let lines = said.split_inclusive('\n');
        lines
            .filter(|line| !line.starts_with("note: root alone"))
            .collect()
    }

    /// The output of a line that is wrong usage.
    fn fails(&self, args: &[&str]) -> String {
        self.fails_with(2, args)
    }

    /// The output of a line that fails with this exit code.
    fn fails_with(&self, code: i32, args: &[&str]) -> String {
        let output = self.run_with(args, "");
        assert_eq!(output.status.code(), Some(code), "{args:?}");
        let (printed, said) = texts(&output);
        assert_eq!(printed, "");
        said
    }

    fn listed(&self) -> Vec<Value> {
        let (printed, _) = self.run(&["ls", "--json"]);
        let lines = printed.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn add_prints_the_rights_of_the_user() {
    let folder = Folder::new("add");
    assert_eq!(
        folder.add(&["alice"]),
        "added user alice\nalice may do nothing yet but what acl.rules allow; next: \
         thrum users change alice --allow 'pubsub devices/%c/#'\n"
    );
    assert_eq!(
        folder.add(&["bob", "--allow", "pubsub b/%c/#", "--deny", "pub b/x"]),
        "added user bob\nbob: deny pub b/x; allow pubsub b/%c/#\n"
    );
    assert_eq!(
        folder.add(&["carol", "--superuser"]),
        "added user carol\ncarol is a superuser and may do everything\n"
    );
    let said = folder.run(&["roles", "set", "ops", "--allow", "sub #"]).1;
    assert_eq!(said, "set role ops\n");
    folder.run(&["groups", "set", "night", "--role", "ops"]);
    assert_eq!(
        folder.add(&["dave", "--group", "night"]),
        "added user dave\ndave: allow sub #\n"
    );
}

#[test]
fn a_password_comes_from_a_file_or_from_standard_input_and_is_never_printed() {
    let folder = Folder::new("password");
    let by_stdin = folder.run_with(
        &["add", "alice", "--password-stdin", "--scram"],
        "hunter2\n",
    );
    assert!(by_stdin.status.success());
    folder.add(&["bob"]);
    let no_terminal = folder.fails(&["add", "carol"]);
    assert!(
        no_terminal.contains("--password-file FILE or --password-stdin"),
        "{no_terminal}"
    );
    let empty = folder.run_with(&["add", "carol", "--password-stdin"], "\n");
    assert_eq!(texts(&empty).1, "error: the password is empty\n");
    let store = fs::read_to_string(folder.0.join("store.jsonl")).unwrap();
    assert!(
        !store.contains("hunter2") && !store.contains("secret"),
        "{store}"
    );
    assert_eq!(store.matches("$argon2id$").count(), 2);
    let (printed, _) = folder.run(&["ls"]);
    assert!(printed.contains("argon2id+scram"), "{printed}");
    assert!(!printed.contains("$argon2id$"), "{printed}");
    let before = store;
    folder.run(&["passwd", "bob", "--password-file", "password"]);
    let after = fs::read_to_string(folder.0.join("store.jsonl")).unwrap();
    assert_ne!(before, after);
}

#[test]
fn change_changes_only_the_named_values() {
    let folder = Folder::new("change");
    folder.add(&["alice", "--role", "ops", "--allow", "sub a"]);
    folder.run(&["change", "alice", "--allow", "sub b", "--disabled", "true"]);
    folder.run(&[
        "change",
        "alice",
        "--role",
        "",
        "--group",
        "night",
        "--superuser",
        "true",
    ]);
    assert_eq!(
        folder.listed(),
        [json!({
            "name": "alice", "password": "argon2id", "scram": false, "superuser": true, "disabled": true,
            "roles": [], "groups": ["night"], "rules": ["allow sub a", "allow sub b"],
        })]
    );
    folder.run(&["change", "alice", "--no-rules", "--disabled", "false"]);
    assert_eq!(folder.listed()[0]["rules"], json!([]));
    assert_eq!(folder.listed()[0]["disabled"], json!(false));
    folder.run(&["change", "alice", "--role", "a", "--no-groups"]);
    assert_eq!(folder.listed()[0]["groups"], json!([]));
    folder.run(&["change", "alice", "--no-roles"]);
    assert_eq!(folder.listed()[0]["roles"], json!([]));
    let said = folder.fails(&["change", "alice"]);
    assert!(said.starts_with("error: nothing to change"), "{said}");
}

#[test]
fn lists_have_every_form_and_are_filtered_and_sorted() {
    let folder = Folder::new("lists");
    folder.add(&[
        "alice", "--role", "ops", "--allow", "sub a", "--deny", "pub b",
    ]);
    folder.add(&["bob", "--superuser"]);
    folder.run(&["roles", "set", "ops", "--allow", "sub #"]);
    folder.run(&["groups", "set", "night", "--role", "ops"]);
    let listed = |line: &str| folder.run(&line.split(' ').collect::<Vec<_>>()).0;
    assert_eq!(
        listed("ls"),
        "NAME   PASSWORD  STATE      ROLES  GROUPS  RULES\n\
         alice  argon2id  -          ops    -       deny pub b; allow sub a\n\
         bob    argon2id  superuser  -      -       -\n\n2 users\n"
    );
    assert_eq!(
        listed("ls --sort name --reverse --columns name,superuser -o csv"),
        "name,superuser\nbob,true\nalice,false\n"
    );
    assert_eq!(
        listed("ls --filter roles=ops --columns name -o jsonl"),
        "{\"name\":\"alice\"}\n"
    );
    assert_eq!(
        listed("ls --filter lic --columns name -o yaml"),
        "- name: \"alice\"\n"
    );
    assert_eq!(
        listed("roles ls"),
        "NAME  RULES\nops   allow sub #\n\n1 role\n"
    );
    assert_eq!(
        listed("groups ls -o wide"),
        "NAME   ROLES  RULES\nnight  ops    -\n\n1 group\n"
    );
    let said = folder.fails(&["ls", "--sort", "nam"]);
    assert!(
        said.contains("users have no nam; did you mean name?"),
        "{said}"
    );
}

#[test]
fn rm_removes_all_of_them_or_none() {
    let folder = Folder::new("rm");
    for name in ["alice", "bob"] {
        folder.add(&[name]);
    }
    let said = folder.fails_with(3, &["rm", "alice", "bobb"]);
    assert_eq!(
        said,
        "error: there is no user 'bobb'; did you mean 'bob'?\n"
    );
    assert_eq!(folder.listed().len(), 2);
    let said = folder.run(&["rm", "alice", "bob"]).1;
    assert_eq!(
        said,
        "removed 2 users; a broker that runs disconnects their clients\n"
    );
    assert_eq!(folder.run(&["ls"]).0, "0 users\n");
}

#[test]
fn import_takes_the_users_of_others() {
    let folder = Folder::new("import");
    fs::write(folder.0.join("passwd"), PASSWD).unwrap();
    folder.add(&["bob", "--role", "ops"]);
    let said = folder.run(&["import", "passwd", "--format", "mosquitto"]).1;
    assert_eq!(said, "imported 2 users: 1 new, 1 replaced\n");
    let csv = "user_id,password_hash,salt,is_superuser\n\
        carol,96d1d6fd3676b1d199e85516233edbfc74c98dd9253ec9b940cda372f96ff74a,s4lt,true\n";
    let csv = folder.run_with(&["import", "-", "--format", "emqx-csv"], csv);
    assert!(csv.status.success(), "{}", texts(&csv).1);
    let listed = folder.listed();
    let users: Vec<(&Value, &Value)> = listed
        .iter()
        .map(|user| (&user["name"], &user["password"]))
        .collect();
    assert_eq!(
        users,
        [
            (&json!("alice"), &json!("mosquitto-sha512")),
            (&json!("bob"), &json!("mosquitto-pbkdf2")),
            (&json!("carol"), &json!("salted-sha256")),
        ]
    );
    assert_eq!(
        (&listed[1]["roles"], &listed[2]["superuser"]),
        (&json!(["ops"]), &json!(true))
    );
    fs::copy(folder.0.join("store.jsonl"), folder.0.join("other.jsonl")).unwrap();
    folder.run(&["rm", "alice", "bob"]);
    let said = folder
        .run(&["import", "other.jsonl", "--format", "jsonl"])
        .1;
    assert_eq!(said, "imported 3 users: 2 new, 1 replaced\n");
    fs::write(folder.0.join("passwd"), "alice:hunter2\n").unwrap();
    let said = folder.fails(&["import", "passwd", "--format", "mosquitto"]);
    assert!(
        said.starts_with("error: passwd: line 1: no known password hash"),
        "{said}"
    );
    assert!(!said.contains("hunter2"));
}

#[test]
fn invalid_changes_are_refused_and_change_nothing() {
    let folder = Folder::new("refused");
    folder.add(&["alice"]);
    let line = |rest: &[&str]| {
        [&["add"], rest, &["--password-file", "password"]]
            .concat()
            .join("|")
    };
    let add = |rest: &[&str]| folder.fails(&line(rest).split('|').collect::<Vec<_>>());
    let taken = folder.fails_with(6, &line(&["alice"]).split('|').collect::<Vec<_>>());
    assert!(taken.contains("there is a user 'alice' already"), "{taken}");
    assert!(add(&["b", "--allow", "everything"]).contains("rule \"allow everything\": user b: "));
    assert!(add(&["b", "--role", ""]).contains("a name is empty"));
    assert!(add(&["b\n"]).contains("control characters"));
    assert!(
        folder
            .fails_with(3, &["roles", "rm", "ops"])
            .contains("there is no role \"ops\"")
    );
    assert!(
        folder
            .fails_with(3, &["passwd", "bob"])
            .contains("thrum users add bob adds it")
    );
    assert_eq!(folder.listed().len(), 1);
    fs::write(folder.0.join("store.jsonl"), "{\"user\":1}\n").unwrap();
    let said = add(&["b"]);
    assert!(
        said.contains("store.jsonl:1: a value of the wrong kind"),
        "{said}"
    );
}

#[test]
fn the_store_is_found_by_data_directory_and_configuration() {
    let folder = Folder::new("place");
    fs::create_dir(folder.0.join("data")).unwrap();
    fs::write(folder.0.join("thrum.toml"), "node.data_dir = \"data\"\n").unwrap();
    let run = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_thrum"))
            .arg("users")
            .args(args)
            .current_dir(&folder.0)
            .output()
            .unwrap();
        texts(&output)
    };
    run(&[
        "add",
        "alice",
        "--data-dir",
        "data",
        "--password-file",
        "password",
    ]);
    assert!(folder.0.join("data/users.jsonl").exists());
    assert!(run(&["ls", "-c", "thrum.toml"]).0.contains("alice"));
    fs::write(
        folder.0.join("thrum.toml"),
        "auth.users = \"other.jsonl\"\n",
    )
    .unwrap();
    run(&[
        "add",
        "bob",
        "-c",
        "thrum.toml",
        "--password-file",
        "password",
    ]);
    assert!(folder.0.join("other.jsonl").exists());
    let (_, said) = run(&[
        "add",
        "bob",
        "--data-dir",
        "missing/deeper",
        "--password-file",
        "password",
    ]);
    assert!(
        said.contains("there is no directory missing/deeper; make it first"),
        "{said}"
    );
    let (_, said) = run(&[
        "add",
        "bob",
        "--data-dir",
        "new",
        "--password-file",
        "password",
    ]);
    assert!(said.contains("made the directory new"), "{said}");
    assert!(folder.0.join("new/users.jsonl").exists());
}
