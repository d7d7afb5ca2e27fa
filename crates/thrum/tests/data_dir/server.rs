//! The commands beside a real broker, and on its data afterwards.

use std::io::{BufRead, BufReader};
use std::process::Child;

use serde_json::json;

use crate::folder::Folder;

/// A broker on a data directory; killed at the end, as a crash would.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: String,
}

impl Server {
    pub(crate) fn start(folder: &Folder, data: &str) -> Self {
        Self::start_with(folder, data, None)
    }

    /// With variables of the environment.
    pub(crate) fn start_with<'a>(
        folder: &Folder,
        data: &str,
        variables: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let line = format!("serve --dev --workers 2 --listen 127.0.0.1:0 --data-dir {data}");
        let mut child = folder.start_with(&line, variables);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.map_while(Result::ok).find_map(|line| {
            let (_, address) = line.split_once("mqtt://127.0.0.1:")?;
            Some(address.split_whitespace().next()?.to_owned())
        });
        let port = address.expect("it says where it listens");
        Self { child, port }
    }

    pub(crate) fn publish(&self, folder: &Folder, arguments: &str) {
        folder.printed(&format!("pub -p {} -q 2 {arguments}", self.port));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn a_backup_of_a_running_broker_starts_as_another_one() {
    let folder = Folder::empty("server");
    let server = Server::start(&folder, "data");
    let keep = format!("sub -p {} -i keeper -c -q 2 -t kept/#", server.port);
    folder.printed(&format!("{keep} -E"));
    server.publish(&folder, "-t kept/1 -m one");
    server.publish(&folder, "-t here -r -m retained");
    folder.printed("backup create b.tar --data-dir data");
    server.publish(&folder, "-t kept/2 -m two");
    folder.check_fails(
        "sessions purge keeper -y --data-dir data",
        2,
        "error: the data directory data/state is in use by another broker; stop that one or name another directory\n",
    );
    folder.printed("backup restore b.tar --data-dir again");
    let copy = Server::start(&folder, "again");
    let take = format!("sub -p {} -i keeper -c -q 2 -t kept/#", copy.port);
    assert_eq!(folder.printed(&format!("{take} -C 1")), "one\n");
    let here = format!("sub -p {} -t here -C 1", copy.port);
    assert_eq!(folder.printed(&here), "retained\n");
    drop(server);
    let left = folder.json("sessions ls --data-dir data --json");
    let ids: Vec<_> = left.iter().map(|row| row["client_id"].clone()).collect();
    assert_eq!(
        ids,
        [json!("keeper")],
        "the node's own messages are not listed"
    );
    assert_eq!(left[0]["queued"], json!(2));
}

#[cfg(not(feature = "management"))]
#[test]
fn a_broker_without_the_management_interface_makes_no_control_socket() {
    let folder = Folder::empty("no-management");
    let server = Server::start(&folder, "data");
    server.publish(&folder, "-t here -m taken");
    assert!(!folder.path("data/control.sock").exists());
}
