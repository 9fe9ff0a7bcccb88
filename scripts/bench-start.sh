#!/usr/bin/env bash
# How long the release binary takes to print its tools, how much memory that needs, and how large it is.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --quiet --release --package toolgate
binary=${CARGO_TARGET_DIR:-target}/release/toolgate
exec python3 - "$binary" <<'PY'
import os, statistics, subprocess, sys, tempfile, time
binary = os.path.abspath(sys.argv[1])
with tempfile.TemporaryDirectory() as place:
    env = {"PATH": os.environ["PATH"], "HOME": place}
    times = []
    for _ in range(60):
        start = time.perf_counter()
        subprocess.run([binary, "tools", "--format", "json"], cwd=place, env=env, stdout=subprocess.DEVNULL, check=True)
        times.append((time.perf_counter() - start) * 1000)
    floor = []
    for _ in range(60):
        start = time.perf_counter()
        subprocess.run(["/bin/true"], cwd=place, env=env, check=True)
        floor.append((time.perf_counter() - start) * 1000)
    # Of this child alone: the children of this process include the build.
    child = os.posix_spawn(binary, [binary, "tools", "--format", "json"], env, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    resident = os.wait4(child, 0)[2].ru_maxrss / 1024
print(f"start to tools printed: median {statistics.median(times):.1f} ms, best {min(times):.1f} ms "
      f"(/bin/true: median {statistics.median(floor):.1f} ms)")
print(f"resident at most: {resident:.1f} MB")
print(f"binary: {os.path.getsize(binary) / 1e6:.1f} MB")
PY
