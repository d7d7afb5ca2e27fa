//! The answers to the broker.

use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::mpsc;

use thrum_access::{Admission, Denial, Method, Secret};
use thrum_codec::{ReasonCode, Version};

use super::fake::{Fake, Says};
use super::link::Link;
use super::progress::Progress;
use super::*;
use crate::config::{Anonymous, DefaultAccess};
use crate::users::{Group, LockedStore, PasswordHash, Role, RuleList, User};

fn login(username: Option<&str>, password: Option<&str>) -> Login {
    Login {
        identity: Identity {
            client_id: "c1".into(),
            username: username.map(Into::into),
            address: Some(IpAddr::from([192, 0, 2, 7])),
            listener: "mqtt".into(),
            ..Identity::default()
        },
        is_username_verified: false,
        is_known_there: false,
        password: password.map(Secret::from),
        version: Version::V5,
        method: None,
    }
}

fn chain(says: &[Says]) -> Chain {
    let links = says.iter().map(|says| {
        let fake = Arc::new(Fake::new("fake", *says));
        Arc::new(Link::new(fake, Arc::default()))
    });
    Chain {
        links: links.collect(),
        anonymous: Anonymous::Deny,
        timeout: Duration::from_millis(20),
    }
}

/// Reason of a denial; none if admitted.
async fn reason(says: &[Says]) -> Option<ReasonCode> {
    let decided = chain(says)
        .login(&login(Some("alice"), Some("secret")))
        .await;
    decided.err().map(|denial| denial.reason)
}

#[tokio::test]
async fn the_first_backend_with_a_verdict_decides() {
    use Says::{Allow, Deny, Ignore};
    let denied = Some(ReasonCode::BadUserNameOrPassword);
    assert_eq!(reason(&[Allow, Deny]).await, None);
    assert_eq!(reason(&[Deny, Allow]).await, denied);
    assert_eq!(reason(&[Ignore, Ignore, Allow]).await, None);
    assert_eq!(reason(&[Ignore]).await, denied);
    assert_eq!(reason(&[]).await, denied);
}

#[tokio::test]
async fn a_login_that_is_told_names_the_answer_of_each_backend_that_was_asked() {
    use Says::{Allow, Deny, Ignore, Nothing, Unreachable};
    use StepVerdict::{Accepted, Failed, NotAsked, NotResponsible, Refused};
    let told = async |says: &[Says], login: Login| {
        let progress = Progress::told();
        let decided = chain(says).login_told(&login, &progress).await;
        let steps = progress.into_steps().into_iter();
        let verdicts: Vec<StepVerdict> = steps.map(|step| step.verdict).collect();
        (decided.is_ok(), verdicts)
    };
    let alice = || login(Some("alice"), Some("secret"));
    for (says, is_admitted, steps) in [
        (
            &[Ignore, Allow, Deny][..],
            true,
            &[NotResponsible, Accepted][..],
        ),
        (&[Deny, Allow], false, &[Refused]),
        (
            &[Ignore, Unreachable, Allow],
            false,
            &[NotResponsible, Failed],
        ),
        (&[Ignore, Nothing, Allow], false, &[NotResponsible, Failed]),
        (&[], false, &[]),
    ] {
        assert_eq!(told(says, alice()).await, (is_admitted, steps.to_vec()));
    }
    let mut verified = alice();
    verified.is_username_verified = true;
    assert_eq!(told(&[Deny], verified).await, (true, vec![NotAsked]));
}

#[tokio::test]
async fn a_backend_without_answer_denies_and_the_next_one_is_not_asked() {
    use Says::{Allow, Ignore, Nothing, Overloaded, Unreachable};
    let unavailable = Some(ReasonCode::ServerUnavailable);
    assert_eq!(reason(&[Unreachable, Allow]).await, unavailable);
    assert_eq!(reason(&[Ignore, Unreachable]).await, unavailable);
    assert_eq!(
        reason(&[Overloaded, Allow]).await,
        Some(ReasonCode::ServerBusy)
    );
    let slow = chain(&[Ignore, Nothing, Allow]);
    let denial = slow.login(&login(Some("alice"), None)).await.unwrap_err();
    assert_eq!(denial.reason, ReasonCode::ServerUnavailable);
    let counts = |index: usize| slow.links[index].counts();
    assert_eq!((counts(0).ignored, counts(0).errors), (1, 0));
    assert_eq!((counts(1).errors, counts(1).timeouts), (1, 1));
    assert_eq!(counts(2), BackendCounts::default());
}

#[tokio::test]
async fn a_backend_whose_library_panics_has_no_answer() {
    use Says::{Allow, Ignore, Panic};
    let chain = chain(&[Ignore, Panic, Allow]);
    for failures in 1..3 {
        let login = login(Some("alice"), Some("secret"));
        let denial = chain.login(&login).await.unwrap_err();
        assert_eq!(denial.reason, ReasonCode::ServerUnavailable);
        assert_eq!(chain.links[1].counts().errors, failures);
    }
    let refreshed = chain.links[1].refresh(&Identity::default()).await;
    assert!(matches!(
        refreshed,
        Err(crate::backend::BackendError::Panicked(_))
    ));
}

#[tokio::test]
async fn a_service_that_cannot_answer_allows_nothing() {
    use Says::{Allow, Deny, Ignore, Nothing, Panic, Unreachable};
    let question = Question {
        identity: Arc::default(),
        is_publish: true,
        topic: "a".into(),
        qos: thrum_codec::QoS::AtMostOnce,
        retain: false,
    };
    for (says, expected) in [
        (&[Ignore, Allow][..], Some(true)),
        (&[Deny, Allow], Some(false)),
        (&[Ignore], None),
        (&[Unreachable, Allow], Some(false)),
        (&[Nothing, Allow], Some(false)),
        (&[Panic, Allow], Some(false)),
    ] {
        assert_eq!(chain(says).authorize(&question).await, expected, "{says:?}");
    }
}

#[tokio::test]
async fn anonymous_clients_are_admitted_by_the_rule_of_the_listener() {
    let from = |address: Option<[u8; 4]>| {
        let mut login = login(None, None);
        login.identity.address = address.map(IpAddr::from);
        login
    };
    for (anonymous, local, stranger) in [
        (Anonymous::Loopback, true, false),
        (Anonymous::Allow, true, true),
        (Anonymous::Deny, false, false),
    ] {
        let chain = Chain {
            anonymous,
            ..chain(&[Says::Ignore])
        };
        let admits = async |login: &Login| chain.login(login).await.is_ok();
        assert_eq!(admits(&from(Some([127, 0, 0, 1]))).await, local);
        assert_eq!(admits(&from(None)).await, local, "over a Unix socket");
        assert_eq!(admits(&from(Some([192, 0, 2, 7]))).await, stranger);
        assert!(!admits(&login(Some("alice"), None)).await);
        assert!(!admits(&login(None, Some("secret"))).await);
    }
    let denial = chain(&[]).login(&login(None, None)).await.unwrap_err();
    assert_eq!(denial.reason, ReasonCode::NotAuthorized);
}

/// A service over a user store of its own.
struct Service {
    service: Arc<AuthService>,
    settings: Settings,
}

impl Service {
    fn start(name: &str, fill: impl FnOnce(&mut crate::users::UserStore)) -> Self {
        let folder = std::env::temp_dir().join(format!("thrum-auth-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let settings = Settings {
            data_dir: folder,
            ..Settings::default()
        };
        let service = Self {
            service: AuthService::start(&settings).unwrap(),
            settings,
        };
        service.change(fill);
        service
    }

    /// Changes the store, and checks it as the service does every second.
    fn change(&self, change: impl FnOnce(&mut crate::users::UserStore)) {
        let file = self.settings.users_file().unwrap();
        let mut locked = LockedStore::open(&file).unwrap();
        change(&mut locked.store);
        locked.save().unwrap();
        self.service.shared.look();
    }

    fn login(&self, login: Login) -> Answer {
        let (answers, answer) = mpsc::channel();
        let reply = Box::new(move |answer| answers.send(answer).unwrap());
        self.service.login(login, reply);
        answer.recv().unwrap()
    }

    fn admit(&self, login: Login) -> Admission {
        match self.login(login) {
            Answer::Admit(admission) => *admission,
            other => panic!("{other:?}"),
        }
    }

    fn deny(&self, login: Login) -> Denial {
        denial(self.login(login))
    }

    fn step(&self, exchange: Exchange, data: &[u8]) -> Answer {
        let (answers, answer) = mpsc::channel();
        let reply = Box::new(move |answer| answers.send(answer).unwrap());
        self.service.step(exchange, data.to_vec(), reply);
        answer.recv().unwrap()
    }

    fn refresh(&self, identity: &Identity) -> Answer {
        let (answers, answer) = mpsc::channel();
        let reply = Box::new(move |answer| answers.send(answer).unwrap());
        self.service.refresh(Arc::new(identity.clone()), reply);
        answer.recv().unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.settings.data_dir).unwrap();
    }
}

fn denial(answer: Answer) -> Denial {
    match answer {
        Answer::Deny(denial) => denial,
        other => panic!("{other:?}"),
    }
}

/// Cheap, so that tests are fast.
fn password(text: &str) -> Option<PasswordHash> {
    let scheme = crate::hash::Scheme {
        algorithm: crate::hash::Algorithm::Plain,
        ..Default::default()
    };
    PasswordHash::parse(&scheme.stored(text, "").unwrap()).ok()
}

fn rules(text: &str) -> RuleList {
    RuleList::parse(vec![text.to_owned()], "test").unwrap()
}

fn alice() -> User {
    User {
        password: password("secret"),
        groups: vec!["night".into()],
        rules: rules("allow pubsub devices/%c/#"),
        ..User::default()
    }
}

#[test]
fn a_user_is_admitted_with_its_roles_and_rules() {
    let service = Service::start("user", |store| {
        store.set_user("alice", alice());
        let roles = vec!["ops".into()];
        let rules_of_group = rules("allow sub night/#");
        store.set_group(
            "night",
            Group {
                roles,
                rules: rules_of_group,
            },
        );
        store.set_role(
            "ops",
            Role {
                rules: rules("allow sub #"),
            },
        );
    });
    let admission = service.admit(login(Some("alice"), Some("secret")));
    let identity = &admission.identity;
    assert_eq!(identity.username.as_deref(), Some("alice"));
    assert_eq!(identity.roles, ["ops"].map(Box::<str>::from));
    assert_eq!(identity.backend.as_deref(), Some("users"));
    let found: Vec<String> = admission
        .rules
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    let expected = [
        "allow all pubsub devices/%c/#",
        "allow all sub night/#",
        "allow all sub #",
    ];
    assert_eq!(found, expected);
    let counts = service.service.metrics();
    assert_eq!((counts.admitted, counts.denied, counts.pending), (1, 0, 0));
}

#[test]
fn wrong_passwords_and_unknown_users_get_the_same_answer() {
    let service = Service::start("wrong", |store| {
        store.set_user("alice", alice());
        let disabled = User {
            is_disabled: true,
            ..alice()
        };
        store.set_user("bob", disabled);
        store.set_user("carol", User::default());
    });
    for (username, password) in [
        ("alice", Some("wrong")),
        ("alice", None),
        ("nobody", Some("secret")),
        ("bob", Some("secret")),
        ("carol", Some("")),
    ] {
        let denial = service.deny(login(Some(username), password));
        assert_eq!(
            denial.reason,
            ReasonCode::BadUserNameOrPassword,
            "{username}"
        );
        assert_eq!(denial.what, "bad user name or password");
        assert!(!denial.detail.contains("secret"), "{denial:?}");
    }
}

#[test]
fn a_changed_store_is_applied_and_observers_are_called() {
    let service = Service::start("change", |_| {});
    let (changes, changed) = mpsc::channel();
    let tell = move || changes.send(()).unwrap();
    service.service.on_change(Box::new(tell));
    service.change(|store| drop(store.set_user("alice", alice())));
    changed.recv().unwrap();
    assert!(service.service.has_users() && !service.service.has_only_an_empty_store());
    assert!(!service.service.policy().allows_by_default);
    let identity = service.admit(login(Some("alice"), Some("secret"))).identity;

    service.change(|store| store.user_mut("alice").unwrap().is_superuser = true);
    let Answer::Admit(admission) = service.refresh(&identity) else {
        panic!("not admitted");
    };
    assert!(admission.identity.is_superuser);

    service.change(|store| store.user_mut("alice").unwrap().password = password("other"));
    service.deny(login(Some("alice"), Some("secret")));
    service.admit(login(Some("alice"), Some("other")));

    service.change(|store| drop(store.remove_user("alice")));
    let gone = denial(service.refresh(&identity));
    assert_eq!(gone.reason, ReasonCode::NotAuthorized);
    service.deny(login(Some("alice"), Some("other")));
    // Removing the last user must not admit all clients.
    assert!(service.service.has_users());
    assert!(service.service.has_only_an_empty_store());
    assert!(!service.service.policy().allows_by_default);
}

#[test]
fn a_store_that_was_never_made_is_not_set_up() {
    let service = Service::start("none", |_| {});
    std::fs::remove_file(service.settings.users_file().unwrap()).unwrap();
    let fresh = AuthService::start(&service.settings).unwrap();
    assert!(!fresh.has_users());
    assert!(fresh.policy().allows_by_default);
}

#[test]
fn a_store_that_is_named_and_not_there_does_not_start() {
    let service = Service::start("named", |_| {});
    let file = service.settings.users_file().unwrap();
    let mut settings = Settings::default();
    settings.auth.users.clone_from(&file);
    assert!(AuthService::start(&settings).unwrap().has_users());
    std::fs::remove_file(&file).unwrap();
    let error = AuthService::start(&settings).unwrap_err().to_string();
    assert!(
        error.starts_with("auth.users: there is no file "),
        "{error}"
    );
}

#[test]
fn a_reload_fails_if_the_store_is_gone() {
    let service = Service::start("gone", |store| drop(store.set_user("alice", alice())));
    std::fs::remove_file(service.settings.users_file().unwrap()).unwrap();
    let error = service.service.reload(&service.settings).unwrap_err();
    assert!(
        error.to_string().ends_with("users.jsonl is gone"),
        "{error}"
    );
    assert!(service.service.has_users());
    service.admit(login(Some("alice"), Some("secret")));
}

#[test]
fn a_bad_store_leaves_the_old_one_in_force_but_does_not_start() {
    let service = Service::start("bad", |store| drop(store.set_user("alice", alice())));
    // In one step: the service checks by itself too, and a half-written store would be empty.
    let file = service.settings.users_file().unwrap();
    let damaged = file.with_extension("damaged");
    std::fs::write(&damaged, "damaged\n").unwrap();
    std::fs::rename(&damaged, &file).unwrap();
    service.service.shared.look();
    service.admit(login(Some("alice"), Some("secret")));
    let error = service.service.reload(&service.settings).unwrap_err();
    assert!(
        error.to_string().contains("users.jsonl:1: no JSON"),
        "{error}"
    );
    service.admit(login(Some("alice"), Some("secret")));
    assert!(AuthService::start(&service.settings).is_err());
}

#[test]
fn a_certificate_brings_the_roles_of_its_user() {
    let service = Service::start("certificate", |store| {
        store.set_user("alice", alice());
        let disabled = User {
            is_disabled: true,
            ..alice()
        };
        store.set_user("bob", disabled);
    });
    let verified = |username: &str| Login {
        is_username_verified: true,
        is_known_there: false,
        ..login(Some(username), None)
    };
    let known = service.admit(verified("alice"));
    assert!(known.rules.is_some());
    let unknown = service.admit(verified("device-7"));
    assert_eq!(unknown.identity.username.as_deref(), Some("device-7"));
    assert_eq!(
        (unknown.rules, unknown.identity.backend.clone()),
        (None, None)
    );
    service.deny(verified("bob"));
    assert!(matches!(
        service.refresh(&unknown.identity),
        Answer::Unchanged
    ));
}

#[test]
fn without_backends_credentials_mean_nothing() {
    let settings = Settings::default();
    let service = AuthService::start(&settings).unwrap();
    let ask = |login: Login| {
        let (answers, answer) = mpsc::channel();
        let reply = Box::new(move |answer| answers.send(answer).unwrap());
        service.login(login, reply);
        answer.recv().unwrap()
    };
    let mut local = login(Some("alice"), Some("secret"));
    local.identity.address = Some(IpAddr::from([127, 0, 0, 1]));
    let Answer::Admit(admission) = ask(local) else {
        panic!("not admitted");
    };
    assert_eq!(admission.identity.username, None);
    let stranger = denial(ask(login(Some("alice"), Some("secret"))));
    assert_eq!(stranger.reason, ReasonCode::NotAuthorized);
}

#[test]
fn unknown_backend_names_are_reported_together() {
    let mut settings = Settings::default();
    settings.auth.chain = vec!["users".to_owned(), "tokens".to_owned()];
    settings.acl.rules = vec!["allow all pub".to_owned()];
    let error = AuthService::start(&settings).unwrap_err().to_string();
    assert!(error.contains("acl.rules[0]"), "{error}");
    settings.acl.rules.clear();
    let error = AuthService::start(&settings).unwrap_err().to_string();
    assert!(error.contains("set auth.users or node.data_dir"), "{error}");
    assert!(error.contains("auth.chain names \"tokens\""), "{error}");
}

mod scram_login {
    use super::*;
    use thrum_scram::METHOD;
    use thrum_scram::client::{Credentials, Login as Client};

    fn with_method(name: &str, data: &[u8]) -> Login {
        Login {
            method: Some(Method {
                name: name.into(),
                data: Secret::new(data),
            }),
            ..login(None, None)
        }
    }

    fn client(username: &str, password: &str) -> Client {
        let credentials = Credentials::new(username, password.as_bytes()).unwrap();
        credentials.login().unwrap()
    }

    fn challenged(answer: Answer) -> (Vec<u8>, Exchange) {
        match answer {
            Answer::Challenge { data, exchange } => (data, exchange),
            other => panic!("{other:?}"),
        }
    }

    fn service(name: &str) -> Service {
        Service::start(name, |store| {
            let scram = thrum_scram::Credential::of("pencil").ok();
            store.set_user("alice", User { scram, ..alice() });
        })
    }

    #[test]
    fn the_right_password_is_admitted_and_the_server_proves_itself() {
        let service = service("scram");
        let mut client = client("alice", "pencil");
        let (data, exchange) = challenged(service.login(with_method(METHOD, &client.first())));
        let last = client.answer(&data).unwrap();
        let Answer::Admit(admission) = service.step(exchange, &last) else {
            panic!("not admitted");
        };
        assert_eq!(client.finish(&admission.data.unwrap()), Ok(()));
        assert_eq!(admission.identity.username.as_deref(), Some("alice"));
        assert!(admission.rules.is_some());
    }

    #[test]
    fn wrong_password_unknown_user_and_changed_user_are_denied_alike() {
        let service = service("scram-wrong");
        for (username, password) in [("alice", "wrong"), ("nobody", "pencil")] {
            let mut client = client(username, password);
            let (data, exchange) = challenged(service.login(with_method(METHOD, &client.first())));
            let denial = denial(service.step(exchange, &client.answer(&data).unwrap()));
            assert_eq!(denial.reason, ReasonCode::BadUserNameOrPassword);
        }
        let mut client = client("alice", "pencil");
        let (data, exchange) = challenged(service.login(with_method(METHOD, &client.first())));
        service.change(|store| drop(store.remove_user("alice")));
        denial(service.step(exchange, &client.answer(&data).unwrap()));
    }

    #[test]
    fn another_name_than_before_is_refused() {
        let service = service("scram-name");
        let mut client = client("alice", "pencil");
        let mut again = with_method(METHOD, &client.first());
        again.identity.username = Some("bob".into());
        let (data, exchange) = challenged(service.login(again));
        denial(service.step(exchange, &client.answer(&data).unwrap()));
    }

    #[test]
    fn other_methods_are_unknown() {
        let service = service("scram-method");
        for name in ["SCRAM-SHA-1", "PLAIN", ""] {
            let denial = service.deny(with_method(name, b"n,,n=alice,r=x"));
            assert_eq!(denial.reason, ReasonCode::BadAuthenticationMethod);
        }
    }
}

#[test]
fn an_unavailable_backend_answers_a_refresh_with_unavailable_and_not_unchanged() {
    let cache: crate::config::RedisConfig = serde_json::from_value(serde_json::json!({
        "url": "redis://127.0.0.1:1",
        "rules": "HGETALL mqtt_acl:${username}",
    }))
    .unwrap();
    let mut settings = Settings::default();
    settings.auth.redis.insert("cache".to_owned(), cache);
    let service = AuthService::start(&settings).unwrap();
    let identity = Identity {
        username: Some("alice".into()),
        backend: Some("cache".into()),
        ..Identity::default()
    };
    let (answers, answer) = mpsc::channel();
    let reply = Box::new(move |answer| answers.send(answer).unwrap());
    service.refresh(Arc::new(identity), reply);
    let denial = denial(answer.recv().unwrap());
    assert_eq!(denial.reason, ReasonCode::ServerUnavailable);
}

#[test]
fn prepared_settings_are_in_force_once_they_are_applied() {
    let service = Service::start("prepared", |_| {});
    let denying = with_default(&service, DefaultAccess::Deny);
    let allowing = with_default(&service, DefaultAccess::Allow);
    service.service.reload(&denying).unwrap();
    let prepared = service.service.prepare(&allowing).unwrap();
    assert!(!service.service.policy().allows_by_default);
    service.service.put_in_force(prepared);
    assert!(service.service.policy().allows_by_default);
}

fn with_default(service: &Service, default: DefaultAccess) -> Settings {
    let mut settings = service.settings.clone();
    settings.acl.default = default;
    settings
}

#[test]
fn a_policy_stays_until_all_observers_were_called() {
    let service = Service::start("order", |_| {});
    let (told, hears) = mpsc::channel();
    let (go_on, waits) = mpsc::channel::<()>();
    let waits = Mutex::new(waits);
    // The first call, of a reload or of the service's own look at the new store, lasts until the
    // end; no later one waits.
    service.service.on_change(Box::new(move || {
        told.send(()).ok();
        waits.lock().unwrap().recv().ok();
    }));
    let denying = with_default(&service, DefaultAccess::Deny);
    let allowing = with_default(&service, DefaultAccess::Allow);
    let auth = &service.service;
    let wait_for = |default: DefaultAccess| {
        while auth.shared.state().settings.acl.default != default {
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| auth.reload(&denying).unwrap());
        wait_for(DefaultAccess::Deny);
        hears.recv().unwrap();
        scope.spawn(|| auth.reload(&allowing).unwrap());
        wait_for(DefaultAccess::Allow);
        for _ in 0..1000 {
            assert!(!auth.policy().allows_by_default);
            std::thread::yield_now();
        }
        drop(go_on);
    });
    assert!(auth.policy().allows_by_default);
}

#[test]
fn a_store_that_is_a_link_to_nowhere_is_an_error() {
    let service = Service::start("dangling", |_| {});
    let file = service.settings.users_file().unwrap();
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("nowhere", &file).unwrap();
    let error = AuthService::start(&service.settings).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("is a link that leads nowhere"), "{error}");
}

#[test]
fn a_store_that_is_open_or_empty_is_warned_of() {
    let service = Service::start("warned", |store| {
        store.set_user("alice", alice());
    });
    assert!(service.service.warnings().is_empty());
    let file = service.settings.users_file().unwrap();
    std::fs::write(&file, "").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    let warnings = AuthService::start(&service.settings).unwrap().warnings();
    assert!(warnings[0].contains("every user of this machine may read"));
    assert!(warnings[1].contains("is empty"));
    assert!(warnings[1].contains("acl.default decides what they may do"));
    assert!(warnings[1].contains("to begin anew, stop the broker and remove the file"));
}
