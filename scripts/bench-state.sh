#!/usr/bin/env bash
# Prints the figures of the stores and of ToolSearch, each beside its bar:
#   scripts/bench-state.sh [OPERATIONS OF EACH OF 8 PROCESSES] [NOTES]
# Set PROFILE=dev for a quick look whose figures mean nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${PROFILE:-release}
cargo run --quiet --locked --profile "$profile" -p toolgate-state --example store_speed -- "${1:-5000}" "${2:-100000}"
cargo run --quiet --locked --profile "$profile" -p toolgate-tools --no-default-features --example tool_search_speed
