#!/bin/sh
# Makes the virtual environment of the real peer under target/, once. Prints the path of its python.
# Exit 75: there is no Python, or the package cannot be fetched; whoever asked says so and goes on.
set -u
here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../target}
venv=$target/peer/venv
ready=$target/peer/ready-$(cksum < "$here/requirements.txt" | cut -d' ' -f1)
if [ ! -e "$ready" ]; then
    mkdir -p "$target/peer"
    # Of several tests that start at once one makes it, the others wait.
    exec 9>"$target/peer/lock"
    command -v flock >/dev/null && flock 9
    if [ ! -e "$ready" ]; then
        [ -x "$venv/bin/python" ] || python3 -m venv "$venv" >&2 || exit 75
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt" >&2 || exit 75
        touch "$ready"
    fi
fi
echo "$venv/bin/python"
