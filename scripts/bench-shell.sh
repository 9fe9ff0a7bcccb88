#!/usr/bin/env bash
# What a command costs: the start of a shell, plain, supervised, sandboxed and in Bubblewrap; 64 idle commands; a gigabyte of
# output beside `tee`. Every line prints its ratio to the first of its group.
# As root the starts run above everything else on the machine, so that only their own work is measured.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(cargo bench --locked -p toolgate-process --bench commands --no-run 2>&1 | sed -n 's/.*(\(.*commands-[0-9a-f]*\))$/\1/p' | tail -1)
above=()
if [ "$(id -u)" = 0 ] && command -v chrt > /dev/null; then
    above=(chrt -f 10)
fi
"${above[@]}" "$program" starts
"$program" idle flood
