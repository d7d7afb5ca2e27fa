//! Refusals and their texts: a missing directory, one in use, an unknown client, a newer version.

use crate::folder::Folder;

/// Every command that reads or writes a data directory.
const LINES: [&str; 7] = [
    "sessions ls",
    "sessions get meter-1",
    "sessions purge --all -y",
    "retained ls",
    "retained export -",
    "retained import -",
    "backup create b.tar",
];

#[test]
fn a_directory_that_is_not_there_is_not_made() {
    let folder = Folder::empty("missing");
    for line in LINES {
        folder.check_fails(
            &format!("{line} --data-dir none"),
            2,
            "error: there is no directory none; name the directory that node.data_dir names\n",
        );
    }
    assert!(!folder.path("none").exists());
    std::fs::create_dir(folder.path("empty")).unwrap();
    for line in LINES {
        folder.check_fails(
            &format!("{line} --data-dir empty"),
            2,
            "error: no broker has kept anything in empty: there is no state in it; name the directory that \
             node.data_dir names\n",
        );
    }
    assert_eq!(std::fs::read_dir(folder.path("empty")).unwrap().count(), 0);
}

#[test]
fn a_directory_in_use_is_read_but_not_changed() {
    let folder = Folder::filled("in-use");
    let broker = folder.open("data");
    let before = folder.state("data");
    let refused = "error: the data directory data/state is in use by another broker; stop that one or name another \
                   directory\n";
    folder.check_fails("sessions purge --all -y --data-dir data", 2, refused);
    folder.check_fails("retained import - --data-dir data", 2, refused);
    folder.printed("backup create b.tar --data-dir data");
    folder.check_fails("backup restore b.tar --data-dir data --force", 2, refused);
    assert!(!folder.path("data/state.restore").exists());
    assert_eq!(folder.json("sessions ls --json --data-dir data").len(), 2);
    folder.printed("sessions get desk --data-dir data");
    assert_eq!(folder.json("retained ls --json --data-dir data").len(), 2);
    assert_eq!(folder.json("retained export - --data-dir data").len(), 2);
    assert_eq!(folder.state("data"), before);
    drop(broker);
}

#[test]
fn an_unknown_client_gets_the_nearest_name_and_nothing_is_removed() {
    let folder = Folder::filled("unknown");
    let near = "error: no session of client 'meter-2' in data; did you mean 'meter-1'?\n";
    folder.check_fails("sessions get meter-2 --data-dir data", 3, near);
    folder.check_fails("sessions purge desk meter-2 -y --data-dir data", 3, near);
    let far =
        "error: no session of client 'x' in data; thrum sessions ls --data-dir data lists them\n";
    folder.check_fails("sessions get x --data-dir data", 3, far);
    assert_eq!(folder.state("data").sessions.len(), 3);
}

#[test]
fn a_directory_of_a_newer_version_is_left_alone() {
    let folder = Folder::filled("newer");
    let segment = folder.segment("data");
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[8] = 2;
    bytes[12..16].fill(0);
    let check = crc32c::crc32c(&bytes[..40]);
    bytes[12..16].copy_from_slice(&check.to_le_bytes());
    std::fs::write(&segment, &bytes).unwrap();
    for line in LINES {
        folder.check_fails(
            &format!("{line} --data-dir data"),
            2,
            "error: data: the data directory has format 2 and this version supports formats up to 1; run the version that \
             wrote it, or name another data directory\n",
        );
    }
    folder.check_fails(
        "serve --dev --listen 127.0.0.1:0 --data-dir data",
        2,
        "error: cannot read the state in data/state: the data directory has format 2 and this version supports formats up \
         to 1; run the version that wrote it, or name another data directory\n",
    );
    assert_eq!(std::fs::read(&segment).unwrap(), bytes);
}

#[test]
fn damage_is_reported_and_the_rest_is_shown() {
    let folder = Folder::filled("damaged");
    let segment = folder.segment("data");
    let mut bytes = std::fs::read(&segment).unwrap();
    let at = bytes.windows(4).position(|text| text == b"desk").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&segment, &bytes).unwrap();
    let output = folder.thrum("sessions ls --data-dir data --json");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.starts_with("warning: data: 1 damaged place ("),
        "{said}"
    );
    assert!(
        said.ends_with(" bytes) left out; the rest is as it was\n"),
        "{said}"
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 1);
    assert_eq!(output.status.code(), Some(0));
}
