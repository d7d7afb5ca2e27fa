#!/usr/bin/env bash
# Runs tests in a browser, with a real broker: THRUM_BIN names the program, which contains the pages.
#   dashboard/e2e.sh pages|budgets [PLAYWRIGHT-ARGUMENT…]
set -euo pipefail
cd "$(dirname "$0")"

fail() {
    echo "dashboard: $*" >&2
    exit 2
}

[ -n "${THRUM_BIN:-}" ] || fail "THRUM_BIN names no broker: THRUM_BIN=target/gate/thrum dashboard/e2e.sh"
THRUM=$(realpath "$THRUM_BIN")
# Brokers of the tests have an HTTP port each.
unset THRUM_LISTENERS__HTTP__BIND
./install.sh
if [ -z "${CHROMIUM:-}" ] && ! command -v chromium >/dev/null; then
    fail "chromium is missing: apt-get install chromium, or name a browser in CHROMIUM"
fi
export THRUM CHROMIUM=${CHROMIUM:-$(command -v chromium)}
project=${1:-pages}
exec npx --no-install playwright test "--project=$project" "${@:2}"
