//! Plans whose payloads come from files.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use thrum_load::payload::PAYLOAD_BYTES_MAX;
use thrum_load::plan::{Plan, PlanError};
use thrum_load::scenario::Scenario;

/// Plans a scenario; each file with a payload is read once.
///
/// # Errors
/// A topic or filter that MQTT does not allow, or a payload that cannot be made.
pub fn plan(scenario: Scenario, run_tag: &str) -> Result<Plan, PlanError> {
    Plan::new(scenario, run_tag, &read)
}

/// One byte more than the longest payload reveals a longer file.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut file = File::open(path)?.take(u64::from(PAYLOAD_BYTES_MAX) + 1);
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A file that is removed when the test is over.
    struct Fixture(PathBuf);

    impl Fixture {
        fn new(name: &str, bytes: usize) -> Self {
            let name = format!("thrum-payload-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::write(&path, vec![b'x'; bytes]).unwrap();
            Self(path)
        }
    }

    impl Drop for Fixture {
        fn drop(&mut self) {
            std::fs::remove_file(&self.0).unwrap();
        }
    }

    fn planned(path: &Path) -> Result<Plan, PlanError> {
        let mut scenario = thrum_load::scenario::find("p2p-1K").unwrap();
        for group in &mut scenario.groups {
            if let Some(publish) = &mut group.publish {
                publish.payload = thrum_load::scenario::PayloadSpec::File(path.to_owned());
            }
        }
        plan(scenario, "t")
    }

    #[test]
    fn a_payload_is_read_from_its_file() {
        let file = Fixture::new("short", 100);
        assert_eq!(planned(&file.0).unwrap().payload_bytes(), Some(100));
    }

    #[test]
    fn a_file_that_is_too_long_or_missing_is_refused() {
        let file = Fixture::new("long", 16 * 1024 * 1024 + 5);
        assert_eq!(read(&file.0).unwrap().len(), 16 * 1024 * 1024 + 1);
        let error = planned(&file.0).unwrap_err().to_string();
        assert!(error.contains("longer than 16777216 bytes"), "{error}");
        let missing = file.0.with_extension("gone");
        let error = planned(&missing).unwrap_err().to_string();
        assert!(error.contains(".gone: "), "{error}");
    }
}
