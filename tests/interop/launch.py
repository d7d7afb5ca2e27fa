"""Starts a broker on a free port of the loopback address and stops it again.

As a program: `launch.py COMMAND…` runs the command with MQTT_HOST, MQTT_PORT and MQTT_URL set and
leaves with its exit code. The choice of broker is made here and nowhere else:

    THRUM_BIN          the binary under test (default: target/release/thrum, then target/debug/thrum)
    BROKER=mosquitto   Debian's mosquitto instead, to try the tests themselves
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HOST = "127.0.0.1"
START_SECONDS_MAX = 10.0
STOP_SECONDS_MAX = 10.0
LOG_LINES_SHOWN = 60
ROOT = Path(__file__).resolve().parents[2]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def thrum_binary() -> str:
    named = os.environ.get("THRUM_BIN")
    candidates = [Path(named)] if named else [
        ROOT / "target/release/thrum",
        ROOT / "target/debug/thrum",
    ]
    for candidate in candidates:
        if candidate.is_file():
            return str(candidate)
    raise SystemExit(
        f"no thrum binary at {' or '.join(map(str, candidates))}: "
        "build one with `cargo build --release -p thrum`, or name it with THRUM_BIN"
    )


class Broker:
    """One running broker with its log."""

    def __init__(self) -> None:
        self.port = free_port()
        self.host = HOST
        self.kind = os.environ.get("BROKER", "thrum")
        self._folder = tempfile.TemporaryDirectory(prefix="thrum-interop-")
        self.log_path = Path(self._folder.name) / "broker.log"
        with self.log_path.open("wb") as log:
            self._process = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self._wait_until_it_accepts()

    def _command(self) -> list[str]:
        if self.kind == "thrum":
            return [thrum_binary(), "serve", "--dev", "--listen", f"{HOST}:{self.port}"]
        if self.kind == "mosquitto":
            config = Path(self._folder.name) / "mosquitto.conf"
            config.write_text(
                f"listener {self.port} {HOST}\nallow_anonymous true\nlog_type all\n"
                "sys_interval 1\n"
            )
            return ["/usr/sbin/mosquitto", "-c", str(config)]
        raise SystemExit(f"BROKER={self.kind}: known are thrum and mosquitto")

    def _wait_until_it_accepts(self) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            try:
                socket.create_connection((HOST, self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.02)
        log = self.log_tail()
        self.stop()
        raise SystemExit(f"the broker did not start: {' '.join(self._process.args)}\n{log}")

    @property
    def url(self) -> str:
        return f"mqtt://{self.host}:{self.port}"

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def log_tail(self) -> str:
        lines = self.log_path.read_text(errors="replace").splitlines()
        return "\n".join(lines[-LOG_LINES_SHOWN:])

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._folder.cleanup()


def main() -> int:
    broker = Broker()
    environment = os.environ | {
        "MQTT_HOST": broker.host,
        "MQTT_PORT": str(broker.port),
        "MQTT_URL": broker.url,
    }
    try:
        code = subprocess.call(sys.argv[1:], env=environment)
        if not broker.is_alive():
            print("the broker died during the run", file=sys.stderr)
            code = code or 1
        if code:
            print(f"--- end of the broker's log ---\n{broker.log_tail()}", file=sys.stderr)
        return code
    finally:
        broker.stop()


if __name__ == "__main__":
    sys.exit(main())
