#!/usr/bin/env bash
# Installs the language servers of package.json from the registry, once, and prints the directory of their programs.
# Usage: install.sh FOLDER   (FOLDER keeps them between runs)
set -euo pipefail
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
servers=$folder/lsp-$(sha256sum "$here/package.json" | cut -c1-16)
if [ ! -f "$servers/ready" ]; then
    command -v npm > /dev/null || { echo "npm is not installed, so the language servers cannot be installed" >&2; exit 1; }
    echo "installing the language servers of package.json (once)" >&2
    rm -rf "$servers"
    mkdir -p "$servers"
    cp "$here/package.json" "$servers/"
    for attempt in 1 2 3; do
        if (cd "$servers" && timeout 400 npm install --no-fund --no-audit --loglevel=error) > "$servers/install.log" 2>&1; then
            touch "$servers/ready"
            break
        fi
        [ "$attempt" = 3 ] && { tail -20 "$servers/install.log" >&2; exit 1; }
        sleep $((attempt * 3))
    done
fi
echo "$servers/node_modules/.bin"
