#!/usr/bin/env bash
# Makes .venv with everything in requirements-dev.txt, a Java for Spark and the Delta Lake jars.
# Prints one line per step that takes time; the full output of a failed step; nothing when all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.venv
stamp="$venv/.ready-$(cat requirements-dev.txt pyproject.toml scripts/setup.sh | sha256sum | cut -c1-16)"
[ -f "$stamp" ] && [ -z "${FORCE:-}" ] && exit 0

log=$(mktemp)
trap 'rm -f "$log"' EXIT

say() { printf '  %s\n' "$*" >&2; }
fail() { printf '\nSet-up stopped: %s\n' "$*" >&2; exit 1; }

# step <what> <command...>: runs it quietly, shows its time, and its output if it fails.
step() {
    local what=$1 start=$SECONDS
    shift
    printf '  %s … ' "$what" >&2
    if "$@" >"$log" 2>&1; then
        printf '%ss\n' $((SECONDS - start)) >&2
    else
        printf 'failed\n' >&2
        tail -n 30 "$log" >&2
        return 1
    fi
}

can_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }
apt_install() {
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@"
}

find_python() {
    local candidate
    for candidate in "${PYTHON:-}" python3.11 python3 python3.12 python3.13; do
        [ -n "$candidate" ] || continue
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    fail "Python 3.11, 3.12 or 3.13 is needed. Debian 12: apt-get install python3 python3-venv; or set PYTHON=/path/to/python."
}

make_venv() {
    local python=$1
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        can_apt || fail "Python's venv module is missing. Run: apt-get install python3-venv"
        step "Installing python3-venv" apt_install python3-venv
    fi
    step "Creating the virtual environment in $venv" "$python" -m venv --clear "$venv"
}

find_java() { PYTHONPATH=src "$venv/bin/python" -c 'from trickle.java import find_java; find_java()'; }

echo "Setting up (once; a minute or two on a new machine)" >&2
python=$(find_python)
"$venv/bin/python" -c 'import pip' 2>/dev/null || make_venv "$python"
rm -f "$venv"/.ready-*
step "Installing the Python packages" \
    "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --require-hashes -r requirements-dev.txt
step "Installing trickle" \
    "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --no-deps --no-build-isolation -e .
if ! find_java >"$log" 2>&1; then
    can_apt || fail "$(tail -n 1 "$log")"
    step "Installing Java 17 (openjdk-17-jre-headless)" apt_install openjdk-17-jre-headless ||
        fail "Java 17 or 21 is needed and apt could not install it. Run: apt-get install openjdk-17-jre-headless"
    find_java >"$log" 2>&1 || fail "$(tail -n 1 "$log")"
fi
step "Fetching the Delta Lake jars" "$venv/bin/python" -c 'from trickle.session import prefetch; prefetch()'
step "Fetching Hadoop's client of S3, for the tests" "$venv/bin/python" -c 'from trickle.jars import s3_jars; s3_jars()'
touch "$stamp"
say "Ready."
