# Sourced by run and full: the environment and the verbs that both tiers share. Each verb is one function.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
ROOT=$PWD
VENV=$ROOT/.ci-venv

python_at_least_3_11() {
    local candidate
    for candidate in "${PYTHON:-python3}" python3.13 python3.12 python3.11 python; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    echo "ckdn needs Python 3.11 or newer; set PYTHON to one" >&2
    return 1
}

# The project's own environment. It is made once; pip then only looks whether pyproject.toml asks for something new.
prepare() {
    if ! "$VENV/bin/python" -c '' 2>/dev/null; then
        local python
        python=$(python_at_least_3_11)
        rm -rf "$VENV"
        "$python" -m venv "$VENV"
    fi
    if [ ! -e "$VENV/installed" ] || [ pyproject.toml -nt "$VENV/installed" ]; then
        "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check -e '.[dev]'
        touch "$VENV/installed"
    fi
    # The README's commands find this python first.
    export PATH=$VENV/bin:$PATH
    unset PYTHONPATH PYTHONHOME
}

say() {
    printf '\n== %s\n' "$*"
}

lint() {
    say lint
    python -m ruff check .
    python -m ruff format --check .
}

types() {
    say types
    python -m mypy
}

# The specs: each loads, follows the conventions, and does on its captured output what its fixtures say.
catalogue() {
    say catalogue
    python -m ckdn spec lint
    python -m ckdn spec test
}

# What is generated from other files is current.
docs() {
    say docs
    python .ci/generate.py --check
}

# verbs NAME…: runs them in order; those that the tier names, when called without any.
verbs() {
    local verb
    for verb in "$@"; do
        case $verb in
            lint | types | catalogue | docs | package | tests) ;;
            test) verb=tests ;; # `test` is bash's own
            *)
                echo "usage: $0 [lint|types|docs|catalogue|package|test]…" >&2
                exit 2
                ;;
        esac
        "$verb"
    done
}
