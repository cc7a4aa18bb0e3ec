"""A stand-in for build/xcorr-bench: its command line and reports, no measurements.

Told by the environment: FAKE_LIST (JSON file with the variants), FAKE_LOG (every measuring call is
appended as JSON, and what it reads of --points to FAKE_LOG.points), FAKE_FAULTS (JSON list of {"kind", "variant", "params", "left", "once"}; kind is
crash, crash-silently, hang, exit2, no-answer, incorrect, lost, lost-silently, busy or busier (launches
take longer); "once" names a file that remembers), FAKE_RECORD (JSON object that replaces fields of
every record), FAKE_MACHINE (the same for --machine), FAKE_STEP (microseconds by which a repetition is longer than the one before).
"""

import json
import os
import signal
import sys


def option(name, default=""):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def variant(name, backend="cpu", kind="definition", points=("",)):
    same = {"parent": "", "summary": name, "source": "test", "precisions": ["fp32"], "axes": [], "drops": []}
    own = {"id": name, "family": backend, "backend": backend, "algorithm_class": kind, "points": list(points)}
    made = {
        "modes": ["stream"],
        "emulated": False,
        "source_hash": "a" * 16,
        "source_file": f"algorithms/{backend}/{name}.cpp",
    }
    return {**same, **own, **made, "forms": ["one-to-one", "one-to-many", "n-to-mn", "n-to-m"]}


VARIANTS = [variant("cpu_definition"), variant("cpu_fft", kind="fft", points=("threads=1", "threads=all"))]


def variants():
    path = os.environ.get("FAKE_LIST")
    if not path:
        return VARIANTS
    with open(path) as file:
        return json.load(file)


def fault_of(name, params, left):
    for fault in json.loads(os.environ.get("FAKE_FAULTS", "[]")):
        asked = {"variant": name, "params": params, "left": left}
        if any(fault.get(key, value) != value for key, value in asked.items()):
            continue
        if "once" in fault:
            if os.path.exists(fault["once"]):
                continue
            open(fault["once"], "w").close()
        return fault["kind"]
    return ""


def main():
    device = option("--device", "cpu")
    if "--list=json" in sys.argv:
        print(json.dumps({"grid": "quick", "variants": variants()}))
        return 0
    if "--machine" in sys.argv:
        if device != "cpu" and not os.environ.get("FAKE_GPU"):
            print("error: device cuda:0: no GPU; use --device cpu", file=sys.stderr)
            return 2
        key = "fake-2-cores" if device == "cpu" else "fake-gpu"
        facts = {"machine_key": key, "device": device, "cores": 2, "memory_bytes": 1 << 30, "clock_mhz": 1000}
        facts |= {"throttle_reasons": "", "package_version": "0.0"}
        print(json.dumps(facts | json.loads(os.environ.get("FAKE_MACHINE", "{}"))))
        return 0
    if os.environ.get("FAKE_LOG"):
        with open(os.environ["FAKE_LOG"], "a") as file:
            file.write(json.dumps([os.getpid(), *sys.argv[1:]]) + "\n")
    return measure(device)


def points():
    """What was asked for, a point at a time."""
    if "--points" in sys.argv:
        lines = [json.loads(line) for line in sys.stdin]
        if os.environ.get("FAKE_LOG"):
            with open(os.environ["FAKE_LOG"] + ".points", "a") as file:
                file.write(json.dumps(lines) + "\n")
        return lines
    names = ("variant", "form", "left", "right", "lefts", "rights", "window", "mode", "input", "precision")
    common = {name: option("--" + name) for name in names}
    entry = next(one for one in variants() if one["id"] == common["variant"])
    asked = [sys.argv[i + 1] for i, word in enumerate(sys.argv) if word == "--params"] or entry["points"]
    return [{**common, "params": params} for params in asked]


def measure(device):
    print("---- a table of Google Benchmark ----", flush=True)
    bad = False
    for number, asked in enumerate(points()):
        asked = {key: str(value) for key, value in asked.items()}
        name, params, left = asked["variant"], asked["params"], asked["left"]
        entry = next(one for one in variants() if one["id"] == name)
        place = {"point": number} if "--points" in sys.argv else {}
        problem = "{form}/{left}/{right}/{lefts}:{rights}/{window}".format(**asked)
        start = {"variant": name, "params": params, "problem": problem, "mode": asked["mode"]}
        print(json.dumps({"starting": start, **place}), flush=True)
        kind = fault_of(name, params, left)
        if kind.startswith("crash"):
            if kind == "crash":
                print("assertion failed", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGSEGV)
        if kind == "hang":
            while True:
                signal.pause()
        if kind == "exit2":
            print("error: window: not legal", file=sys.stderr)
            return 2
        if kind in ("no-answer", "lost-silently"):
            return 0 if kind == "no-answer" else 3
        outcome, reason = "passed", ""
        if entry["backend"] == "cuda" and device == "cpu":
            outcome, reason = "not_supported", "needs a GPU"
        if kind == "not_supported":
            outcome, reason = "not_supported", "same no: the variant computes only yes"
        if kind == "incorrect":
            outcome, reason, bad = "incorrect", "element 3 is NaN", True
        if kind == "lost":
            outcome, reason = "failed", "an illegal memory access was encountered"
        lefts, rights = int(asked["lefts"]), int(asked["rights"])
        rows, cols = map(int, left.split("x"))
        right_rows, right_cols = map(int, asked["right"].split("x"))
        fmas = (rows * cols) ** 2 * rights
        record = {key: asked[key] for key in "variant params form window mode input precision".split()}
        record |= {key: entry[key] for key in ("family", "backend", "source_hash")}
        record |= {"left_rows": rows, "left_cols": cols, "right_rows": right_rows, "right_cols": right_cols}
        record |= {"lefts": lefts, "rights": rights, "fmas": fmas, "bytes": 4, "seed": int(option("--seed"))}
        record |= {"outcome": outcome, "reason": reason, "max_error": 1e-6, "argmax_agrees": True, "plan_us": None}
        record |= {
            "machine_key": "fake-2-cores",
            "launch_us": {"busy": 4.6, "busier": 9}.get(kind, 3),
            "repetitions": [],
        }
        phases = dict.fromkeys(("forward_us", "hadamard_us", "inverse_us"))
        for i in range(int(asked.get("repetitions") or option("--repetitions")) if outcome == "passed" else 0):
            time = {
                "repetition": i,
                "iterations": 10,
                "compute_us": fmas * 1e-6 + float(os.environ.get("FAKE_STEP", "0.1")) * i,
            }
            record["repetitions"].append({**time, **phases})
        record |= json.loads(os.environ.get("FAKE_RECORD", "{}"))
        print(json.dumps({"record": record, **place}), flush=True)
        if kind == "lost":
            print("error: device: lost", file=sys.stderr)
            return 3
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
