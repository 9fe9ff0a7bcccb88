#!/usr/bin/env bash
# Drives the program through the official agent SDKs (Python and TypeScript), and as editors do, against a scripted model.
# Usage: run.sh TOOLGATE FOLDER [ROUNDS [PROTOCOL…]]
# FOLDER keeps the SDKs between runs; the drivers of the SDKs run ROUNDS times (1); protocols: anthropic chat responses.
set -euo pipefail
toolgate=$(realpath "$1") folder=$2 rounds=${3:-1}
shift 2
[ $# -gt 0 ] && shift
protocols=${*:-anthropic chat}
here=$(cd "$(dirname "$0")" && pwd)
sdk=$here/sdk
python=$("$here/install.sh" "$folder" python "$sdk")
npm=$("$here/install.sh" "$folder" npm "$sdk")
acp_python=$("$here/install.sh" "$folder" python "$here/acp")
acp_npm=$("$here/install.sh" "$folder" npm "$here/acp")
export TOOLGATE_SANDBOXED=1
failed=0 failures=()

# Both drivers, side by side, on one protocol. Prints each scenario.
drive_sdks() {
    local protocol=$1 options=() log status=0 node
    case $protocol in
    anthropic) ;;
    chat) options=(--env 'OPENAI_BASE_URL={base}/v1') ;;
    responses) options=(--env 'OPENAI_BASE_URL={base}/v1' --env TOOLGATE_MODEL_API=responses) ;;
    *) echo "unknown protocol $protocol" >&2; return 2 ;;
    esac
    log=$(mktemp)
    HOST_SDK_DIR=$npm node "$sdk/drive_sdk.mjs" "$toolgate" "${options[@]}" > "$log" 2>&1 &
    node=$!
    "$python/bin/python" "$sdk/drive_sdk.py" "$toolgate" "${options[@]}" | sed "s/^/$protocol /" || status=1
    wait $node || status=1
    sed "s/^/$protocol /" "$log"
    rm -f "$log"
    return $status
}

for round in $(seq "$rounds"); do
    for protocol in $protocols; do
        if [ "$rounds" = 1 ]; then
            drive_sdks "$protocol" || failed=1
            continue
        fi
        # Of many rounds only what failed is worth reading.
        if ! output=$(drive_sdks "$protocol"); then
            failed=1 failures+=("round $round")
            grep -v ' PASS ' <<< "$output" || true
        fi
        echo "round $round of $rounds: $(grep -c ' PASS ' <<< "$output" || true) passed on $protocol"
    done
done
[ "$rounds" = 1 ] || echo "$rounds rounds, ${#failures[@]} with a failure"
for adapter in '' "--adapter $acp_npm"; do
    # shellcheck disable=SC2086  # two words
    "$acp_python/bin/python" "$here/drive_acp.py" "$toolgate" "$sdk/fake_model.py" $adapter || failed=1
done
python3 "$here/run_examples.py" "$toolgate" "$sdk/fake_model.py" "$python/bin/python" "$npm" || failed=1
exit $failed
