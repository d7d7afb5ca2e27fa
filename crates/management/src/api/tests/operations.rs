//! Every operation of the document, by a table: who may use it, how it answers, what it refuses.

use std::collections::BTreeSet;

use super::*;

/// A request that an operation accepts, and the status of its answer.
struct Case {
    operation: &'static str,
    path: &'static str,
    /// JSON; empty without a body.
    body: &'static str,
    status: u16,
}

const fn case(operation: &'static str, path: &'static str, status: u16) -> Case {
    with_body(operation, path, "", status)
}

const fn with_body(
    operation: &'static str,
    path: &'static str,
    body: &'static str,
    status: u16,
) -> Case {
    Case {
        operation,
        path,
        body,
        status,
    }
}

/// A case for each operation, in this order. A new operation needs one.
static CASES: &[Case] = &[
    case("show_status", "/status", 200),
    case("show_metrics", "/metrics", 200),
    case("list_audit", "/audit", 200),
    case("show_openapi", "/openapi.json", 200),
    case("list_clients", "/clients", 200),
    case("count_clients", "/clients/facets", 200),
    case("show_client", "/clients/a", 404),
    case("kick_client", "/clients/a", 404),
    case("end_client_session", "/clients/a/session", 404),
    case("list_client_queue", "/clients/a/queue", 404),
    case("list_client_subscriptions", "/clients/a/subscriptions", 404),
    case("show_client_timeline", "/clients/a/timeline", 404),
    case("trace_packets", "/trace?client=a&seconds=1", 200),
    with_body(
        "explain_publish",
        "/explain/publish",
        r#"{"client_id":"a","topic":"t"}"#,
        404,
    ),
    with_body(
        "explain_subscribe",
        "/explain/subscribe",
        r#"{"client_id":"a","filter":"t"}"#,
        404,
    ),
    with_body(
        "explain_drops",
        "/explain/drops",
        r#"{"client_id":"a"}"#,
        404,
    ),
    case("show_stream", "/stream?figures=all&seconds=1", 200),
    case("show_history", "/history", 404),
    case("list_topics", "/topics", 200),
    case("search_topics", "/topics/search?text=a", 200),
    case("show_topic", "/topics/topic?topic=a", 200),
    case("list_topic_metrics", "/topic-metrics", 200),
    with_body(
        "add_topic_metric",
        "/topic-metrics",
        r#"{"filter":"a"}"#,
        201,
    ),
    case("remove_topic_metric", "/topic-metrics?filter=a", 204),
    case("list_subscriptions", "/subscriptions", 200),
    case("list_groups", "/groups", 200),
    case("list_drops", "/drops", 200),
    case("list_refused_publishes", "/refused-publishes", 200),
    case("list_slow_clients", "/slow", 200),
    with_body("ask_why", "/why", r#"{"seconds":1}"#, 200),
    case("list_retained", "/retained", 200),
    case("show_retained", "/retained/message?topic=a", 404),
    case("remove_retained", "/retained?filter=a", 200),
    case("export_retained", "/retained/export", 200),
    with_body(
        "import_retained",
        "/retained/import",
        r#"{"topic":"a","text":"x"}"#,
        200,
    ),
    with_body("publish_message", "/publish", r#"{"topic":"a"}"#, 200),
    with_body(
        "publish_batch",
        "/publish/batch",
        r#"{"messages":[{"topic":"a"}]}"#,
        200,
    ),
    case("list_bans", "/bans", 200),
    with_body("add_ban", "/bans", r#"{"client_id":"a"}"#, 201),
    with_body("ban_client", "/clients/a/ban", r#"{"reason":"x"}"#, 201),
    case("lift_ban", "/bans?client_id=a", 204),
    case("list_users", "/users", 200),
    with_body("add_user", "/users", r#"{"name":"a"}"#, 201),
    case("show_user", "/users/a", 200),
    with_body("change_user", "/users/a", r#"{"disabled":false}"#, 200),
    with_body(
        "set_user_password",
        "/users/a/password",
        r#"{"password":"x"}"#,
        200,
    ),
    case("remove_user", "/users/a", 200),
    with_body(
        "import_users",
        "/import/users?format=jsonl",
        r#"{"user":"b"}"#,
        200,
    ),
    case("list_roles", "/roles", 200),
    with_body("set_role", "/roles/a", r#"{"rules":[]}"#, 200),
    case("show_role", "/roles/a", 200),
    case("remove_role", "/roles/a", 204),
    case("list_user_groups", "/user-groups", 200),
    with_body("set_user_group", "/user-groups/a", r#"{"roles":[]}"#, 200),
    case("show_user_group", "/user-groups/a", 200),
    case("remove_user_group", "/user-groups/a", 204),
    case("list_rules", "/access/rules", 200),
    with_body(
        "test_access",
        "/access/test",
        r#"{"client_id":"a","action":"publish","topic":"t"}"#,
        200,
    ),
    with_body("test_login", "/access/login-test", r#"{"user":"a"}"#, 200),
    case("list_configuration", "/config", 503),
    case("show_configuration_schema", "/config/schema", 503),
    case("list_configuration_versions", "/config/versions", 503),
    case("show_configuration_key", "/config/node.name", 503),
    with_body(
        "plan_configuration",
        "/config/plan",
        r#"{"changes":{}}"#,
        503,
    ),
    with_body(
        "apply_configuration",
        "/config/apply",
        r#"{"changes":{},"fingerprint":"a"}"#,
        503,
    ),
    with_body(
        "roll_back_configuration",
        "/config/rollback",
        r#"{"version":0}"#,
        503,
    ),
    case("reload_configuration", "/config/reload", 503),
    case("list_listeners", "/listeners", 200),
    case("show_listener", "/listeners/a", 404),
    case("stop_listener", "/listeners/a/stop", 404),
    case("start_listener", "/listeners/a/start", 404),
    case("reload_certificates", "/listeners/reload-certificates", 503),
    case("list_logs", "/logs", 200),
    case("show_log_level", "/logs/level", 503),
    with_body("set_log_level", "/logs/level", r#"{"level":"debug"}"#, 503),
    case("list_alarms", "/alarms", 200),
    case("list_past_alarms", "/alarms/history", 200),
    case("show_node", "/node", 200),
    case("show_storage", "/storage", 200),
    case("show_benchmark_limits", "/benchmarks/limits", 503),
    case("list_benchmark_scenarios", "/benchmarks/scenarios", 503),
    with_body(
        "check_benchmark",
        "/benchmarks/check",
        r#"{"scenario":"devices"}"#,
        503,
    ),
    case("compare_benchmarks", "/benchmarks/compare?runs=a,b", 503),
    case("list_benchmark_runs", "/benchmarks/runs", 503),
    with_body(
        "start_benchmark",
        "/benchmarks/runs",
        r#"{"scenario":"devices"}"#,
        503,
    ),
    case("show_benchmark_run", "/benchmarks/runs/a", 503),
    case("remove_benchmark_run", "/benchmarks/runs/a", 503),
    case("list_benchmark_samples", "/benchmarks/runs/a/samples", 503),
    case("stop_benchmark", "/benchmarks/runs/a/stop", 503),
    with_body(
        "set_benchmark_baseline",
        "/benchmarks/runs/a/baseline",
        r#"{"baseline":true}"#,
        503,
    ),
    case(
        "fetch_benchmark_file",
        "/benchmarks/runs/a/files/report.md",
        503,
    ),
    case("list_backups", "/backups", 503),
    case("make_backup", "/backups", 503),
    case("show_backup", "/backups/a", 503),
    case("fetch_backup", "/backups/a/file", 503),
    case("remove_backup", "/backups/a", 503),
    case("list_administrators", "/admins", 200),
    with_body(
        "add_administrator",
        "/admins",
        r#"{"name":"bob","role":"viewer","password":"correct horse battery"}"#,
        201,
    ),
    with_body(
        "change_administrator",
        "/admins/bob",
        r#"{"disabled":true}"#,
        204,
    ),
    with_body(
        "reset_password",
        "/admins/bob/password",
        r#"{"password":"another long password"}"#,
        204,
    ),
    case("remove_administrator", "/admins/bob", 204),
    case("renew_setup_link", "/setup-link", 409),
    case("list_sessions", "/sessions", 200),
    case("end_session", "/sessions/a", 404),
    case("list_keys", "/keys", 200),
    with_body(
        "add_key",
        "/keys",
        r#"{"label":"a","scopes":["admin"],"expires_secs":null}"#,
        201,
    ),
    case("remove_key", "/keys/a", 404),
    case("show_caller", "/login", 200),
    with_body(
        "log_in",
        "/login",
        r#"{"name":"admin","password":"x"}"#,
        401,
    ),
    with_body(
        "set_up",
        "/login/setup",
        r#"{"token":"a","name":"eve","password":"correct horse battery"}"#,
        403,
    ),
    case("begin_oidc", "/login/oidc", 404),
    case("finish_oidc", "/login/oidc/callback?code=a&state=b", 404),
    with_body(
        "change_password",
        "/login/password",
        r#"{"password":"x","new_password":"another long password"}"#,
        401,
    ),
    with_body("begin_totp", "/login/totp", r#"{"password":"x"}"#, 401),
    with_body(
        "confirm_totp",
        "/login/totp/confirm",
        r#"{"code":"0"}"#,
        400,
    ),
    with_body(
        "remove_totp",
        "/login/totp/remove",
        r#"{"password":"x"}"#,
        401,
    ),
    case("list_own_sessions", "/login/sessions", 200),
    case("end_own_session", "/login/sessions/a", 404),
    case("log_out", "/login", 204),
];

/// An operation of the document with its case.
struct Operation {
    method: Method,
    /// Its path with names of parameters.
    template: String,
    described: Value,
    case: &'static Case,
}

impl Operation {
    /// All of them, in the order of the table.
    fn all(document: &Value) -> Vec<Self> {
        let paths = document["paths"].as_object().unwrap().iter();
        let operations = paths.flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().iter();
            methods.map(move |(method, described)| (path, method, described))
        });
        let found = operations.map(|(path, method, described)| {
            let name = described["operationId"].as_str().unwrap();
            let mut cases = CASES.iter();
            let case = cases.find(|case| case.operation == name);
            Self {
                method: method.to_uppercase().parse().unwrap(),
                template: path.clone(),
                described: described.clone(),
                case: case.unwrap_or_else(|| panic!("{name} is not in the table of this test")),
            }
        });
        let mut found: Vec<Self> = found.collect();
        assert_eq!(
            found.len(),
            CASES.len(),
            "an operation of the table is gone"
        );
        let place = |one: &Self| CASES.iter().position(|case| std::ptr::eq(case, one.case));
        found.sort_by_key(place);
        found
    }

    /// What the caller shows, and the scope that it needs.
    fn needs(&self) -> Needs {
        let schemes = self.described["security"].as_array().unwrap();
        let scope = schemes
            .iter()
            .find_map(|scheme| scheme["api_key"][0].as_str());
        match scope {
            Some(scope) => Needs::Scope(scope.parse().unwrap()),
            None if schemes.is_empty() => Needs::Nothing,
            None if schemes.len() == 1 => Needs::Session,
            None => Needs::Login,
        }
    }

    fn request(&self, client: &Client) -> Request<Body> {
        let request = client.request(self.method.clone(), self.case.path);
        if self.case.body.is_empty() {
            return request.body(Body::empty()).unwrap();
        }
        let request = request.header(CONTENT_TYPE, "application/json");
        request.body(Body::from(self.case.body)).unwrap()
    }

    /// The media types of an answer; none if the document does not have its status.
    fn kinds(&self, document: &Value, status: u16) -> Option<BTreeSet<String>> {
        let answer = self.described["responses"].get(status.to_string())?;
        let answer = match answer["$ref"].as_str() {
            Some(reference) => document.pointer(&reference[1..])?,
            None => answer,
        };
        let kinds = answer["content"].as_object().into_iter().flatten();
        Some(kinds.map(|(kind, _)| kind.clone()).collect())
    }

    fn has_query(&self, name: &str) -> bool {
        let mut parameters = self.described["parameters"]
            .as_array()
            .into_iter()
            .flatten();
        parameters.any(|parameter| parameter["name"] == name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    Login,
    Session,
    Scope(Scope),
}

/// A program with a key of these scopes.
async fn program(api: &TestApi, admin: &Client, scopes: &[&str]) -> Client {
    let body = json!({ "label": "test", "scopes": scopes, "expires_secs": null });
    let made = api.post(admin, "/keys", body).await;
    assert_eq!(made.status, 201, "{}", made.body);
    Client::program("192.0.2.50").with_key(made.body["key"].as_str().unwrap())
}

#[track_caller]
fn assert_problem(answer: &Answer, status: u16, about: &str) {
    let body = &answer.body;
    assert_eq!(answer.status, status, "{about}: {body}");
    let kind = answer.kind.as_deref();
    assert_eq!(kind, Some("application/problem+json"), "{about}");
    assert_eq!(body["status"], status, "{about}");
    for text in ["title", "detail", "remedy"] {
        let text = body[text].as_str().unwrap_or_default();
        assert!(!text.is_empty(), "{about}: {body}");
    }
}

#[tokio::test]
async fn every_operation_answers_as_the_document_says() {
    let api = TestApi::with_users("operations");
    let document = api.document();
    let admin = api.admin().await;
    let key = program(&api, &admin, &["admin"]).await;
    for operation in Operation::all(&document) {
        let name = operation.case.operation;
        let client = match operation.needs() {
            Needs::Session => &admin,
            Needs::Nothing | Needs::Login | Needs::Scope(_) => &key,
        };
        let answer = api.answer(operation.request(client)).await;
        assert_eq!(
            answer.status, operation.case.status,
            "{name}: {}",
            answer.body
        );
        let kinds = operation.kinds(&document, answer.status);
        let kinds = kinds.unwrap_or_else(|| panic!("{name} may answer {}", answer.status));
        match answer.kind {
            Some(kind) => assert!(kinds.contains(&kind), "{name}: {kind}"),
            None => assert!(kinds.is_empty(), "{name}: {kinds:?}"),
        }
    }
}

#[tokio::test]
async fn every_operation_but_those_of_a_login_is_closed_to_strangers() {
    let api = TestApi::with_admin("operations-strangers");
    let stranger = Client::program("192.0.2.9");
    let mut open = Vec::new();
    for operation in Operation::all(&api.document()) {
        let name = operation.case.operation;
        if operation.needs() == Needs::Nothing {
            open.push(name);
            continue;
        }
        // No body: it is not read before.
        let path = operation.case.path;
        let method = operation.method.clone();
        let refused = api.ask(&stranger, method, path, Value::Null).await;
        assert_problem(&refused, 401, name);
        assert_eq!(refused.body["title"], "login needed", "{name}");
    }
    let expected = [
        "show_caller",
        "log_in",
        "set_up",
        "begin_oidc",
        "finish_oidc",
    ];
    assert_eq!(open, expected);
}

#[tokio::test]
async fn every_operation_is_closed_to_keys_without_its_scope() {
    let api = TestApi::with_admin("operations-scopes");
    let admin = api.admin().await;
    for operation in Operation::all(&api.document()) {
        let name = operation.case.operation;
        let (missing, reason) = match operation.needs() {
            Needs::Nothing | Needs::Login => continue,
            Needs::Session => (
                Scope::Admin,
                "only an administrator with a session".to_owned(),
            ),
            Needs::Scope(scope) => (scope, format!("needs the scope {scope}")),
        };
        let all = Scope::ALL.into_iter().map(Scope::name);
        let others = all.filter(|name| *name != missing.name() && *name != "admin");
        let others: Vec<&str> = others.collect();
        let client = program(&api, &admin, &others).await;
        let refused = api.answer(operation.request(&client)).await;
        assert_problem(&refused, 403, name);
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.contains(&reason), "{name}: {detail}");
    }
}

#[tokio::test]
async fn a_path_says_which_methods_it_has() {
    let api = TestApi::with_admin("operations-methods");
    let document = api.document();
    let key = program(&api, &api.admin().await, &["admin"]).await;
    for operation in Operation::all(&document) {
        let item = document["paths"][&operation.template].as_object().unwrap();
        let methods = item.keys().map(|method| method.to_uppercase());
        let methods: BTreeSet<String> = methods.collect();
        let all = ["GET", "PUT", "POST", "PATCH", "DELETE"].into_iter();
        for wrong in all.filter(|method| !methods.contains(*method)) {
            let method = wrong.parse().unwrap();
            let path = operation
                .template
                .replace("{id}", "a")
                .replace("{name}", "a");
            let refused = api.ask(&key, method, &path, Value::Null).await;
            assert_problem(&refused, 405, &format!("{wrong} {path}"));
            let allow = refused.allow.as_deref().unwrap().split(',');
            let allow: BTreeSet<String> = allow.map(|one| one.trim().to_owned()).collect();
            let head = methods.contains("GET").then(|| "HEAD".to_owned());
            let expected: BTreeSet<String> = methods.iter().cloned().chain(head).collect();
            assert_eq!(allow, expected, "{wrong} {path}");
        }
    }
}

#[tokio::test]
async fn every_operation_refuses_parameters_that_it_does_not_know() {
    let api = TestApi::with_admin("operations-parameters");
    let key = program(&api, &api.admin().await, &["admin"]).await;
    for operation in Operation::all(&api.document()) {
        let name = operation.case.operation;
        let parameters = operation.described["parameters"].as_array();
        let mut parameters = parameters.into_iter().flatten();
        let takes_query = parameters.any(|parameter| parameter["in"] == "query");
        // A provider may send others than the broker knows.
        if !takes_query || name == "finish_oidc" {
            continue;
        }
        let mut wrong = vec!["colour=red"];
        if operation.has_query("limit") {
            wrong.extend(["limit=0", "limit=1001", "limit=x"]);
        }
        if operation.has_query("cursor") {
            wrong.push("cursor=x");
        }
        for wrong in wrong {
            let path = operation.case.path;
            let separator = path.find('?').map_or('?', |_| '&');
            let path = format!("{path}{separator}{wrong}");
            let method = operation.method.clone();
            let refused = api.ask(&key, method, &path, Value::Null).await;
            assert_problem(&refused, 400, &path);
        }
    }
}

#[tokio::test]
async fn every_operation_refuses_a_body_that_it_does_not_understand() {
    let api = TestApi::with_admin("operations-bodies");
    let admin = api.admin().await;
    let key = program(&api, &admin, &["admin"]).await;
    for operation in Operation::all(&api.document()) {
        let name = operation.case.operation;
        if operation.described["requestBody"]["content"]["application/json"].is_null() {
            continue;
        }
        let is_own = operation.needs() == Needs::Session;
        let client = if is_own { &admin } else { &key };
        let known = operation.case.body.strip_suffix('}').unwrap();
        for (kind, body, status) in [
            ("application/json", "{".to_owned(), 400),
            ("application/json", "null".to_owned(), 400),
            ("application/json", " [null, null]".to_owned(), 400),
            (
                "application/json",
                format!("{known},\"colour\":\"red\"}}"),
                400,
            ),
            ("text/plain", operation.case.body.to_owned(), 415),
            ("application/json", " ".repeat(BODY_BYTES_MAX + 1), 413),
        ] {
            let request = client.request(operation.method.clone(), operation.case.path);
            let request = request.header(CONTENT_TYPE, kind);
            let shown = body[..body.len().min(80)].to_owned();
            let refused = api.answer(request.body(Body::from(body)).unwrap()).await;
            assert_problem(&refused, status, &format!("{name} {shown}"));
        }
    }
}
