"""Starts a broker with clients and runs schemathesis over docs/api/openapi.json; see README.md."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
sys.path.insert(0, str(ROOT / "tests/interop"))

from launch import thrum_binary  # noqa: E402
from secured import Secured, until  # noqa: E402

DOCUMENT = ROOT / "docs/api/openapi.json"
# Twice what a run takes on two busy cores.
RUN_SECONDS_MAX = 240
COMMAND_SECONDS_MAX = 20

# The broker prints it as the address of the dashboard.
HTTP = re.compile(r"http://127\.0\.0\.1:(\d+)")

CONFIG = """
[auth]
anonymous = true

[listeners]
mqtt = { bind = "127.0.0.1:0" }
http = { bind = "127.0.0.1:0" }
"""


def run(*arguments: str) -> str:
    command = [thrum_binary(), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def subscribers(port: int) -> list[subprocess.Popen]:
    """Clients for the lists to show, one of them in a shared group."""
    clients = [("meter-1", "site/#"), ("meter-2", "$share/group/site/+")]
    return [
        subprocess.Popen(
            [thrum_binary(), "sub", "-p", str(port), "-i", client_id, "-t", topic],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for client_id, topic in clients
    ]


def schemathesis(port: int, key: str, arguments: list[str]) -> int:
    command = [str(FOLDER / ".venv/bin/schemathesis"), "run", str(DOCUMENT)]
    command += ["--url", f"http://127.0.0.1:{port}/api/v1", *arguments]
    environment = os.environ | {"THRUM_KEY": key, "PYTHONPATH": str(FOLDER)}
    try:
        done = subprocess.run(command, cwd=FOLDER, env=environment, timeout=RUN_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        print(f"schemathesis did not end within {RUN_SECONDS_MAX} s", file=sys.stderr)
        return 1
    return done.returncode


def main() -> int:
    # The runner of the suites turns the port off.
    os.environ.pop("THRUM_LISTENERS__HTTP__BIND", None)
    with tempfile.TemporaryDirectory(prefix="thrum-schema-") as folder:
        broker = Secured(Path(folder), CONFIG).start()
        port = broker.port()
        http_port = int(HTTP.search(broker.printed()).group(1))
        clients = subscribers(port)
        try:
            data = str(broker.data)
            created = run("keys", "add", "schema", "--scope", "admin", "--data-dir", data)
            is_subscribed = lambda: "meter-2" in run("clients", "ls", "--data-dir", data)
            assert until(is_subscribed), "the clients do not connect"
            for topic in ("site/a", "site/b"):
                run("pub", "-p", str(port), "-t", topic, "-m", "on", "-q", "1", "-r")
            code = schemathesis(http_port, created.split()[0], sys.argv[1:])
            if not broker.is_alive():
                print("the broker died during the run", file=sys.stderr)
                code = code or 1
            if code:
                tail = "\n".join(broker.log().splitlines()[-60:])
                print(f"--- end of the broker's log ---\n{tail}", file=sys.stderr)
            return code
        finally:
            for client in clients:
                client.kill()
                client.wait()
            broker.stop()


if __name__ == "__main__":
    sys.exit(main())
