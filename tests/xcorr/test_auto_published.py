"""What auto takes from published times for velocimetry and template matching on a GPU. No GPU is needed: a stand-in has the
variants that matter, and what each refuses."""

import pytest

from experiments.inputs import tracking
from xcorr.choice.auto import Auto
from xcorr.commands.velocimetry import fit_of, search_of
from xcorr.problem import Problem

MACHINE = "nvidia-h200-132-sm-140-gib"
PEAKS = ("surface", "peak")


def entry(name, family, parent="", algorithm_class="fft", points=("",), results=("surface",), scores=("covariance",)):
    return {
        **{"id": name, "family": family, "backend": "cuda", "algorithm_class": algorithm_class, "parent": parent},
        **{"precisions": ["fp32"], "forms": ["one-to-one", "one-to-many", "n-to-mn", "n-to-m"], "modes": ["stream"]},
        **{"points": list(points), "results": list(results), "scores": ["product", *scores], "source_hash": name},
    }


def sides_of(problem):
    return max(*problem.left, *problem.right)


class Gpu:
    """Variants of the machine; each says what it computes, as the `supports` of its file does."""

    VARIANTS = (
        (
            entry("fused_fft_windows", "fused_fft", "fused_fft_warp_peak", results=PEAKS),
            lambda it: it.right == (64, 64) if it.fields.boundary == "circular" else sides_of(it) <= 32,
        ),
        (
            entry("fused_fft_warp_peak", "fused_fft", "fused_fft_warp", results=PEAKS),
            lambda it: it.right in ((32, 32), (16, 16)) if it.fields.boundary == "circular" else sides_of(it) <= 16,
        ),
        (
            entry("fused_fft_block_peak", "fused_fft", "fused_fft_block", results=PEAKS),
            lambda it: sides_of(it) in (32, 48, 64, 96, 128)
            if it.fields.boundary == "circular"
            else sides_of(it) <= 96,
        ),
        (
            entry("overlap_wise", "overlap_wise", algorithm_class="definition", scores=("covariance", "zncc")),
            lambda it: True,
        ),
        (
            entry("template_direct", "template_matching", points=["overlap_tile=4x4;row_parts=4"], results=PEAKS)
            | {"scores": ["zncc"], "algorithm_class": "definition"},
            lambda it: it.fields.views == "dense",
        ),
        (
            entry("template_fft", "fused_fft", points=["tile=128", "tile=192"], results=PEAKS, scores=("zncc",)),
            lambda it: it.fields.views == "dense",
        ),
        (
            entry("cufft_normalised", "fft", points=["chunk_mib=32", "chunk_mib=1024"], scores=("zncc",)),
            lambda it: it.fields.views == "dense",
        ),
    )

    def machine(self, device):
        return {"machine_key": MACHINE, "compute_capability": "9.0", "cores": 16}

    def variants(self):
        return [one for one, _ in self.VARIANTS]

    def supports(self, problem, *, variant, **_):
        ((listed, computes),) = ((one, computes) for one, computes in self.VARIANTS if one["id"] == variant)
        return "" if problem.fields.score_kind in listed["scores"] and computes(problem) else "not of this variant"


@pytest.fixture(scope="module")
def auto():
    return Auto(Gpu(), "cuda")


@pytest.mark.parametrize("pairs", [225, 961, 3969, 16129])
@pytest.mark.parametrize(
    ("window", "boundary", "fastest"),
    [
        (32, "zero", "fused_fft_windows"),
        (32, "circular", "fused_fft_warp_peak"),  # fused_fft_windows refuses it
        (64, "circular", "fused_fft_windows"),
        (64, "zero", "fused_fft_block_peak"),  # the only transform in one kernel
    ],
)
def test_windows_of_velocimetry_are_read_where_they_are(auto, window, boundary, fastest, pairs):
    choice = auto.choose(search_of(window, pairs, boundary))
    assert choice.variant == fastest, choice.why


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("pairs", [1, 225, 16129])
def test_what_velocimetry_measures_is_computed_on_the_gpu_too(auto, pairs, masked):
    for problem in (fit_of(32, "gaussian", 2, masked, pairs), search_of(32, pairs, "zero", masked)):
        expected = problem.fields.score.startswith("zncc")  # the only one that has it of windows of a frame
        assert (auto.choose(problem).variant == "overlap_wise") is expected


@pytest.mark.parametrize("shapes", [((64, 64), (1080, 1920)), ((64, 64), (240, 320)), ((16, 16), (480, 640))])
def test_a_template_in_a_frame_is_what_was_measured_in_another_form(auto, shapes):
    """One pair is n-to-m of 1:1, whose times are published: cufft_normalised takes two to ten times as long there."""
    one, same = (
        Problem(form, *shapes, window="valid", score="zncc", result="peak") for form in ("one-to-one", "n-to-m")
    )
    choice = auto.choose(one)
    assert choice.variant == "template_fft" and choice.us == pytest.approx(auto.choose(same).us)
    assert choice.why.startswith("measured")


def test_tracking_takes_a_variant_of_template_matching(auto):
    problem = tracking.request_of()
    assert problem.fields.views == "dense"
    choice = auto.choose(problem)
    assert choice.variant in ("template_direct", "template_fft"), choice.why
