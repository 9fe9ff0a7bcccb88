#!/usr/bin/env bash
# Installs the language servers of the package.json files from the registry, once, and prints the directories of their programs,
# separated by colons.
# Usage: install.sh FOLDER   (FOLDER keeps them between runs)
set -euo pipefail
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
command -v npm > /dev/null || { echo "npm is not installed, so the language servers cannot be installed" >&2; exit 1; }
programs=
for list in "$here/package.json" "$here/basedpyright/package.json"; do
    servers=$folder/lsp-$(sha256sum "$list" | cut -c1-16)
    if [ ! -f "$servers/ready" ]; then
        echo "installing the language servers of $list (once)" >&2
        rm -rf "$servers"
        mkdir -p "$servers"
        cp "$list" "$servers/"
        for attempt in 1 2 3; do
            if (cd "$servers" && timeout 400 npm install --no-fund --no-audit --loglevel=error) > "$servers/install.log" 2>&1; then
                touch "$servers/ready"
                break
            fi
            [ "$attempt" = 3 ] && { tail -20 "$servers/install.log" >&2; exit 1; }
            sleep $((attempt * 3))
        done
    fi
    programs=$programs${programs:+:}$servers/node_modules/.bin
done
# rust-analyzer reads the sources of the standard library with the crates that they depend on, and its sandbox reaches no
# network.
library=$(rustc --print sysroot 2> /dev/null || true)/lib/rustlib/src/rust/library/Cargo.toml
if [ -f "$library" ] && rust-analyzer --version > /dev/null 2>&1; then
    RUSTC_BOOTSTRAP=1 cargo fetch --quiet --locked --manifest-path "$library" >&2 \
        || echo "the crates of the standard library could not be fetched, so rust-analyzer will warn" >&2
fi
echo "$programs"
