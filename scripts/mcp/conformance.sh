#!/usr/bin/env bash
# Runs the official MCP conformance suite against our server and our client, for both living revisions.
# Usage: conformance.sh EXAMPLES FOLDER   (EXAMPLES holds the built fixtures, FOLDER keeps the suite between runs)
# Ends with 1 when a scenario that a revision requires fails, and when one that it does not require comes out otherwise
# than docs/mcp.md says.
set -uo pipefail
examples=$1 folder=$2
here=$(cd "$(dirname "$0")" && pwd)
peers=$("$here/install.sh" "$folder" npm) || exit 1
node=$peers/node_modules/node/bin/node
suite=$peers/node_modules/@modelcontextprotocol/conformance/dist/index.js
out=$(mktemp -d)
server=
trap '[ -n "$server" ] && kill "$server" 2>/dev/null; rm -rf "$out"' EXIT
bad=0

run() { # side, then arguments of the suite
    local side=$1 revision ended scenario again=
    shift
    for revision in 2025-11-25 2026-07-28; do
        timeout 600 "$node" "$suite" "$side" "$@" --requirements "$revision" --timeout 60000 -o "$out/$side-$revision" \
            > "$out/$side-$revision.txt" 2>&1
        ended=$?
        # Scenarios run side by side, and some look at the clock: one that failed is tried once more, alone.
        again=
        for scenario in $(python3 "$here/conformance.py" failed "$out/$side-$revision.txt"); do
            if timeout 120 "$node" "$suite" "$side" "$@" --scenario "$scenario" --spec-version "$revision" \
                --timeout 60000 -o "$out/again" > "$out/again.txt" 2>&1; then
                again="$again $scenario"
            else
                tail -30 "$out/again.txt"
            fi
        done
        python3 "$here/conformance.py" "$side" "$revision" "$ended" "$out/$side-$revision.txt" "$here/../../docs/mcp.md" $again || bad=1
    done
}

"$examples/conformance_server" 127.0.0.1:0 > "$out/server.log" 2>&1 &
server=$!
for _ in $(seq 100); do
    grep -q '^serving on' "$out/server.log" && break
    sleep 0.1
done
run server --url "$(sed -n 's/^serving on //p' "$out/server.log")"
# The suite runs the command through a shell, which fills in what it says in the environment.
run client --command "$examples/conformance_client \"\$MCP_CONFORMANCE_SCENARIO\" \"\$MCP_CONFORMANCE_PROTOCOL_VERSION\" \"\$MCP_CONFORMANCE_CONTEXT\""
exit $bad
