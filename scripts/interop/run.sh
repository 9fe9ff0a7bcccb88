#!/usr/bin/env bash
# Hands toolgate's definitions and results to real consumers from the registries.
# Usage: run.sh TOOLGATE FOLDER   (FOLDER keeps the installed consumers between runs)
set -euo pipefail
toolgate=$1 folder=$2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
wanted=$(sha256sum "$here/requirements.txt" | cut -c1-16)
venv=$folder/python-$wanted
if [ ! -f "$venv/ready" ]; then
    echo "installing the consumers (once)"
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt"
    touch "$venv/ready"
fi
exec "$venv/bin/python" "$here/consumers.py" "$toolgate"
