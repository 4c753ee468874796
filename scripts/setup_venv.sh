#!/bin/sh
# Make .venv with the pinned packages. TORCH=<pip requirement> takes another PyTorch build.
set -eu
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3.11}
VENV=${VENV:-.venv}

# Debian keeps ensurepip in a package of its own.
"$PYTHON" -c 'import ensurepip' 2>/dev/null || scripts/system_packages.sh venv
"$VENV/bin/python" -m pip --version >/dev/null 2>&1 || "$PYTHON" -m venv --clear "$VENV"
pip() { "$VENV/bin/python" -m pip -qq --disable-pip-version-check "$@"; }

# PyTorch first, so that nothing else chooses its build. The CPU build is much smaller; an
# index that has only the default build serves that one.
if [ -n "${TORCH:-}" ]; then
    pip install "$TORCH"
elif ! pip install "torch==2.13.0+cpu" 2>/dev/null; then
    pip install "torch==2.13.0"
fi
pip install --editable ".[test]"
[ -z "${TORCH:-}" ] || pip install "$TORCH"

# torchaudio's wheel holds CUDA libraries, which cannot load beside a CPU build of PyTorch.
# Without them it falls back to Python, which is all that the engines use.
if [ "$("$VENV/bin/python" -c 'import torch; print(torch.version.cuda)')" = None ]; then
    rm -f "$VENV"/lib/python3.11/site-packages/torchaudio/lib/*.so
fi
