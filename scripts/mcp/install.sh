#!/usr/bin/env bash
# Installs the MCP peers from the registries, once, and says where they are.
# Usage: install.sh FOLDER npm|python   (FOLDER keeps them between runs; prints the folder of the peers)
set -euo pipefail
folder=$1 kind=$2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
case $kind in
npm) list=package.json ;;
python) list=requirements.txt ;;
*) exit 2 ;;
esac
peers=$folder/$kind-$(sha256sum "$here/$list" | cut -c1-16)
if [ ! -f "$peers/ready" ]; then
    echo "installing the MCP peers of $list (once)" >&2
    rm -rf "$peers"
    mkdir -p "$peers"
    cp "$here/$list" "$peers/"
    # A registry that stumbles is asked again; one that is not there is an error with its words.
    for attempt in 1 2 3; do
        if case $kind in
            npm) (cd "$peers" && timeout 400 npm install --no-fund --no-audit --loglevel=error) ;;
            python) python3 -m venv "$peers" && timeout 400 "$peers/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/$list" ;;
            esac > "$peers/install.log" 2>&1; then
            touch "$peers/ready"
            break
        fi
        [ $attempt = 3 ] && { tail -20 "$peers/install.log" >&2; exit 1; }
        sleep $((attempt * 3))
    done
fi
echo "$peers"
