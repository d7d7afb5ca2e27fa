//! Texts of the kernel under `/proc` and `/sys`, read up to a limit.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// More than any account of one process or thread has; of a list that is longer only the beginning
/// counts.
pub(crate) const BYTES_MAX: u64 = 64 * 1024;

/// Most of these texts fit in one page, which is then read in one call.
const BYTES_USUAL: usize = 4096;

/// A whole text, or its first [`BYTES_MAX`]; none if it cannot be read.
pub(crate) fn read(path: impl AsRef<Path>) -> Option<String> {
    read_up_to(path, BYTES_MAX)
}

/// Likewise with another limit.
pub(crate) fn read_up_to(path: impl AsRef<Path>, bytes_max: u64) -> Option<String> {
    let mut bytes = Vec::with_capacity(BYTES_USUAL);
    let file = File::open(path).ok()?;
    file.take(bytes_max).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A setting: one line, its fields separated by single spaces; none if it is empty or not there.
pub(crate) fn setting(path: impl AsRef<Path>) -> Option<String> {
    let text = read(path)?;
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    (!fields.is_empty()).then(|| fields.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_up_to_its_limit() {
        let whole = read("/proc/self/status").unwrap();
        assert!(whole.starts_with("Name:") && whole.len() > 100);
        assert_eq!(
            read_up_to("/proc/self/status", 7).unwrap(),
            whole[..7].to_owned()
        );
        assert_eq!(read("/proc/none/such"), None);
    }

    #[test]
    fn a_setting_is_one_line() {
        let range = setting("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
        assert_eq!(range.split(' ').count(), 2, "{range}");
    }
}
