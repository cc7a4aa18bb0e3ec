"""What is measured (TOML), and the programs that measure, compare, publish and read real input."""

from xcorr.moved import tell

tell(
    __name__,
    {
        "problem": "xcorr.problem",
        "auto": "xcorr.auto",
        "correlate": "xcorr.correlate",
        "run": "experiments.driver.run",
        "store": "experiments.driver.store",
        "compare_artifact": "experiments.compare.artifact",
        "compare_reference": "experiments.compare.reference",
        "compare_scipy": "experiments.compare.scipy_peer",
        "instruction_mix": "experiments.compare.instruction_mix",
        "resources": "experiments.compare.resources",
        "equivalent": "experiments.compare.equivalent",
        "publish": "experiments.published.publish",
        "import_published": "experiments.published.importing",
        "auto_table": "experiments.published.auto_table",
        "real.ebsd": "experiments.inputs.ebsd",
        "real.photo": "experiments.inputs.photo",
        "real": "experiments.inputs",
    },
)
