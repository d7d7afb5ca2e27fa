#!/usr/bin/env bash
# Installs the pinned packages when they are not there.
set -euo pipefail
cd "$(dirname "$0")"

stamp=node_modules/lock.installed
cmp -s package-lock.json "$stamp" && exit 0
npm ci --no-audit --no-fund --loglevel=error
cp package-lock.json "$stamp"
