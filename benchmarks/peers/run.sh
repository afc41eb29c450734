#!/usr/bin/env bash
# Makes the peers' Python environment, builds our side, runs both on the same work, prints the ratios.
# Usage: run.sh [VENV_DIR] [options of compare.py]      (VENV_DIR is .venv beside this script if left out)
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
venv="$here/.venv"
if [[ $# -gt 0 && "$1" != -* ]]; then
    mkdir -p "$1"
    venv="$(cd "$1" && pwd)"
    shift
fi

if ! "$venv/bin/python" -c "import torch, opacus, jax, jax_privacy, safetensors" 2>/dev/null; then
    echo "installing the peers into $venv (torch is large)"
    "${PYTHON:-python3}" -m venv "$venv"
    "$venv/bin/pip" install --quiet --requirement "$here/requirements.txt"
fi

root="$(cd "$here/../.." && pwd)"
cargo build --release --manifest-path "$root/Cargo.toml" -p geodp --example throughput --example roofline
target="${CARGO_TARGET_DIR:-$root/target}"
exec "$venv/bin/python" "$here/compare.py" --ours "$target/release/examples/throughput" \
    --roofline "$target/release/examples/roofline" --memory "$@"
