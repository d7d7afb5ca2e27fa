//! The whole export, from a broker to a collector.

mod collector;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point;
use thrum_broker::config::{ListenerConfig, TelemetryConfig, TelemetryProtocol, Workers};
use thrum_broker::{Access, Broker, Config, ExportFigures, Listening, Signal};
use tracing_subscriber::layer::SubscriberExt as _;

use self::collector::{Script, TestCollector, free_address};
use super::*;
use crate::metrics::{Format, Measured};
use crate::{Managed, Security};

/// Far longer than anything here takes.
const TIME: Duration = Duration::from_secs(30);

/// A broker that exports.
struct Exporting {
    broker: Option<Broker>,
    managed: Managed,
    security: Security,
    telemetry: Option<Telemetry>,
    tap: &'static LogTap,
}

impl Exporting {
    fn to(address: SocketAddr, change: impl FnOnce(&mut TelemetryConfig)) -> Self {
        let mut telemetry = TelemetryConfig {
            endpoint: format!("http://{address}"),
            interval: Duration::from_hours(1),
            ..TelemetryConfig::default()
        };
        change(&mut telemetry);
        let mut config = Config::default();
        config.node.workers = Workers::Count(1);
        config.listeners.clear();
        let listener = ListenerConfig {
            bind: vec![SocketAddr::from(([127, 0, 0, 1], 0)).into()],
            ..ListenerConfig::default()
        };
        config.listeners.insert("mqtt".to_owned(), listener);
        config.telemetry = telemetry.clone();
        let broker = Broker::start(config, Access::default()).expect("a free port");
        let settings = TelemetrySettings::read(&telemetry).expect("right");
        let mut settings = settings.expect("something is exported");
        settings.first_pause = Duration::from_millis(20);
        let tap: &'static LogTap = Box::leak(Box::default());
        let mut exporting = Self {
            managed: Managed::from(broker.queries()),
            security: Security::open(None, None).expect("it is in memory"),
            broker: Some(broker),
            telemetry: None,
            tap,
        };
        exporting.start(settings);
        exporting
    }

    /// Begins to export.
    fn start(&mut self, settings: TelemetrySettings) {
        let security = self.security.clone();
        let telemetry = Telemetry::start(settings, "node-7", &self.managed, security, self.tap);
        self.telemetry = Some(telemetry.expect("it starts"));
    }

    /// A client of MQTT 5.0.
    fn client(&self, client_id: &str) -> TcpStream {
        let addresses = self.broker.as_ref().expect("it runs").addresses();
        let address = addresses.iter().find_map(Listening::socket_address);
        let mut stream = TcpStream::connect(address.expect("a listener")).expect("it listens");
        stream.set_read_timeout(Some(TIME)).expect("a socket");
        let mut connect = b"\0\x04MQTT\x05\x02\0\0\0".to_vec();
        connect.extend_from_slice(&text(client_id));
        send(&mut stream, 0x10, &connect);
        assert_eq!(packet(&mut stream).0, 0x20);
        stream
    }

    fn log(&self, program: impl FnOnce()) {
        let log = tracing_subscriber::registry().with(LogLayer(self.tap));
        tracing::subscriber::with_default(log, program);
    }

    fn counts(&self, signal: Signal) -> ExportFigures {
        self.broker
            .as_ref()
            .expect("it runs")
            .queries()
            .export()
            .counts()
            .of(signal)
    }

    /// Waits until the counts of a signal are so.
    fn until(&self, signal: Signal, are_so: impl Fn(&ExportFigures) -> bool) -> ExportFigures {
        let (_never, wait) = std::sync::mpsc::sync_channel::<()>(0);
        for _ in 0..TIME.as_millis() {
            let counts = self.counts(signal);
            if are_so(&counts) {
                return counts;
            }
            wait.recv_timeout(Duration::from_millis(1)).ok();
        }
        panic!("{:?}", self.counts(signal));
    }

    fn stop(&mut self) {
        if let Some(telemetry) = self.telemetry.take() {
            telemetry.end().wait();
        }
    }
}

impl Drop for Exporting {
    fn drop(&mut self) {
        self.stop();
        if let Some(broker) = self.broker.take() {
            broker.stop();
        }
    }
}

fn text(text: &str) -> Vec<u8> {
    let len = u16::try_from(text.len()).expect("short");
    [&len.to_be_bytes(), text.as_bytes()].concat()
}

/// Sends a packet of less than 128 bytes.
fn send(stream: &mut TcpStream, kind: u8, body: &[u8]) {
    let len = u8::try_from(body.len()).expect("short");
    stream
        .write_all(&[&[kind, len][..], body].concat())
        .expect("it reads");
}

/// The next packet, of less than 128 bytes.
fn packet(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut head = [0; 2];
    stream.read_exact(&mut head).expect("a packet");
    let mut body = vec![0; head[1].into()];
    stream.read_exact(&mut body).expect("a packet");
    (head[0], body)
}

fn only_metrics(config: &mut TelemetryConfig) {
    config.logs = false;
}

fn only_logs(config: &mut TelemetryConfig) {
    config.metrics = false;
}

/// Metrics of a broker arrive, whole, as from any program with OpenTelemetry.
fn metrics_arrive(collector: &TestCollector, protocol: TelemetryProtocol) {
    let path = std::env::temp_dir();
    let path = path.join(format!(
        "thrum-otlp-token-{protocol:?}-{}",
        std::process::id()
    ));
    std::fs::write(&path, "authorization: Bearer geheim\n").expect("a file");
    let mut exporting = Exporting::to(collector.address, |config| {
        only_metrics(config);
        config.protocol = protocol;
        config.headers_file.clone_from(&path);
        config.resource = vec!["deployment.environment.name=test".to_owned()];
    });
    let (headers, request) = collector.metrics();
    std::fs::remove_file(path).expect("the file");
    assert_eq!(headers["authorization"], "Bearer geheim");
    let resource = request.resource_metrics[0]
        .resource
        .as_ref()
        .expect("a resource");
    let texts = resource.attributes.iter().map(|attribute| {
        let value = attribute
            .value
            .as_ref()
            .and_then(|value| value.value.clone());
        match value {
            Some(Value::StringValue(text)) => (attribute.key.as_str(), text),
            other => panic!("{other:?}"),
        }
    });
    let texts: Vec<_> = texts.filter(|(key, _)| *key != "service.version").collect();
    let expected = [
        ("service.name", "thrum"),
        ("service.instance.id", "node-7"),
        ("deployment.environment.name", "test"),
    ];
    assert_eq!(texts, expected.map(|(key, value)| (key, value.to_owned())));
    let metrics = &request.resource_metrics[0].scope_metrics[0].metrics;
    let workers = metrics.iter().find(|metric| metric.name == "thrum_workers");
    let Some(Data::Gauge(workers)) = workers.and_then(|metric| metric.data.as_ref()) else {
        panic!("{workers:?}");
    };
    let value = workers.data_points[0].value;
    assert_eq!(value, Some(number_data_point::Value::AsInt(1)));
    let stages = metrics
        .iter()
        .find(|metric| metric.name == "thrum_message_seconds");
    let stages = stages.and_then(|metric| metric.data.as_ref());
    assert!(
        matches!(stages, Some(Data::ExponentialHistogram(_))),
        "{stages:?}"
    );
    // At the end they come once more.
    let exported = exporting
        .until(Signal::Metrics, |counts| counts.exported > 0)
        .exported;
    exporting.stop();
    let (_, last) = collector.metrics();
    let last = &last.resource_metrics[0].scope_metrics[0].metrics;
    let counted = last
        .iter()
        .find(|metric| metric.name == "thrum_telemetry_exported");
    let Some(Data::Sum(counted)) = counted.and_then(|metric| metric.data.as_ref()) else {
        panic!("{counted:?}");
    };
    let value = i64::try_from(exported).expect("some hundreds");
    let value = Some(number_data_point::Value::AsInt(value));
    assert_eq!(counted.data_points[0].value, value);
}

#[test]
fn metrics_arrive_over_http() {
    let collector = TestCollector::http(free_address(), &[]);
    metrics_arrive(&collector, TelemetryProtocol::Http);
}

#[test]
fn metrics_arrive_over_grpc() {
    let collector = TestCollector::grpc(free_address(), &[]);
    metrics_arrive(&collector, TelemetryProtocol::Grpc);
}

#[test]
fn what_is_exported_is_what_is_at_metrics() {
    let collector = TestCollector::http(free_address(), &[]);
    let exporting = Exporting::to(collector.address, only_metrics);
    let (_, request) = collector.metrics();
    let exported = &request.resource_metrics[0].scope_metrics[0].metrics;
    let mut exported: Vec<_> = exported.iter().map(|metric| metric.name.clone()).collect();
    let measured = Measured {
        queries: exporting.managed.queries.clone(),
        alarms: exporting.managed.alarms(),
        security: exporting.security.clone(),
        program: None,
    };
    let text = String::from_utf8(measured.exposition(Format::OpenMetrics)).expect("it is text");
    // OpenMetrics has the names of families without the end of their samples, as OTLP has them but
    // for constants.
    let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let mut families: Vec<_> = families
        .map(|family| match family.split_once(' ') {
            Some((name, "info")) => format!("{name}_info"),
            Some((name, _)) => name.to_owned(),
            None => panic!("{family}"),
        })
        .collect();
    exported.sort();
    families.sort();
    assert_eq!(exported, families);
    for name in [
        "thrum_alarm",
        "thrum_management_logins",
        "thrum_audit_failures",
    ] {
        assert!(families.iter().any(|family| family == name), "{name}");
    }
}

/// The sentences of lines.
fn sentences(collector: &TestCollector) -> Vec<String> {
    let request = collector.logs();
    let scopes = request
        .resource_logs
        .into_iter()
        .flat_map(|all| all.scope_logs);
    let records = scopes.flat_map(|scope| scope.log_records);
    let texts = records.map(|record| match record.body.and_then(|body| body.value) {
        Some(Value::StringValue(text)) => text,
        other => panic!("{other:?}"),
    });
    texts.collect()
}

#[test]
fn lines_of_the_log_arrive_over_http_and_grpc() {
    for protocol in [TelemetryProtocol::Http, TelemetryProtocol::Grpc] {
        let collector = match protocol {
            TelemetryProtocol::Http => TestCollector::http(free_address(), &[]),
            TelemetryProtocol::Grpc => TestCollector::grpc(free_address(), &[]),
        };
        let mut exporting = Exporting::to(collector.address, |config| {
            only_logs(config);
            config.protocol = protocol;
        });
        exporting.log(|| tracing::info!("first"));
        assert_eq!(sentences(&collector), ["first"]);
        exporting.log(|| tracing::info!("last"));
        exporting.stop();
        assert_eq!(sentences(&collector), ["last"], "the end flushes");
        exporting.log(|| tracing::info!("after"));
        let counts = exporting.counts(Signal::Logs);
        assert_eq!(
            (counts.exported, counts.queue_full, counts.stopped),
            (2, 0, 0)
        );
    }
}

#[test]
fn a_collector_that_comes_back_gets_every_line_that_waited() {
    let address = free_address();
    let exporting = Exporting::to(address, only_logs);
    exporting.log(|| tracing::info!("early"));
    exporting.until(Signal::Logs, |counts| counts.failed_requests >= 2);
    exporting.log(|| tracing::info!("later"));
    let collector = TestCollector::http(address, &[]);
    assert_eq!(sentences(&collector), ["early"]);
    assert_eq!(sentences(&collector), ["later"]);
    let counts = exporting.counts(Signal::Logs);
    assert_eq!((counts.refused, counts.queue_full), (0, 0));
}

#[test]
fn answers_that_ask_for_a_repetition_are_followed_by_one_and_others_are_not() {
    let script = [
        Script::Answer(429, Some("0")),
        Script::Answer(503, None),
        Script::Answer(400, None),
    ];
    let collector = TestCollector::http(free_address(), &script);
    let exporting = Exporting::to(collector.address, only_logs);
    exporting.log(|| tracing::info!("refused"));
    let counts = exporting.until(Signal::Logs, |counts| counts.refused > 0);
    assert_eq!(
        (counts.failed_requests, counts.refused, counts.exported),
        (3, 1, 0)
    );
    exporting.log(|| tracing::info!("taken"));
    assert_eq!(sentences(&collector), ["taken"]);
}

#[test]
fn codes_of_grpc_are_repeated_or_not() {
    // Unavailable, then invalid argument.
    let script = [Script::Code(14), Script::Code(3)];
    let collector = TestCollector::grpc(free_address(), &script);
    let exporting = Exporting::to(collector.address, |config| {
        only_logs(config);
        config.protocol = TelemetryProtocol::Grpc;
    });
    exporting.log(|| tracing::info!("refused"));
    let counts = exporting.until(Signal::Logs, |counts| counts.refused > 0);
    assert_eq!(
        (counts.failed_requests, counts.refused, counts.exported),
        (2, 1, 0)
    );
    exporting.log(|| tracing::info!("taken"));
    assert_eq!(sentences(&collector), ["taken"]);
}

#[test]
fn points_that_a_collector_rejects_are_counted() {
    let collector = TestCollector::http(free_address(), &[Script::Reject(5)]);
    let exporting = Exporting::to(collector.address, only_metrics);
    let (_, request) = collector.metrics();
    let metrics = &request.resource_metrics[0].scope_metrics[0].metrics;
    assert!(metrics.len() > 50);
    let counts = exporting.until(Signal::Metrics, |counts| counts.exported > 0);
    assert_eq!((counts.refused, counts.failed_requests), (5, 0));
}

#[test]
fn a_collector_that_hangs_costs_bounded_memory_and_does_not_keep_the_broker() {
    let hang = [Script::Hang; 8];
    let collector = TestCollector::http(free_address(), &hang);
    let mut exporting = Exporting::to(collector.address, |config| config.timeout = TIME);
    let lines = 20_000_u64;
    exporting.log(|| {
        for number in 0..lines {
            tracing::info!(number, "a line");
        }
    });
    let dropped = exporting.counts(Signal::Logs).queue_full;
    assert!(dropped > lines * 3 / 4, "{dropped}");
    exporting.stop();
    let counts = exporting.counts(Signal::Logs);
    assert_eq!((counts.exported, counts.queue_full), (0, dropped));
    // All lines are accounted for: those that waited, and those in the request that hangs.
    assert_eq!(counts.stopped, lines - dropped);
}

#[test]
fn an_export_that_ends_does_not_hold_up_the_one_behind_it() {
    let collector = TestCollector::http(free_address(), &[Script::Hang; 8]);
    let mut exporting = Exporting::to(collector.address, |config| {
        only_logs(config);
        config.timeout = TIME;
    });
    exporting.log(|| tracing::info!("a line"));
    let telemetry = exporting.telemetry.take().expect("it runs");
    let settings = telemetry.settings().clone();
    let ending = telemetry.end();
    assert_eq!(exporting.counts(Signal::Logs).stopped, 0, "it still tries");
    exporting.start(settings);
    ending.wait();
    assert_eq!(exporting.counts(Signal::Logs).stopped, 1);
}

#[test]
fn a_request_that_gets_no_answer_ends_by_its_time_limit_and_is_repeated() {
    let collector = TestCollector::http(free_address(), &[Script::Hang]);
    let exporting = Exporting::to(collector.address, |config| {
        only_logs(config);
        config.timeout = Duration::from_millis(100);
    });
    exporting.log(|| tracing::info!("a line"));
    assert_eq!(sentences(&collector), ["a line"]);
    let counts = exporting.until(Signal::Logs, |counts| counts.exported > 0);
    assert_eq!((counts.failed_requests, counts.exported), (1, 1));
}

#[test]
fn a_broker_that_exports_nothing_tells_nothing_about_it() {
    let mut config = Config::default();
    config.listeners.clear();
    let broker = Broker::start(config, Access::default()).expect("it needs no port");
    assert!(broker.queries().figures().exports.is_empty());
    broker.stop();
}

/// A message goes through a broker that traces it.
fn traces_arrive(collector: &TestCollector, protocol: TelemetryProtocol) {
    let exporting = Exporting::to(collector.address, |config| {
        only_logs(config);
        config.protocol = protocol;
        config.traces.every = 1;
        config.traces.filters = vec!["t".to_owned()];
    });
    let mut receiver = exporting.client("receiver");
    send(
        &mut receiver,
        0x82,
        &[&[0, 1, 0][..], &text("#"), &[0]].concat(),
    );
    assert_eq!(packet(&mut receiver).0, 0x90);
    let mut publisher = exporting.client("publisher");
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let property = [&[0x26][..], &text("traceparent"), &text(parent)].concat();
    let len = u8::try_from(property.len()).expect("short");
    for topic in ["plain", "t"] {
        let publish = [&text(topic)[..], &[len], &property, b"payload"].concat();
        send(&mut publisher, 0x30, &publish);
        let (_, received) = packet(&mut receiver);
        // A message that is not traced passes byte by byte.
        assert_eq!(received == publish, topic == "plain");
        assert_eq!(received.len(), publish.len());
    }
    let request = collector.traces();
    let spans = &request.resource_spans[0].scope_spans[0].spans;
    let named = |name: &str| {
        let found = spans.iter().find(|span| span.name == name);
        found.unwrap_or_else(|| panic!("{spans:?}"))
    };
    let (hop, delivery) = (named("receive"), named("deliver"));
    assert_eq!(spans.len(), 2);
    let trace = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128.to_be_bytes();
    assert!(spans.iter().all(|span| span.trace_id == trace));
    assert_eq!(hop.parent_span_id, 0x00f0_67aa_0ba9_02b7_u64.to_be_bytes());
    assert_eq!(delivery.parent_span_id, hop.span_id);
    assert_eq!((hop.kind, delivery.kind), (5, 4));
    assert!(hop.start_time_unix_nano > 1_700_000_000_000_000_000);
    assert!(hop.start_time_unix_nano <= delivery.end_time_unix_nano);
    assert_eq!(hop.events[0].name, "receivers known");
    let attribute = |key: &str| {
        let mut all = delivery.attributes.iter();
        let found = all.find(|attribute| attribute.key == key);
        found.and_then(|found| found.value.clone()?.value)
    };
    for (key, value) in [
        ("messaging.system", "mqtt"),
        ("messaging.operation.name", "deliver"),
        ("messaging.operation.type", "send"),
        ("messaging.destination.name", "t"),
        ("messaging.client.id", "receiver"),
        ("thrum.outcome", "written"),
    ] {
        assert_eq!(
            attribute(key),
            Some(Value::StringValue(value.to_owned())),
            "{key}"
        );
    }
    assert_eq!(
        attribute("messaging.message.body.size"),
        Some(Value::IntValue(7))
    );
    let counts = exporting.until(Signal::Traces, |counts| counts.exported == 2);
    assert_eq!((counts.queue_full, counts.refused), (0, 0));
}

#[test]
fn traces_arrive_over_http() {
    let collector = TestCollector::http(free_address(), &[]);
    traces_arrive(&collector, TelemetryProtocol::Http);
}

#[test]
fn traces_arrive_over_grpc() {
    let collector = TestCollector::grpc(free_address(), &[]);
    traces_arrive(&collector, TelemetryProtocol::Grpc);
}

#[test]
fn a_collector_that_hangs_does_not_slow_messages() {
    let hang = [Script::Hang; 64];
    let collector = TestCollector::http(free_address(), &hang);
    let exporting = Exporting::to(collector.address, |config| {
        config.timeout = TIME;
        config.traces.every = 1;
    });
    let mut receiver = exporting.client("receiver");
    send(
        &mut receiver,
        0x82,
        &[&[0, 1, 0][..], &text("t"), &[0]].concat(),
    );
    assert_eq!(packet(&mut receiver).0, 0x90);
    let mut publisher = exporting.client("publisher");
    let publish = [&text("t")[..], &[0], b"payload"].concat();
    // Three times as many spans as may wait, and none leaves.
    for _ in 0..3_072 {
        send(&mut publisher, 0x30, &publish);
        assert_eq!(packet(&mut receiver).0, 0x30);
    }
    let broker = exporting.broker.as_ref().expect("it runs");
    let figures = broker.queries().figures().exports;
    let traces = figures
        .iter()
        .find(|one| one.signal == "traces")
        .expect("it is counted");
    assert_eq!(traces.exported, 0);
    assert!(traces.queue_full >= 2 * 3_072 - 2_048 - 512, "{traces:?}");
}

#[test]
fn spans_that_end_while_nothing_is_exported_are_counted_and_never_come_out() {
    let collector = TestCollector::http(free_address(), &[]);
    let mut exporting = Exporting::to(collector.address, |config| {
        only_logs(config);
        config.traces.every = 1;
    });
    let settings = exporting.telemetry.as_ref().expect("it runs").settings();
    let settings = settings.clone();
    exporting.stop();
    let mut publisher = exporting.client("publisher");
    let publish = |publisher: &mut TcpStream, topic: &str| {
        let message = [&text(topic)[..], &[0, 1, 0], b"payload"].concat();
        send(publisher, 0x32, &message);
        assert_eq!(packet(publisher).0, 0x40);
    };
    publish(&mut publisher, "early");
    let queries = exporting.managed.queries.clone();
    let stopped = exporting.until(Signal::Traces, |counts| {
        // The figures fetch the counts of the workers.
        queries.figures();
        counts.stopped > 0
    });
    assert_eq!((stopped.stopped, stopped.queue_full), (1, 0));
    exporting.start(settings);
    publish(&mut publisher, "late");
    let request = collector.traces();
    let spans = &request.resource_spans[0].scope_spans[0].spans;
    let topics = spans.iter().map(|span| {
        let mut attributes = span.attributes.iter();
        let topic = attributes.find(|one| one.key == "messaging.destination.name");
        topic.and_then(|topic| topic.value.clone()?.value)
    });
    let late = Some(Value::StringValue("late".to_owned()));
    assert_eq!(topics.collect::<Vec<_>>(), [late]);
}
