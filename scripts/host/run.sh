#!/usr/bin/env bash
# Drives the program through the official agent SDKs (Python and TypeScript), against a scripted model.
# Usage: run.sh TOOLGATE FOLDER [PROTOCOL…]   (FOLDER keeps the SDKs between runs; protocols: anthropic chat responses)
set -euo pipefail
toolgate=$(realpath "$1") folder=$2
shift 2
protocols=${*:-anthropic chat}
here=$(cd "$(dirname "$0")" && pwd)
bench=$(cd "$here/../../../shared/bench/host" && pwd)
python=$("$here/install.sh" "$folder" python "$bench")
npm=$("$here/install.sh" "$folder" npm "$bench")
export TOOLGATE_SANDBOXED=1
failed=0
for protocol in $protocols; do
    case $protocol in
    anthropic) options=() ;;
    chat) options=(--env 'OPENAI_BASE_URL={base}/v1') ;;
    responses) options=(--env 'OPENAI_BASE_URL={base}/v1' --env TOOLGATE_MODEL_API=responses) ;;
    *) echo "unknown protocol $protocol" >&2; exit 2 ;;
    esac
    log=$(mktemp)
    HOST_SDK_DIR=$npm node "$bench/drive_sdk.mjs" "$toolgate" "${options[@]}" > "$log" 2>&1 &
    node=$!
    "$python/bin/python" "$bench/drive_sdk.py" "$toolgate" "${options[@]}" | sed "s/^/$protocol /" || failed=1
    wait $node || failed=1
    sed "s/^/$protocol /" "$log"
    rm -f "$log"
done
python3 "$here/run_examples.py" "$toolgate" "$bench/fake_model.py" "$python/bin/python" "$npm" || failed=1
exit $failed
