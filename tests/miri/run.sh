#!/usr/bin/env bash
# Runs the whole protocol of the border under Miri, with an engine that is linked in (Miri cannot open libraries).
# Takes some minutes the first time, which is why it is a command of its own.
set -euo pipefail
cd "$(dirname "$0")/../.."
if ! cargo +nightly miri --version >/dev/null 2>&1; then
  echo "skipped: there is no Miri here; \`rustup +nightly component add miri\` brings it"
  exit 0
fi
MIRIFLAGS="${MIRIFLAGS:--Zmiri-disable-isolation}" exec cargo +nightly miri test -p hermes-tests --test miri
