#!/usr/bin/env bash
# Two hosts on one machine: network namespaces with a cable (veth) between them, started through mpirun's
# hosts file. The cable is pulled in the middle of a step: the job must end by itself with a message, and be
# resumed to the bits of one process. Wants root, iproute2, Open MPI 4 and a geodp with MPI.
#
#   benchmarks/cluster/hosts.sh [GEODP [CUTS]]        # target/release/geodp, 1 cut
#
# Only addresses of the namespaces made here are used; both are removed at the end.
set -euo pipefail
geodp=$(realpath "${1:-target/release/geodp}")
cuts=${2:-1}
name=geodp$$
work=$(mktemp -d)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

cleanup() {
  for host in "${name}a" "${name}b"; do ip netns del "$host" 2>/dev/null || true; done
  rm -rf "$work"
}
trap cleanup EXIT

for side in a b; do
  ip netns add "$name$side"
  ip -n "$name$side" link set lo up
done
ip link add "v$$a" netns "${name}a" type veth peer name "v$$b" netns "${name}b"
for side in a:1 b:2; do
  ip -n "$name${side%:*}" address add "10.213.7.${side#*:}/24" dev "v$$${side%:*}"
  ip -n "$name${side%:*}" link set "v$$${side%:*}" up
done

# What ssh is to real hosts: runs mpirun's command in the namespace that has the address.
cat >"$work/agent" <<AGENT
#!/bin/bash
while [[ \$1 == -* ]]; do shift; done
host=\$1; shift
case \$host in 10.213.7.1) exec ip netns exec ${name}a bash -c "\$*";; *) exec ip netns exec ${name}b bash -c "\$*";; esac
AGENT
chmod +x "$work/agent"
printf '10.213.7.1 slots=1\n10.213.7.2 slots=1\n' >"$work/hosts"

# on_hosts ARGUMENT…: geodp as one process a host. A lost network is noticed after about 14 seconds.
on_hosts() {
  timeout 120 ip netns exec "${name}a" mpirun --hostfile "$work/hosts" -n 2 --map-by node \
    --mca plm_rsh_agent "$work/agent" --mca btl tcp,self --mca pml ob1 \
    --mca btl_tcp_if_include 10.213.7.0/24 --mca oob_tcp_if_include 10.213.7.0/24 \
    --mca mpi_yield_when_idle 1 --mca oob_tcp_keepalive_time 5 --mca oob_tcp_keepalive_intvl 3 \
    --mca oob_tcp_keepalive_probes 3 "$geodp" "$@" --threads 1
}
same() {
  cmp "$work/one/model.safetensors" "$1/model.safetensors" && cmp "$work/one/statement.json" "$1/statement.json"
}

training=(--model cnn --noise-multiplier 1 --batch 2048 --seed 5 --steps 60 --checkpoint-every 5)
"$geodp" train "${training[@]}" --out "$work/one" >/dev/null 2>&1
on_hosts train "${training[@]}" --out "$work/two" >/dev/null 2>&1
same "$work/two"
echo "two hosts: the bits of one process"

for cut in $(seq "$cuts"); do
  run=$work/cut$cut
  on_hosts train "${training[@]}" --out "$run" >"$work/said" 2>&1 &
  job=$!
  # In the middle: after the first checkpoint, before the last step.
  until [ -s "$run/metrics.jsonl" ]; do
    kill -0 $job 2>/dev/null || { cat "$work/said"; echo "the job ended before the cut"; exit 1; }
    sleep 0.1
  done
  sleep "0.$((RANDOM % 10))"
  ip -n "${name}a" link set "v$$a" down
  began=$SECONDS code=0
  wait $job || code=$?
  [ $code -ne 0 ] && [ $code -ne 124 ] || { echo "the cut went unnoticed ($code)"; exit 1; }
  echo "cut $cut: ended after $((SECONDS - began)) s with code $code: $(grep -m1 -iE 'lost|daemon|connection' "$work/said" || tail -1 "$work/said")"
  # What the other host still runs ends, too: nobody is left behind.
  for _ in $(seq 100); do
    [ -z "$(ip netns pids "${name}b")" ] && break
    sleep 0.5
  done
  [ -z "$(ip netns pids "${name}b")" ] || { echo "the other host's process is left behind"; exit 1; }
  ip -n "${name}a" link set "v$$a" up
  on_hosts train --resume "$run" >/dev/null 2>&1
  same "$run"
  echo "cut $cut: resumed to the bits of one process"
done
