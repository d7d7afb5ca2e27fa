"""A broker with a configuration of its own, for tests of listeners, users and rules.

Listeners take free ports by themselves (`127.0.0.1:0`) and the broker prints them, so that tests that run side
by side never meet.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import launch

# Longest wait for something that must happen; nothing waits that long when all is well.
DEADLINE_SECONDS = 10.0
# The passwords of the tests are not secret.
PASSWORD = "open sesame"
LISTENING = re.compile(r"(?:^|\s)(\w+)://[^\s:]+:(\d+)\S*\s+\((\S+)\)", re.MULTILINE)


class Secured:
    """One running broker: its ports by listener, its log, and `thrum` for its data directory."""

    def __init__(self, folder: Path, config: str, file_name: str = "thrum.toml") -> None:
        self.folder = folder
        self.data = folder / "data"
        self.data.mkdir(exist_ok=True)
        self.config_path = folder / file_name
        self.is_toml = file_name.endswith(".toml")
        self.write(config)
        self._out = folder / "out.log"
        self._err = folder / "err.log"
        self._process: subprocess.Popen | None = None

    def write(self, config: str) -> None:
        """Writes the configuration; `node` is added to it."""
        head = f'[node]\ndata_dir = "{self.data}"\n' if self.is_toml else ""
        self.config_path.write_text(head + config)

    def start(self) -> Secured:
        command = [launch.thrum_binary(), "serve", "-c", str(self.config_path)]
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=self.folder
            )
        until(lambda: " ready in " in self.printed() or not self.is_alive())
        assert self.is_alive(), f"the broker did not start:\n{self.printed()}\n{self.log()}"
        return self

    def port(self, listener: str = "mqtt") -> int:
        return self.ports()[listener]

    def ports(self) -> dict[str, int]:
        return {name: int(port) for _, port, name in LISTENING.findall(self.printed())}

    def printed(self) -> str:
        return self._out.read_text(errors="replace")

    def log(self) -> str:
        return self._err.read_text(errors="replace")

    def wait_for_log(self, *words: str, after: int = 0) -> str:
        """Waits until one line has all words; returns the line."""

        def found():
            lines = self.log()[after:].splitlines()
            return next((line for line in lines if all(word in line for word in words)), None)

        line = until(found)
        assert line, f"no line with {words} in the log:\n{self.log()[after:]}"
        return line

    def hang_up(self, *words: str) -> str:
        """Sends SIGHUP and waits for the line with the words that says what became of it."""
        before = len(self.log())
        self._process.send_signal(signal.SIGHUP)
        return self.wait_for_log(*words or ("configuration reloaded",), after=before)

    def users(self, *arguments: str, password: str | None = None) -> str:
        """Runs `thrum users` for the store of this broker."""
        command = [launch.thrum_binary(), "users", *arguments, "--data-dir", str(self.data)]
        if password is not None:
            password_file = self.folder / "password"
            password_file.write_text(password)
            command += ["--password-file", str(password_file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop_only(self) -> None:
        """Ends the broker, which must end well; it may be started again."""
        assert self.is_alive(), f"ended by itself:\n{self.log()}"
        self._process.terminate()
        try:
            code = self._process.wait(launch.STOP_SECONDS_MAX)
        finally:
            # No effect on a broker that has ended.
            self._process.kill()
            self._process.wait()
        assert code == 0 and "panicked" not in self.log(), f"ended badly:\n{self.log()}"

    def stop(self) -> None:
        """Ends the broker with the test; one that ended by itself, or does not end well, fails it."""
        if self._process is not None:
            self.stop_only()


def until(condition, seconds: float = DEADLINE_SECONDS):
    """Asks until the answer is true or time is up; returns the last answer."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return answer


def is_other_broker() -> bool:
    """These cases are about thrum's own configuration."""
    return os.environ.get("BROKER", "thrum") != "thrum"
