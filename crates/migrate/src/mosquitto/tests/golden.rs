//! Realistic complete configurations: a person has reviewed the results.

use super::*;

/// Set to write the files instead of comparing them.
const UPDATE: &str = "UPDATE_DOCS";

fn check_file(name: &str, files: &[(&str, &str)]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/mosquitto/tests/golden");
    let text = std::fs::read_to_string(folder.join(format!("{name}.conf"))).unwrap();
    let main = Source::new(PathBuf::from("/etc/mosquitto/mosquitto.conf"), text);
    let imported = import(&main, &Memory::of(files)).unwrap();
    for (kind, fresh) in [
        ("toml", imported.toml.clone()),
        ("txt", imported.report.to_string()),
    ] {
        let path = folder.join(format!("{name}.{kind}"));
        if std::env::var_os(UPDATE).is_some() {
            std::fs::write(&path, &fresh).unwrap();
        }
        let reviewed = std::fs::read_to_string(&path).unwrap();
        assert_eq!(
            fresh, reviewed,
            "{name}.{kind}: {UPDATE}=1 cargo test -p thrum-migrate golden"
        );
    }
    let lines = imported.toml.lines().count();
    assert_eq!(imported.origins.len(), lines, "each line has its origin");
}

#[test]
fn a_broker_at_home() {
    check_file("home", &[("/mosquitto/config/passwd", "")]);
}

#[test]
fn tls_websocket_and_an_acl() {
    check_file("tls", &[]);
}

#[test]
fn listeners_with_security_of_their_own() {
    check_file("per_listener", &[]);
}

#[test]
fn a_configuration_in_parts_with_a_bridge() {
    let files = [
        (
            "/etc/mosquitto/conf.d/10-listener.conf",
            "listener 1883\nallow_anonymous false\n",
        ),
        (
            "/etc/mosquitto/conf.d/20-passwords.conf",
            "password_file /etc/mosquitto/passwd\n",
        ),
        (
            "/etc/mosquitto/conf.d/30-bridge.conf",
            "connection cloud\naddress broker.example.com:8883\ntopic site/# out 1\n\
             remote_username site\nremote_password geheim\nbridge_cafile /etc/ssl/certs/ca.pem\n",
        ),
        ("/etc/mosquitto/passwd", ""),
    ];
    check_file("parts", &files);
}

#[test]
fn a_file_that_breaks_off_anywhere_is_converted_or_refused() {
    let texts = [
        include_str!("golden/home.conf"),
        include_str!("golden/per_listener.conf"),
    ];
    for text in texts {
        for (end, _) in text.char_indices() {
            let line = text[..end].lines().count();
            let Err(problems) = import_with(&text[..end], &[]) else {
                continue;
            };
            // An error in a truncated valid file is at its end, or is a key that comes
            // later.
            let last = problems.to_string();
            let is_last = last.contains(&format!(":{line}:")) || last.contains("keyfile");
            assert!(is_last, "{}\n{last}", &text[..end]);
        }
    }
}
