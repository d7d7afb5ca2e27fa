//! The process that listens on a port of this machine.

use std::fs;

use super::accounts;
use super::tree::{numbered, process_folder};
use crate::kernel_text;

/// The kernel lists listening sockets first, 150 bytes each: this is room for 7 000 of them.
const TABLE_BYTES_MAX: u64 = 1024 * 1024;

/// The process that listens on a TCP port, or on a UDP port if none does; of a parent and its
/// children the parent.
///
/// Reads the open files of every process: tens of milliseconds on a machine with many connections.
pub fn listening_process(port: u16) -> Option<u32> {
    holder(port, ["/proc/net/tcp", "/proc/net/tcp6"], accounts::LISTENS).or_else(|| {
        holder(
            port,
            ["/proc/net/udp", "/proc/net/udp6"],
            accounts::UNCONNECTED,
        )
    })
}

fn holder(port: u16, tables: [&str; 2], state: &str) -> Option<u32> {
    let mut sockets = Vec::new();
    for table in tables {
        let text = kernel_text::read_up_to(table, TABLE_BYTES_MAX).unwrap_or_default();
        sockets.extend(accounts::listening_sockets(&text, port, state));
    }
    let wanted: Vec<String> = sockets
        .iter()
        .map(|socket| format!("socket:[{socket}]"))
        .collect();
    if wanted.is_empty() {
        return None;
    }
    let holders = numbered(std::path::Path::new("/proc")).into_iter();
    // A child that inherits the socket is younger than its parent.
    holders.filter(|pid| holds_any(*pid, &wanted)).min()
}

fn holds_any(pid: u32, wanted: &[String]) -> bool {
    let Ok(files) = fs::read_dir(process_folder(pid).join("fd")) else {
        return false;
    };
    files.flatten().any(|file| {
        let link = fs::read_link(file.path()).unwrap_or_default();
        link.to_str()
            .is_some_and(|link| wanted.iter().any(|socket| socket == link))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listener_of_a_port_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(listening_process(port), Some(std::process::id()));
        drop(listener);
        assert_eq!(listening_process(port), None);
    }

    #[test]
    fn the_process_that_receives_udp_is_found_as_well() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        assert_eq!(listening_process(port), Some(std::process::id()));
    }
}
