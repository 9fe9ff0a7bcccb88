#!/usr/bin/env bash
# Prints the figures over MCP of docs/specification.md: toolgate beside rust-mcp-filesystem and server-filesystem, in one run.
# Usage: bench_mcp.sh FOLDER TOOLGATE [TOOLGATE…]
# FOLDER keeps the peers between runs, and gets the results; each TOOLGATE is copied there and measured under its number
# (toolgate1, toolgate2 …), because peers are installed copies too. ROUNDS (5) says how often each is measured.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,6s/^# //p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
rounds=${ROUNDS:-5}
shift

export CARGO_BIN=$folder/bin PEERS=$folder/npm BIGTREE=$folder/empty
if [ ! -x "$CARGO_BIN/rust-mcp-filesystem" ]; then
    echo "installing rust-mcp-filesystem (once)" >&2
    CARGO_TARGET_DIR=$folder/build cargo install --quiet --locked --root "$folder" --version 0.4.5 rust-mcp-filesystem
    rm -rf "$folder/build"
fi
if [ ! -d "$PEERS/node_modules/@modelcontextprotocol/server-filesystem" ]; then
    echo "installing server-filesystem (once)" >&2
    mkdir -p "$PEERS"
    (cd "$PEERS" && npm install --silent --no-fund --no-audit @modelcontextprotocol/server-filesystem@2026.8.31)
fi
mkdir -p "$BIGTREE" "$folder/fixture"
python3 "$here/load/mcp_load.py" fixture "$folder/fixture"

# Home and state outside of the fixture, whose files the searches count.
configs=()
number=0
for binary in "$@"; do
    number=$((number + 1))
    cp "$binary" "$folder/toolgate$number"
    FOLDER=$folder NUMBER=$number python3 - "$here/load/toolgate.json" > "$folder/toolgate$number.json" <<'PY'
import json, os, sys
folder, number = os.environ["FOLDER"], os.environ["NUMBER"]
config = json.load(open(sys.argv[1]))
config["name"] = "toolgate" + number
config["cmd"][0] = f"{folder}/toolgate{number}"
config["env"] = {"HOME": f"{folder}/home", "TOOLGATE_STATE_DIR": f"{folder}/state{number}"}
json.dump(config, sys.stdout)
PY
    configs+=(--config "$folder/toolgate$number.json")
done
mkdir -p "$folder/home"

for stdio in pipe socketpair; do
    echo "== $stdio"
    python3 "$here/load/mcp_load.py" run --fixture "$folder/fixture" --stdio "$stdio" --repeat "$rounds" --starts 9 \
        "${configs[@]}" --config "$here/load/rust-mcp-filesystem.json" --config "$here/load/server-filesystem.json" \
        --out "$folder/$stdio.json" > /dev/null
    python3 "$here/load/mcp_load.py" report "$folder/$stdio.json" --base rust-mcp-filesystem
done

# What a connected server that has answered a call costs while nothing happens.
for binary in "$folder"/toolgate[0-9]; do
    HOME=$folder/home TOOLGATE_STATE_DIR=$folder/idle python3 - "$binary" "$folder/fixture" <<'PY'
import json, os, subprocess, sys, time
server = subprocess.Popen([sys.argv[1], "--cwd", sys.argv[2], "--setting-sources", "none", "mcp", "serve", "--quiet"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "idle", "version": "1"}}
for number, (method, params) in enumerate([("initialize", client), ("tools/call", {"name": "ls", "arguments": {}})]):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
    server.stdin.flush()
    server.stdout.readline()
def spent():
    fields = open(f"/proc/{server.pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")
time.sleep(1)
before = spent()
time.sleep(10)
print(f"{os.path.basename(sys.argv[1])}: {spent() - before:.0f} ms of processor time in 10 s without a request")
server.stdin.close()
server.wait(10)
PY
done
