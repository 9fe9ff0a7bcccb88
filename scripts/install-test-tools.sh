#!/bin/sh
# Puts the programs that tests and benchmarks compare with (ripgrep, fd) where they look for them, and Bubblewrap,
# which one of the sandbox's backends is made of, tmux, in which the program is used as at a terminal, Chromium,
# which renders pages, and valgrind, where the machine lets us.
# Quiet, and does nothing for a program that is on PATH or was put there before.
#
#   scripts/install-test-tools.sh [FOLDER]      FOLDER is test-tools in cargo's target directory where absent
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-"${CARGO_TARGET_DIR:-$root/target}/test-tools"}

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

# Without it, the tests of that backend see that its absence is said.
if ! command -v bwrap > /dev/null 2>&1 && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null 2>&1; then
    apt-get install -y -qq bubblewrap > /dev/null 2>&1 || echo "bubblewrap could not be installed; its backend is not tested" >&2
fi

# Without it, the tests at a terminal cannot run.
if ! command -v tmux > /dev/null 2>&1 && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null 2>&1; then
    apt-get install -y -qq tmux > /dev/null 2>&1 || echo "tmux could not be installed; the tests at a terminal cannot run" >&2
fi

# With it, the linker of published binaries records which functions a start runs.
if ! command -v valgrind > /dev/null 2>&1 && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null 2>&1; then
    apt-get install -y -qq valgrind > /dev/null 2>&1 || echo "valgrind could not be installed; the linker of published binaries cannot be tested" >&2
fi

# The tests of screenshots and of the browser tools need a real one.
browser=
for name in chromium chromium-browser google-chrome google-chrome-stable; do
    command -v "$name" > /dev/null 2>&1 && browser=$name
done
if [ -z "$browser" ] && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive
    { apt-get install -y -qq --no-install-recommends chromium || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; }; } \
        > /dev/null 2>&1 || echo "chromium could not be installed; the tests of rendered pages cannot run" >&2
fi
