//! What a scenario of somebody else may not do on this machine.

use super::{FaultKind, PayloadSpec, Scenario};

/// Something that a scenario does on the machine of the generator beside its connections.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReachError {
    /// A fault of kind `hook`.
    #[error("the scenario runs a command on the machine of the generator: take `hook` out of it")]
    Command,
    /// A payload of kind `file:`.
    #[error(
        "group '{group}' sends a file of the machine of the generator: give it another payload"
    )]
    File {
        /// Name of the group.
        group: String,
    },
    /// A password, which the result of the run would contain.
    #[error(
        "group '{group}' has a password, which the result would show: take it out, and give it with the run"
    )]
    Password {
        /// Name of the group.
        group: String,
    },
    /// The same in a URL.
    #[error(
        "the URL of a target has a password, which the result would show: take it out, and give it with the run"
    )]
    PasswordInUrl,
}

/// Checks that a scenario runs no command, reads no file and names no password.
///
/// # Errors
/// The first thing that it does.
pub fn check_confined(scenario: &Scenario) -> Result<(), ReachError> {
    let is_command = |kind: &FaultKind| matches!(kind, FaultKind::Hook { .. });
    if scenario.faults.iter().any(|fault| is_command(&fault.kind)) {
        return Err(ReachError::Command);
    }
    for group in &scenario.groups {
        let payload = group.publish.as_ref().map(|publish| &publish.payload);
        let name = || group.name.clone();
        if matches!(payload, Some(PayloadSpec::File(_))) {
            return Err(ReachError::File { group: name() });
        }
        if group.client.password.is_some() {
            return Err(ReachError::Password { group: name() });
        }
    }
    let mut urls = scenario
        .targets
        .iter()
        .filter_map(|target| target.url.as_deref());
    if urls.any(has_password) {
        return Err(ReachError::PasswordInUrl);
    }
    Ok(())
}

fn has_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    user.is_some_and(|user| user.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::super::{find, load};
    use super::*;

    fn of(toml: &str) -> Result<(), ReachError> {
        check_confined(&load(toml, "x").unwrap().scenarios[0])
    }

    #[test]
    fn a_scenario_that_only_connects_is_confined() {
        assert_eq!(check_confined(&find("devices").unwrap()), Ok(()));
        assert_eq!(
            of("target = \"mqtt://me@h\"\n[groups.a]\nclients = 1"),
            Ok(())
        );
    }

    #[test]
    fn commands_files_and_passwords_are_found() {
        let restart = find("broker-restart").unwrap();
        assert_eq!(check_confined(&restart), Err(ReachError::Command));
        let group = || "a".to_owned();
        let sends = |payload| {
            format!(
                "[groups.a]\nclients = 1\npublish = {{ topic = \"t\", payload = \"{payload}\" }}"
            )
        };
        assert_eq!(of(&sends("16B")), Ok(()));
        assert_eq!(
            of(&sends("file:/etc/hostname")),
            Err(ReachError::File { group: group() })
        );
        assert_eq!(
            of("[groups.a]\nclients = 1\nusername = \"u\"\npassword = \"p\""),
            Err(ReachError::Password { group: group() })
        );
        assert_eq!(
            of("target = \"mqtt://u:p@h:1883\"\n[groups.a]\nclients = 1"),
            Err(ReachError::PasswordInUrl)
        );
    }
}
