#!/usr/bin/env bash
# Installs the pinned packages when they are not there.
set -euo pipefail
cd "$(dirname "$0")"

if ! command -v npm >/dev/null || ! node -e "
    const [major, minor] = process.versions.node.split('.').map(Number)
    process.exit(major > 20 || (major === 20 && minor >= 19) ? 0 : 1)"; then
    echo "dashboard: Node 20.19 or newer and npm are needed: https://nodejs.org" >&2
    exit 2
fi
stamp=node_modules/lock.installed
cmp -s package-lock.json "$stamp" && exit 0
npm ci --no-audit --no-fund --loglevel=error
cp package-lock.json "$stamp"
