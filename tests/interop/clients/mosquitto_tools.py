"""mosquitto_pub and mosquitto_sub of Debian, built on libmosquitto (C)."""

from __future__ import annotations

import queue
import signal
import subprocess
import threading
from dataclasses import dataclass, field

from clients.model import DEADLINE_SECONDS, Connect, Message, MqttClient, Properties

VERSIONS = {"3.1": "mqttv31", "3.1.1": "mqttv311", "5.0": "mqttv5"}
# A line of its own for each message; the payload is hexadecimal.
FORMAT = r"MESSAGE\t%t\t%q\t%r\t%x"
FORMAT_5 = FORMAT + r"\t%C\t%D\t%E\t%F\t%R\t%S\t%P"


@dataclass
class MosquittoTools(MqttClient):
    options: Connect | None = None
    process: subprocess.Popen | None = None
    ready: queue.Queue = field(default_factory=queue.Queue)

    def connect(self, options: Connect) -> bool:
        # mosquitto_sub connects when it subscribes, mosquitto_pub for each message.
        self.options = options
        return False

    def _base(self, program: str) -> list[str]:
        return [program, "-h", self.host, "-p", str(self.port), "-V", VERSIONS[self.version]]

    def subscribe(self, *filters: str, qos: int = 0, **options: int) -> list[int]:
        assert self.process is None, "one SUBSCRIBE in the life of a mosquitto_sub"
        command = ["stdbuf", "-oL", *self._base("mosquitto_sub"), "-d", "-q", str(qos)]
        command += ["-i", self.options.client_id, "-k", str(self.options.keep_alive)]
        command += ["-F", FORMAT_5 if self.version == "5.0" else FORMAT]
        for each in filters:
            command += ["-t", each]
        command += self._session_arguments() + self._will_arguments()
        if options.pop("retain_as_published", 0):
            command.append("--retain-as-published")
        if identifier := options.pop("identifier", 0):
            command += ["-D", "subscribe", "subscription-identifier", str(identifier)]
        assert not options, f"mosquitto_sub has no {options}"
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        threading.Thread(target=self._read, args=(self.process,), daemon=True).start()
        return self.ready.get(timeout=DEADLINE_SECONDS)

    def _session_arguments(self) -> list[str]:
        arguments = []
        if not self.options.clean_start:
            arguments.append("-c")
        if self.options.session_expiry is not None:
            arguments += ["-x", str(self.options.session_expiry)]
        if self.options.receive_maximum is not None:
            arguments += ["-D", "connect", "receive-maximum", str(self.options.receive_maximum)]
        if self.options.topic_alias_maximum is not None:
            arguments += [
                "-D", "connect", "topic-alias-maximum", str(self.options.topic_alias_maximum)
            ]
        return arguments

    def _will_arguments(self) -> list[str]:
        will = self.options.will
        if will is None:
            return []
        arguments = ["--will-topic", will.topic, "--will-payload", will.payload.decode()]
        arguments += ["--will-qos", str(will.qos)]
        if will.retain:
            arguments.append("--will-retain")
        if will.delay_seconds is not None:
            arguments += ["-D", "will", "will-delay-interval", str(will.delay_seconds)]
        return arguments

    def _read(self, process: subprocess.Popen) -> None:
        for line in process.stdout:
            # Beside the messages the tool prints lines of its own, with whatever others publish.
            text = line.decode(errors="replace").rstrip("\n")
            if text.startswith("MESSAGE\t"):
                self.inbox.put(message_of(text.split("\t")[1:]))
            elif text.startswith("Subscribed (mid"):
                codes = text.split(":", 2)[2].split(",")
                self.ready.put([int(code) for code in codes])

    def unsubscribe(self, topic_filter: str) -> list[int]:
        raise NotImplementedError("mosquitto_sub cannot unsubscribe while it runs")

    def publish(self, topic, payload=b"", qos=0, retain=False, properties=None) -> None:
        # The payload comes from standard input: no limit of the command line applies.
        command = [*self._base("mosquitto_pub"), "-t", topic, "-q", str(qos)]
        command.append("-s" if payload else "-n")
        if retain:
            command.append("-r")
        command += property_arguments(properties or Properties())
        done = subprocess.run(
            command, input=payload, capture_output=True, timeout=DEADLINE_SECONDS, check=False
        )
        assert done.returncode == 0, done.stderr.decode()

    def disconnect(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """Cleans up after a test, whatever state it left."""
        if self.process is not None:
            self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        self.process.send_signal(how)
        self.process.wait(DEADLINE_SECONDS)
        self.process = None


def property_arguments(properties: Properties) -> list[str]:
    named = {
        "content-type": properties.content_type,
        "response-topic": properties.response_topic,
        "payload-format-indicator": properties.payload_format,
        "message-expiry-interval": properties.message_expiry,
        "topic-alias": properties.topic_alias,
    }
    if properties.correlation_data is not None:
        named["correlation-data"] = properties.correlation_data.decode()
    arguments = []
    for name, value in named.items():
        if value is not None:
            arguments += ["-D", "publish", name, str(value)]
    for key, value in properties.user:
        arguments += ["-D", "publish", "user-property", key, value]
    return arguments


def message_of(fields: list[str]) -> Message:
    topic, qos, retain, payload = fields[:4]
    properties = Properties()
    if len(fields) > 4:
        content_type, correlation, expiry, payload_format, response, identifiers, user = fields[4:]
        properties = Properties(
            user=tuple(tuple(pair.split(":", 1)) for pair in user.split(" ") if pair),
            content_type=content_type or None,
            response_topic=response or None,
            correlation_data=correlation.encode() or None,
            payload_format=int(payload_format) if payload_format else None,
            message_expiry=int(expiry) if expiry else None,
            subscription_identifiers=tuple(int(each) for each in identifiers.split()),
        )
    return Message(topic, bytes.fromhex(payload), int(qos), retain == "1", properties)
