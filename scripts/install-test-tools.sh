#!/bin/sh
# Puts the programs that tests and benchmarks compare with (ripgrep, fd) where they look for them.
# Quiet, and does nothing for a program that is on PATH or was put there before.
#
#   scripts/install-test-tools.sh [FOLDER]      FOLDER is target/test-tools of this repository where absent
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-"$root/target/test-tools"}

want() {
    program=$1 crate=$2
    command -v "$program" > /dev/null 2>&1 && return 0
    [ -x "$folder/bin/$program" ] && return 0
    # The build folder is kept apart from the workspace's, whose profile and lock file are none of theirs.
    CARGO_TARGET_DIR="$folder/build" cargo install --quiet --locked --root "$folder" "$crate"
    rm -rf "$folder/build"
}

want rg ripgrep
want fd fd-find
