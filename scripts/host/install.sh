#!/usr/bin/env bash
# Installs the official agent SDKs from the registries, once, and says where they are.
# Usage: install.sh FOLDER npm|python LISTS   (FOLDER keeps them between runs; LISTS holds package.json and
# requirements.txt; prints the folder of the SDK)
# The command line programs that the SDKs bundle (365 MB each) are left out: ours is driven instead.
set -euo pipefail
folder=$1 kind=$2 lists=$(cd "$3" && pwd)
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
case $kind in
npm) list=package.json ;;
python) list=requirements.txt ;;
*) exit 2 ;;
esac
sdk=$folder/$kind-$(sha256sum "$lists/$list" | cut -c1-16)
if [ ! -f "$sdk/ready" ]; then
    echo "installing the agent SDK of $list (once)" >&2
    rm -rf "$sdk"
    mkdir -p "$sdk"
    # A registry that stumbles is asked again; one that is not there is an error with its words.
    for attempt in 1 2 3; do
        if case $kind in
            npm)
                cp "$lists/$list" "$sdk/package.json" && chmod u+w "$sdk/package.json" &&
                    (cd "$sdk" && timeout 400 npm install --omit=optional --no-fund --no-audit --loglevel=error)
                ;;
            python)
                python3 -m venv "$sdk" &&
                    timeout 400 "$sdk/bin/pip" install --quiet --disable-pip-version-check \
                        --no-binary claude-agent-sdk --requirement "$lists/$list"
                ;;
            esac > "$sdk.log" 2>&1; then
            touch "$sdk/ready"
            break
        fi
        [ $attempt = 3 ] && { tail -20 "$sdk.log" >&2; exit 1; }
        sleep $((attempt * 3))
    done
fi
echo "$sdk"
