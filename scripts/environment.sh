#!/bin/sh
# environment.sh REQUIREMENTS STAMP: a virtual environment in .venv with these requirements, and a stamp when it is done.
# PYTHON names the interpreter to use; otherwise the newest suitable one is found.
set -eu

requirements=$1
stamp=$2

say() { printf '%s\n' "$*" >&2; }

suitable() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
        if command -v "$candidate" >/dev/null 2>&1 && suitable "$candidate"; then
            command -v "$candidate"
            return 0
        fi
    done
    say "Python 3.11 or newer is needed. On Debian 12, Ubuntu 24.04 or newer: apt-get install python3 python3-venv"
    say "Elsewhere install it, then run: make PYTHON=/path/to/python3.11"
    return 1
}

# Debian ships python3 without the parts that make an environment
ensure_venv() {
    "$1" -c 'import venv, ensurepip' 2>/dev/null && return 0
    package=$("$1" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "Installing $package, which $1 needs to make an environment."
        apt-get update -qq && apt-get install -y -qq "$package" >/dev/null && return 0
    fi
    say "$1 cannot make a virtual environment; install its venv package (on Debian or Ubuntu: sudo apt-get install $package) and run make again."
    return 1
}

if ! suitable .venv/bin/python || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    python=$(find_python)
    ensure_venv "$python"
    say "Making .venv with $("$python" --version)."
    rm -rf .venv
    "$python" -m venv .venv
fi

say "Installing $requirements into .venv (the first time takes some minutes)."
.venv/bin/python -m pip install --quiet --disable-pip-version-check -r "$requirements"
touch "$stamp"
