#!/usr/bin/env bash
# Checks the pages as the gate does: types, lints, format, unit tests, and that the generated files are up to date. It
# builds nothing: the program beside it must not change.
set -euo pipefail
cd "$(dirname "$0")"

./install.sh
npm run --silent check
[ ! -e dist/site/index.html ] || node scripts/sizes.mjs
npm run --silent test
