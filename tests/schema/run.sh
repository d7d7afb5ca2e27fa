#!/usr/bin/env bash
# Runs schemathesis over docs/api/openapi.json; see README.md. Installs the pinned packages when they are not there.
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
exec "$python" run.py "$@"
