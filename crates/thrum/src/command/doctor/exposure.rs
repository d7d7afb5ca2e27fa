//! Who can reach what: listeners without TLS, clients without user, the dashboard; no I/O.

use thrum_settings::Anonymous;

use super::finding::Finding;

/// What a deployment shows to others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Exposure {
    pub(super) listeners: Vec<Door>,
    pub(super) anonymous: Anonymous,
    /// There is a user, or a backend that knows some.
    pub(super) has_users: bool,
    /// There is an administrator; none if it is not known.
    pub(super) has_administrator: Option<bool>,
}

/// A listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Door {
    pub(super) name: String,
    /// An address that other machines reach; none if there is none.
    pub(super) open_address: Option<String>,
    pub(super) is_tls: bool,
    /// It is that of the dashboard.
    pub(super) is_http: bool,
}

/// Judges it.
pub(super) fn check(exposure: &Exposure) -> Vec<Finding> {
    let mut findings = Vec::new();
    for door in &exposure.listeners {
        findings.extend(plain(door));
    }
    let is_open = |is_http| {
        let mut doors = exposure.listeners.iter();
        doors.any(|door| door.is_http == is_http && door.open_address.is_some())
    };
    findings.push(anonymous(exposure, is_open(false)));
    findings.extend(administrator(exposure, is_open(true)));
    findings
}

fn plain(door: &Door) -> Option<Finding> {
    let Door { name, is_tls, .. } = door;
    let address = door.open_address.as_deref()?;
    if *is_tls {
        let words = format!("{name} ({address}) is inside TLS");
        return Some(Finding::ok("exposure", words));
    }
    let what = format!("{name} is reached at {address} without TLS");
    let certificate = format!("listeners.{name}.tls.cert and listeners.{name}.tls.key");
    if door.is_http {
        return Some(Finding::fail(
            "exposure",
            what,
            "passwords of administrators and API keys are readable on the way",
            format!(
                "set {certificate}, or listeners.{name}.bind = \"localhost:8080\" behind a proxy with TLS"
            ),
        ));
    }
    Some(Finding::warn(
        "exposure",
        what,
        "passwords and messages are readable on the way",
        format!("set {certificate}, or listeners.{name}.bind = \"localhost:1883\""),
    ))
}

fn anonymous(exposure: &Exposure, is_open: bool) -> Finding {
    const CHECK: &str = "anonymous";
    match exposure.anonymous {
        Anonymous::Allow if is_open => Finding::fail(
            CHECK,
            "every client that reaches the broker may connect, without user and password",
            "anyone in the network can read and send messages",
            "auth.anonymous = false, and thrum users add NAME",
        ),
        Anonymous::Deny if !exposure.has_users => Finding::fail(
            CHECK,
            "no client can connect: there is no user and no backend that knows some",
            "auth.anonymous is false",
            "thrum users add NAME",
        ),
        Anonymous::Allow => Finding::ok(CHECK, "clients without user come from this machine only"),
        Anonymous::Loopback => Finding::ok(CHECK, "only clients of this machine need no user"),
        Anonymous::Deny => Finding::ok(CHECK, "every client needs a user"),
    }
}

fn administrator(exposure: &Exposure, is_open: bool) -> Option<Finding> {
    const CHECK: &str = "administrator";
    if exposure.has_administrator? {
        return Some(Finding::ok(CHECK, "there is one"));
    }
    let what = "there is none";
    let cure = "thrum admin setup-url on this machine, while the broker runs, makes the link for the first one";
    if is_open {
        return Some(Finding::warn(
            CHECK,
            what,
            "whoever has the setup link, which is in the log of the first start, becomes administrator",
            cure,
        ));
    }
    Some(Finding::ok(CHECK, format!("{what} yet; {cure}")))
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn door(name: &str, is_tls: bool, is_http: bool) -> Door {
        Door {
            name: name.to_owned(),
            open_address: Some("0.0.0.0:1".to_owned()),
            is_tls,
            is_http,
        }
    }

    fn levels(exposure: &Exposure) -> Vec<(&'static str, Level)> {
        let findings = check(exposure);
        findings.iter().map(|one| (one.check, one.level)).collect()
    }

    #[test]
    fn a_door_without_tls_is_found_only_if_others_reach_it() {
        let mut mqtt = door("mqtt", false, false);
        let exposure = |door: &Door| Exposure {
            listeners: vec![door.clone()],
            ..Exposure::default()
        };
        assert_eq!(levels(&exposure(&mqtt))[0], ("exposure", Level::Warn));
        assert_eq!(
            levels(&exposure(&door("http", false, true)))[0],
            ("exposure", Level::Fail)
        );
        assert_eq!(
            levels(&exposure(&door("mqtts", true, false)))[0],
            ("exposure", Level::Ok)
        );
        mqtt.open_address = None;
        assert_eq!(levels(&exposure(&mqtt)), [("anonymous", Level::Ok)]);
    }

    #[test]
    fn clients_without_user_are_found_where_others_reach_them() {
        let mut exposure = Exposure {
            listeners: vec![door("mqtts", true, false)],
            anonymous: Anonymous::Allow,
            ..Exposure::default()
        };
        assert_eq!(levels(&exposure)[1], ("anonymous", Level::Fail));
        exposure.anonymous = Anonymous::Deny;
        assert_eq!(levels(&exposure)[1], ("anonymous", Level::Fail));
        exposure.has_users = true;
        assert_eq!(levels(&exposure)[1], ("anonymous", Level::Ok));
        exposure.anonymous = Anonymous::Allow;
        exposure.listeners.clear();
        assert_eq!(levels(&exposure)[0], ("anonymous", Level::Ok));
    }

    #[test]
    fn no_administrator_matters_if_others_reach_the_dashboard() {
        let mut exposure = Exposure {
            listeners: vec![door("http", true, true)],
            has_administrator: Some(false),
            ..Exposure::default()
        };
        let last = |exposure: &Exposure| *levels(exposure).last().unwrap();
        assert_eq!(last(&exposure), ("administrator", Level::Warn));
        exposure.has_administrator = Some(true);
        assert_eq!(last(&exposure), ("administrator", Level::Ok));
        exposure.listeners.clear();
        exposure.has_administrator = Some(false);
        assert_eq!(last(&exposure), ("administrator", Level::Ok));
    }
}
