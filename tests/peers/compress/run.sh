#!/usr/bin/env bash
# The same pass here and in Hermes (Python), in the same run: 10,000 messages, a helper that answers at once.
# Needs python3 and a package registry; without either it says so and ends well. Everything it makes is under target/.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
work=${CARGO_TARGET_DIR:-$root/target}/peers/compress
version=0.19.0
mkdir -p "$work"

skip() { echo "skipped: $1"; exit 0; }
command -v python3 >/dev/null || skip "there is no python3"
if [ ! -x "$work/venv/bin/python" ] || ! "$work/venv/bin/python" -c "import importlib.metadata as m; assert m.version('hermes-agent') == '$version'" 2>/dev/null; then
  python3 -m venv "$work/venv" >"$work/venv.log" 2>&1 || skip "python3 cannot make a virtual environment ($work/venv.log)"
  "$work/venv/bin/pip" install --quiet "hermes-agent==$version" >"$work/pip.log" 2>&1 || skip "hermes-agent $version could not be installed ($work/pip.log)"
fi

cd "$root"
cargo bench --quiet -p hermes-tests --bench compressor -- --write "$work/transcript.jsonl"
ours=$(cargo bench --quiet -p hermes-tests --bench compressor | sed -n 's/^ours_ms=//p')
theirs=$("$work/venv/bin/python" "$here/peer.py" "$work/transcript.jsonl" | sed -n 's/^theirs_ms=//p')
[ -n "$theirs" ] || skip "the peer gave no figure"
awk -v ours="$ours" -v theirs="$theirs" 'BEGIN {
  printf "ours %.1f ms, hermes-agent %.1f ms, ratio %.1f (expected: 20 or more)\n", ours, theirs, theirs / ours
  exit !(theirs / ours >= 20)
}'
