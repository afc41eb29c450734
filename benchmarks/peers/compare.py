"""Runs geodp and its peers on the same work, side by side, and prints the ratios.

Usually called by run.sh, which makes the environment and builds our side first.
"""
import argparse
import importlib.metadata
import json
import math
import os
import pathlib
import platform
import shlex
import statistics
import subprocess
import sys

import network

HERE = pathlib.Path(__file__).resolve().parent
WORK = ["cnn:256", "cnn:1024", "cnn:4096", "resnet:256", "logistic:4096", "scattering:4096", "mlp:1024",
        "cifar10_head:1024"]
PRIVATE = ["opacus-hooks", "opacus-ghost", "torch-vmap", "jax-privacy", "jax-vmap"]
PLAIN = ["torch", "jax"]
# The allocator keeps what it once had, in place of asking the system for it at every step.
TUNED = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(16 << 30), "MALLOC_TOP_PAD_": str(256 << 20)}
VARIANTS = {
    "as it comes": ({}, []),
    "malloc": (TUNED, []),
    "malloc, channels last": (TUNED, ["--channels-last"]),
    "malloc, microbatch 256": (TUNED, ["--microbatch", "256"]),
}
MEMORY_BATCHES = (256, 16384)
# Bytes of an input value as our program keeps it: images as bytes, scattering features as halves, else floats.
INPUT_BYTES = {"cnn": 1, "resnet": 1, "logistic": 1, "scattering": 2, "cifar10_head": 2}
# Share of the machine that other programs may use during a measurement.
QUIET = 0.03


def main():
    options = parse()
    results = json.loads(options.json.read_text()) if options.keep and options.json.exists() else {}
    results["machine"] = machine()
    results.setdefault("roof", None)
    runs = results.setdefault("runs", {})
    for round_number in range(options.rounds):
        if options.roofline:
            results["roof"] = best_roof(results["roof"], roof_now(options))
        # Ours and theirs in turn, so that whatever the machine does meets all of them alike.
        for work in options.work:
            model, batch = work.split(":")
            for side, variant in sides(options, model, int(batch), runs.get(work, {})):
                one = measure_quietly(options, side, variant, model, int(batch))
                print(f"round {round_number + 1}  {work:14} {side:16} {variant:24} {describe(one)}", flush=True)
                if one is not None:
                    runs.setdefault(work, {}).setdefault(side, {}).setdefault(variant, []).append(one)
                    options.json.write_text(json.dumps(results, indent=1))
    if options.ours and options.memory:
        results["memory"] = {str(batch): measure(options, "geodp", "as it comes", "cnn", batch)["peak_rss_mib"]
                             for batch in MEMORY_BATCHES}
    report = summary(results, options.by)
    results["bars"] = report["bars"]
    options.json.write_text(json.dumps(results, indent=1))
    print(report["text"])
    return 0 if all(bar["holds"] for bar in report["bars"]) else 1


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ours", type=absolute, help="our throughput program; without it only peers run")
    parser.add_argument("--roofline", type=absolute, help="our program that measures what the machine can do at most")
    parser.add_argument("--work", nargs="+", default=WORK, help="model:batch, by default all that have a bar")
    parser.add_argument("--peers", nargs="*", default=PRIVATE + PLAIN, choices=PRIVATE + PLAIN)
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--rounds", type=int, default=3, help="0 only prints what is in the file (with --keep)")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of one measurement")
    parser.add_argument("--prefix", default="", help="a command to put before every measurement")
    parser.add_argument("--json", type=pathlib.Path, default=pathlib.Path("peers.json"))
    parser.add_argument("--keep", action="store_true", help="add to the results that are in the file")
    parser.add_argument("--best", action="store_true",
                        help="with --keep: measure each peer only in the setting that has been its best")
    parser.add_argument("--memory", action="store_true", help="also measure our memory at a small and a large batch")
    parser.add_argument("--by", choices=["samples_per_second", "best_step"], default="samples_per_second",
                        help="best_step takes every side's fastest step, for a machine that is not quiet")
    return parser.parse_args()


def absolute(path):
    """Measurements run in this folder, so a path of the caller's is made whole first."""
    return pathlib.Path(path).resolve()


def roof_now(options):
    command = shlex.split(options.prefix) + [str(options.roofline)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def best_roof(one, other):
    """The higher of two measurements of the roof: whatever else runs only lowers it."""
    return other if one is None else {key: max(one[key], other[key]) for key in other}


def sides(options, model, batch, known):
    if options.ours:
        yield "geodp", "as it comes"
        yield "geodp non-private", "as it comes"
    for peer in options.peers:
        measured = speeds_of(known.get(peer, {}), options.by) if options.best else {}
        for variant in [max(measured, key=measured.get)] if measured else options.variants:
            images = len(network.load(HERE / "models" / f"{model}.toml").inputs) == 3
            if "channels" in variant and not images or "microbatch" in variant and batch <= 256:
                continue
            if "microbatch" in variant and peer in PLAIN:
                continue
            yield peer, variant


def command_of(options, side, arguments, model, batch):
    """How each side is run: the one place that decides what our step includes."""
    work = ["--batch", str(batch), "--seconds", str(options.seconds)]
    ours = [str(options.ours), "--model", str(HERE / "models" / f"{model}.toml"), *work]
    if side == "geodp":
        return [*ours, "--private"]
    if side == "geodp non-private":
        return ours
    work = ["--model", model, *work]
    return [sys.executable, "-W", "ignore", str(HERE / "peer.py"), "--peer", side, *work, *arguments]


def measure(options, side, variant, model, batch):
    """Runs one measurement in its own process: its speed, and its peak memory."""
    environment, arguments = VARIANTS[variant]
    command = shlex.split(options.prefix) + command_of(options, side, arguments, model, batch)
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=HERE, env={**os.environ, **environment})
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        print(f"{' '.join(command)} ended with {child.returncode}", file=sys.stderr)
        return None
    said = json.loads(output.strip().splitlines()[-1])
    expected = network.load(HERE / "models" / f"{model}.toml").parameters()
    if said["dim"] != expected:
        raise SystemExit(f"{side} runs {model} with {said['dim']} parameters, but models/{model}.toml has {expected}")
    return {"samples_per_second": said["samples_per_second"], "best_step": said["best_step"],
            "peak_rss_mib": usage.ru_maxrss / 1024, "others": said.get("others")}


def measure_quietly(*arguments):
    """Measures again, up to three times, where other programs took part of the machine meanwhile."""
    for _ in range(3):
        one = measure(*arguments)
        if one is None or (one["others"] or 0.0) <= QUIET:
            break
    return one


def describe(one):
    if one is None:
        return "failed"
    return f"{one['samples_per_second']:10,.0f} samples/s (best step {one['best_step']:,.0f}) {one['peak_rss_mib']:,.0f} MiB{disturbed(one)}"


def disturbed(one):
    others = one.get("others") or 0.0
    return f"  DISTURBED: others used {100 * others:.0f} % of the machine" if others > QUIET else ""


def machine():
    versions = {}
    for package in ("torch", "opacus", "jax", "jax-privacy"):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    return {"cpu": cpu_name(), "cores": os.cpu_count(), "system": platform.platform(), "versions": versions}


def cpu_name():
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def speeds_of(of_side, by):
    """Median over the rounds, or the fastest step of all rounds."""
    over = statistics.median if by == "samples_per_second" else max
    return {variant: over([one[by] for one in ones]) for variant, ones in of_side.items()}


def summary(results, by):
    lines, speeds, roof = [], {}, results.get("roof")
    if roof:
        lines += ["", f"The roof: {roof['peak_gflops']:.0f} GFLOP/s of multiply-adds, "
                      f"{roof['bandwidth_gb_per_second']:.0f} GB/s read from memory."]
    for work, of_work in results["runs"].items():
        speeds[work] = {side: speeds_of(of_side, by) for side, of_side in of_work.items()}
        lines += table(work, speeds[work], roof)
    bars = judge(speeds, results.get("memory"), roof)
    if bars:
        lines += ["", "| bar | measured | needed | goal | holds |", "|---|---|---|---|---|"]
        lines += [f"| {bar['what']} | {bar['measured']:.2f} | {bar['sign']} {bar['bar']} | {bar['goal']} "
                  f"| {'yes' if bar['holds'] else 'NO'} |" for bar in bars]
    loud = sum(bool(disturbed(one)) for of_work in results["runs"].values() for of_side in of_work.values()
               for ones in of_side.values() for one in ones)
    if loud:
        lines += ["", f"{loud} measurements were disturbed by other programs: peers are faster than they seem here."]
    return {"text": "\n".join(lines), "bars": bars}


def shares(work, speed, roof):
    """Shares of the machine's peak and of its bandwidth: the FLOP of a step, and its inputs read once."""
    model = work.split(":")[0]
    plan = network.load(HERE / "models" / f"{model}.toml")
    read = math.prod(plan.inputs) * INPUT_BYTES.get(model, 4)
    return (speed * plan.step_flop() / (roof["peak_gflops"] * 1e9),
            speed * read / (roof["bandwidth_gb_per_second"] * 1e9))


def table(work, speeds, roof):
    ours = speeds.get("geodp", {}).get("as it comes")
    lines = ["", f"### {work.replace(':', ', B = ')}", "",
             "| who | as it comes | at its best | how | ours / its best |"
             + (" share of peak | of bandwidth |" if roof else ""),
             "|---|---:|---:|---|---:|" + ("---:|---:|" if roof else "")]
    for side, by_variant in sorted(speeds.items(), key=lambda item: -max(item[1].values())):
        variant, best = max(by_variant.items(), key=lambda item: item[1])
        plain = by_variant.get("as it comes")
        ratio = f"{ours / best:.2f}×" if ours else ""
        of_roof = "".join(f" {100 * share:.1f} % |" for share in shares(work, best, roof)) if roof else ""
        lines.append(f"| {side} | {f'{plain:,.0f}' if plain else ''} | {best:,.0f} | {variant} | {ratio} |{of_roof}")
    return lines


# For each work: (bar, goal) against Opacus' hooks, the best private peer, and non-private PyTorch.
BARS = {
    "cnn": {"best private peer": (4.5, 6.0), "non-private PyTorch": (2.5, 3.5)},
    "resnet": {"Opacus hooks": (5.0, 7.0), "non-private PyTorch": (2.5, 3.5)},
    "logistic": {"non-private PyTorch": (1.5, 3.0)},
    "scattering": {"non-private PyTorch": (1.5, 3.0)},
    "mlp": {"non-private PyTorch": (1.5, 3.0)},
    "cifar10_head": {"Opacus hooks": (3.0, 5.0), "non-private PyTorch": (1.2, 1.5)},
}


def judge(speeds, memory, roof):
    """Every bar for which there are measurements."""
    bars = []

    def bar(what, measured, sign, needed, goal):
        holds = measured >= needed if sign == "≥" else measured <= needed
        bars.append({"what": what, "measured": measured, "sign": sign, "bar": needed, "goal": goal, "holds": holds})

    for work, of_work in speeds.items():
        best = {side: max(by_variant.values()) for side, by_variant in of_work.items()}
        ours, where = best.get("geodp"), work.replace(":", ", B = ")
        if not ours:
            continue
        private = [best[peer] for peer in PRIVATE if peer in best]
        others = {"Opacus hooks": best.get("opacus-hooks"), "best private peer": max(private, default=None),
                  "non-private PyTorch": best.get("torch")}
        for other, (needed, goal) in BARS.get(work.split(":")[0], {}).items():
            if others[other]:
                bar(f"{where}: ours / {other}", ours / others[other], "≥", needed, goal)
        if "geodp non-private" in best:
            bar(f"{where}: our private time / our non-private time", best["geodp non-private"] / ours, "≤", 1.15, 1.05)
        if roof:
            bar(f"{where}: share of peak or bandwidth", max(shares(work, ours, roof)), "≥", 0.45, 0.65)
    if memory:
        small, large = (memory[str(batch)] for batch in MEMORY_BATCHES)
        bar("cnn: our peak memory at B = 16384 / at B = 256", large / small, "≤", 1.1, 1.0)
    return bars


if __name__ == "__main__":
    sys.exit(main())
