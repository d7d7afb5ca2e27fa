#!/usr/bin/env bash
# Independent clients exchange messages with the broker; see README.md.
# Installs the pinned clients when they are not there, then runs every case. BROKER=mosquitto tries the cases themselves.
set -euo pipefail
cd "$(dirname "$0")"

python=.venv/bin/python
stamp=.venv/requirements.installed
if ! cmp -s requirements.txt "$stamp"; then
    # A folder that was moved or half made is made again.
    "$python" -c '' 2>/dev/null || python3 -m venv --clear .venv
    "$python" -m pip install --quiet --disable-pip-version-check -r requirements.txt
    cp requirements.txt "$stamp"
fi
if ! cmp -s package-lock.json node_modules/lock.installed; then
    npm ci --no-audit --no-fund --loglevel=error
    cp package-lock.json node_modules/lock.installed
fi
if ! command -v mosquitto_pub >/dev/null || ! command -v mosquitto_sub >/dev/null; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "mosquitto_pub and mosquitto_sub are missing: apt-get install mosquitto-clients" >&2
        exit 2
    fi
    apt-get update -qq && apt-get install -y -qq --no-install-recommends mosquitto-clients >/dev/null
fi

if ! command -v openssl >/dev/null; then
    echo "openssl is missing, which makes the certificates of the tests: apt-get install openssl" >&2
    exit 2
fi

if [ "${1:-}" = --suites ]; then
    shift
    # Most of the time is waiting for timers of the broker, so the suites run side by side.
    code=0
    node --test --test-reporter=spec --test-concurrency=4 mqttjs/ >.venv/mqttjs.log 2>&1 &
    mqttjs=$!
    "$python" -m pytest -n 6 "$@" || code=$?
    wait "$mqttjs" || code=$?
    cat .venv/mqttjs.log
    exit "$code"
fi
exec "$python" launch.py bash ./run.sh --suites "$@"
