"""What is measured (TOML), and the programs that measure, compare, publish and read real input."""

from xcorr.moved import tell

# Old name below `experiments` -> module of today.
MOVED = {
    **{name: f"xcorr.{name}" for name in ("auto", "correlate", "errors", "fft_range", "problem")},
    **{f"real.{name}": f"xcorr.{name}" for name in ("files", "matrices", "outputs", "peaks", "stream")},
    **{
        name: f"experiments.driver.{name}"
        for name in (
            "bench",
            "best",
            "identity",
            "launches",
            "lock",
            "points",
            "predict",
            "run",
            "run_records",
            "schema",
            "store",
            "studies",
            "sweep",
        )
    },
    **{
        f"compare_{old}": f"experiments.compare.{new}"
        for old, new in {"artifact": "artifact", "reference": "reference", "scipy": "scipy_peer"}.items()
    },
    **{name: f"experiments.compare.{name}" for name in ("instruction_mix", "resources", "equivalent")},
    **{
        f"equivalence.{name}": f"experiments.compare.equivalence.{name}"
        for name in ("builds", "calls", "machine_code", "times")
    },
    "publish": "experiments.published.publish",
    "import_published": "experiments.published.importing",
    "auto_table": "experiments.published.auto_table",
    "published_errors": "experiments.published.l2_errors",
    "published_files": "experiments.published.artifact_files",
    "published_guard": "experiments.published.guard",
    **{
        f"real.{name}": f"experiments.inputs.{name}"
        for name in ("accuracy", "common", "datasets", "ebsd", "patterns", "photo")
    },
}

tell(__name__, MOVED)
