#!/usr/bin/env bash
# Builds the pages into dist/site, from where the build of the program takes them.
set -euo pipefail
cd "$(dirname "$0")"

./install.sh
npm run --silent build
