#!/usr/bin/env bash
# Lets real peers meet toolgate: official SDKs drive our server, our client drives official servers.
# Usage: peers.sh TOOLGATE FOLDER   (FOLDER keeps the installed peers between runs)
set -uo pipefail
toolgate=$1 folder=$2
here=$(cd "$(dirname "$0")" && pwd)
npm=$("$here/install.sh" "$folder" npm) || exit 1
python=$("$here/install.sh" "$folder" python) || exit 1
node=$npm/node_modules/node/bin/node
servers=$npm/node_modules/@modelcontextprotocol
work=$(mktemp -d)
work=$(cd "$work" && pwd -P)
started=()
trap 'for id in "${started[@]}"; do kill "$id" 2>/dev/null; done; rm -rf "$work"' EXIT
bad=0

export HOME=$work/home TOOLGATE_STATE_DIR=$work/state TOOLGATE_MCP_TOKEN=peers CANCELLED=$work/cancelled
ws=$work/ws
mkdir -p "$HOME" "$ws"
touch "$CANCELLED"
echo "remember the milk" > "$ws/notes.txt"
echo "hush" > "$ws/secret.txt"

check() { # name, then a command
    local name=$1
    shift
    if timeout 90 bash -c '"$@"' check "$@" > "$work/log" 2>&1; then
        echo "ok    $name"
    else
        echo "FAIL  $name"
        tail -25 "$work/log" | sed 's/^/      /'
        bad=1
    fi
}
says() { # a text, then a command whose output must contain it
    local wanted=$1
    shift
    "$@" | tee /dev/stderr | grep -qF -- "$wanted"
}

# The server, driven by the SDKs.
behind="{\"mcpServers\":{\"slow\":{\"command\":\"python3\",\"args\":[\"$here/slow_server.py\",\"$CANCELLED\"],\"alwaysLoad\":true}}}"
serve=(mcp serve --quiet --cwd "$ws" --mcp-config "$behind" --strict-mcp-config
    --allowed-tools mcp__slow__wait --disallowed-tools 'Read(./secret.txt)')
SERVE=$(printf '%s\n' "${serve[@]}")
export SERVE
"$toolgate" mcp serve --http 127.0.0.1:0 "${serve[@]:3}" > "$work/http.log" 2>&1 &
started+=($!)
for _ in $(seq 100); do
    grep -q 'serving on' "$work/http.log" && break
    sleep 0.1
done
url=$(sed -n 's/.*serving on \(http[^ ]*\).*/\1/p' "$work/http.log")
cp "$here/drive.mjs" "$npm/"
for door in "stdio" "HTTP"; do
    at=()
    [ $door = HTTP ] && at=("$url")
    check "the old TypeScript SDK over $door, 2025-11-25" "$node" "$npm/drive.mjs" old legacy "$toolgate" "$ws" "${at[@]}"
    for era in legacy 2026-07-28; do
        check "the new TypeScript SDK over $door, $era" "$node" "$npm/drive.mjs" new $era "$toolgate" "$ws" "${at[@]}"
        check "the Python SDK over $door, $era" "$python/bin/python" "$here/drive.py" $era "$toolgate" "$ws" "${at[@]}"
    done
done

# Our client, driving official servers.
call() { # servers, tool, input
    "$toolgate" call "$2" "$3" --cwd "$ws" --mcp-config "$1" --strict-mcp-config --allowed-tools "$2"
}
entry() { # name, command, arguments
    python3 -c 'import json, sys; print(json.dumps({"mcpServers": {sys.argv[1]: {"command": sys.argv[2], "args": sys.argv[3:], "alwaysLoad": True}}}))' "$@"
}
export -f says call
export toolgate ws
everything=$(entry everything "$node" "$servers/server-everything/dist/index.js" stdio)
filesystem=$(entry filesystem "$node" "$servers/server-filesystem/dist/index.js" "$ws")
fetch=$(entry fetch "$python/bin/mcp-server-fetch" --ignore-robots-txt --allow-private-ips)

for server in everything filesystem fetch; do
    check "server-$server is well" says '"connected":true' "$toolgate" mcp test $server --json --cwd "$ws" --mcp-config "${!server}" --strict-mcp-config
done
check "server-everything echoes" says 'Echo: hello' call "$everything" mcp__everything__echo '{"message":"hello"}'
check "server-everything adds" says '42' call "$everything" mcp__everything__get-sum '{"a":40,"b":2}'
check "server-everything's structured result keeps its promise" says 'temperature' \
    call "$everything" mcp__everything__get-structured-content '{"location":"Chicago"}'
check "server-everything's long run is waited for" says 'completed' \
    call "$everything" mcp__everything__trigger-long-running-operation '{"duration":1,"steps":4}'
check "server-filesystem reads" says 'remember the milk' call "$filesystem" mcp__filesystem__read_text_file "{\"path\":\"$ws/notes.txt\"}"
check "the examples of docs/mcp.md print what it shows" env -u TOOLGATE_STATE_DIR -u TOOLGATE_MCP_TOKEN \
    python3 "$here/page.py" "$toolgate" "$here/../../docs/mcp.md" "$work/page" "$node" "$servers/server-filesystem/dist/index.js"
check "server-filesystem writes" says 'Successfully wrote' \
    call "$filesystem" mcp__filesystem__write_file "{\"path\":\"$ws/new.txt\",\"content\":\"by hand of another\"}"
check "what it wrote is there" grep -q 'by hand of another' "$ws/new.txt"
# A page of our own, so that nothing depends on the server of another project.
(cd "$ws" && exec python3 -u -m http.server 0 --bind 127.0.0.1) > "$work/pages.log" 2>&1 &
started+=($!)
for _ in $(seq 100); do
    grep -q 'port [0-9]' "$work/pages.log" && break
    sleep 0.1
done
port=$(sed -n 's/.*port \([0-9]*\).*/\1/p' "$work/pages.log" | head -1)
check "mcp-server-fetch fetches" says 'remember the milk' call "$fetch" mcp__fetch__fetch "{\"url\":\"http://127.0.0.1:$port/notes.txt\"}"


# Every server that was started names the temporary folder on its command line.
none_left() {
    kill "${started[0]}" && wait "${started[0]}"
    for _ in $(seq 50); do
        pgrep -f "$work" > /dev/null || return 0
        sleep 0.1
    done
    pgrep -af "$work"
    return 1
}
if none_left > "$work/log"; then
    echo "ok    no process is left behind"
else
    echo "FAIL  processes are left behind"
    sed 's/^/      /' "$work/log"
    bad=1
fi
exit $bad
