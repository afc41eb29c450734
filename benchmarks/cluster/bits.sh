#!/usr/bin/env bash
# Every kind of private training with 1 to 4 processes and 1 or 2 threads each: model, statement and ledger of
# one process without MPI. A ledger names its run by chance, so names and the hashes that hold them are left out.
#
#   benchmarks/cluster/bits.sh [GEODP [PLAIN]]      # target/release/geodp for both
set -euo pipefail
geodp=$(realpath "${1:-target/release/geodp}")
plain=$(realpath "${2:-$geodp}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

python3 - "$work" <<'PYTHON'
import sys
with open(sys.argv[1] + "/visits.csv", "w") as out:
    out.write("patient,a,b,ill\n")
    for row in range(4000):
        a, b = row * 7 % 113, row * 5 % 31
        out.write(f"p{row * 13 % 900},{a},{'' if row % 17 == 0 else b},{'yes' if a > 50 + row % 9 else 'no'}\n")
open(sys.argv[1] + "/schema.toml", "w").write(
    '[label]\ncolumn = "ill"\nclasses = ["no", "yes"]\n[unit]\ncolumn = "patient"\nmost_rows = 3\n'
    '[[feature]]\ncolumn = "a"\nrange = [0, 100]\n[[feature]]\ncolumn = "b"\nrange = [0, 30]\nmissing = "skip"\n')
PYTHON

ledger() { sed -E 's/"(id|previous|hash)":"[0-9a-f]*"//g' "$1/ledger.jsonl"; }
digits="--noise-multiplier 1 --batch 512 --seed 5"
table="--data $work/visits.csv --schema $work/schema.toml --noise-multiplier 1 --batch 200 --seed 5"
while read -r name arguments; do
  # shellcheck disable=SC2086 — a line of arguments is several.
  "$plain" train $arguments --out "$work/$name" >/dev/null 2>&1 </dev/null
  for ranks in 1 2 3 4; do
    for threads in 1 2; do
      run=$work/$name-$ranks-$threads
      mpirun --oversubscribe --mca mpi_yield_when_idle 1 -n $ranks "$geodp" train $arguments --out "$run" \
        --threads $threads >"$work/said" 2>&1 </dev/null || { cat "$work/said"; exit 1; }
      cmp "$work/$name/model.safetensors" "$run/model.safetensors"
      cmp "$work/$name/statement.json" "$run/statement.json"
      cmp <(ledger "$work/$name") <(ledger "$run")
    done
  done
  echo "$name: 1, 2, 3, 4 processes x 1, 2 threads: model, statement and ledger of one process"
done <<KINDS
cnn --model cnn --steps 4 $digits
resnet --model resnet --steps 2 --noise-multiplier 1 --batch 128 --seed 5
logistic --model logistic --steps 10 $digits
geodp --model cnn --mechanism geodp --beta 0.1 --steps 4 $digits
certified --model cnn --mechanism geodp-certified --steps 4 $digits
importance --model cnn --importance --steps 4 $digits
sur --model logistic --select sur --steps 10 $digits
units --model logistic --steps 10 $table
units-mlp --model mlp --steps 10 $table
KINDS
