#!/usr/bin/env bash
# How long `hermes chat -q` takes of its own until the first token of an answer is on stdout, process start included, and
# how long Hermes (Python) takes for the same, in the same run, against the same local server.
# Without python3 or a package registry it says so and ends well. Everything it makes is under target/.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
skip() { echo "skipped: $1"; exit 0; }
command -v python3 >/dev/null || skip "there is no python3"
cd "$root"
cargo build --release --quiet --workspace
ours=${CARGO_TARGET_DIR:-$root/target}/release/hermes
peer=$(sh "$here/../setup.sh") || peer=
[ -n "$peer" ] || echo "the peer cannot be installed here; ours alone"
python3 "$here/measure.py" "$ours" ${peer:+"$(dirname "$peer")/hermes"}
