#!/usr/bin/env bash
# Makes the environments, builds both sides in release, runs the benchmarks. See README.md.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd); root=$(cd "$here/../.." && pwd)
what=${1:-all}
python=${PYTHON:-python3}
environment() { # environment NAME PACKAGE…: kept between runs
  local folder=$here/.venv-$1; shift
  [ -e "$folder/ready" ] || { "$python" -m venv "$folder" && "$folder/bin/pip" install -q "$@" && touch "$folder/ready"; }
}
cd "$root"
environment geodp numpy 'scikit-learn>=1.6' dp-accounting
"$here/.venv-geodp/bin/pip" install -q .
if [ "$what" = all ] || [ "$what" = overhead ]; then
  cargo build --release --locked
  "$here/.venv-geodp/bin/python" "$here/overhead.py" "${CARGO_TARGET_DIR:-target}/release/geodp"
fi
if [ "$what" = all ] || [ "$what" = accounting ]; then
  "$here/.venv-geodp/bin/python" "$here/accounting.py"
fi
if [ "$what" = all ] || [ "$what" = tables ]; then
  environment diffprivlib 'diffprivlib==0.6.6' 'scikit-learn<1.6' 'numpy<2.3'
  environment opacus numpy torch 'opacus>=1.5.4,<1.7'
  "$here/.venv-geodp/bin/python" "$here/tables.py" \
    --diffprivlib "$here/.venv-diffprivlib/bin/python" --opacus "$here/.venv-opacus/bin/python"
fi
