"""xcorr.correlate and xcorr.plan on arrays of the host, against SciPy, and against the library's float64 reference for scores."""

import subprocess
import sys
import threading
import types

import numpy as np
import pytest
from calls import one_line
from hangs import HANG_S
from scipy import signal

import xcorr
from xcorr.errors import LibraryError, UserError
from xcorr.paths import ROOT
from xcorr.problem import Problem

pytestmark = pytest.mark.usefixtures("library")
RNG = np.random.default_rng(7)
LEFT, RIGHT = RNG.normal(size=(3, 5, 6)).astype("f4"), RNG.normal(size=(6, 8, 7)).astype("f4")


def expected(left, right, mode="full"):
    return signal.correlate2d(right.astype("f8"), left.astype("f8"), mode)


def close(made, truth, tolerance=1e-5):
    assert made.shape == truth.shape
    np.testing.assert_allclose(made, truth, rtol=0, atol=tolerance * max(1, np.abs(truth).max()))


def stacked(lefts, rights, mode="full"):
    return np.stack([[expected(left, right, mode) for right in rights] for left in lefts])


@pytest.mark.parametrize(
    "left, right, shape",
    [(LEFT[0], RIGHT[0], ()), (LEFT[0], RIGHT, (6,)), (LEFT, RIGHT, (3, 6)), (LEFT, RIGHT[0], (3,))],
    ids=["one-to-one", "one-to-many", "n-to-m", "n-to-1"],
)
@pytest.mark.parametrize("mode", ["full", "valid"])
def test_the_axes_of_the_arrays_are_those_of_the_result(left, right, shape, mode):
    made = xcorr.correlate(left, right, window=mode)
    truth = stacked(left.reshape(-1, 5, 6), right.reshape(-1, 8, 7), mode)
    assert made.dtype == np.float32
    close(made, truth.reshape(*shape, *truth.shape[2:]))


def test_stacks_are_paired_when_it_is_asked_for():
    made = xcorr.correlate(LEFT, RIGHT, form="n-to-mn")
    close(made, np.stack([expected(LEFT[p // 2], RIGHT[p]) for p in range(6)]))
    with pytest.raises(UserError, match=one_line("needs rights divisible by lefts")):
        xcorr.correlate(LEFT, RIGHT[:5], form="n-to-mn")


def test_a_form_may_be_named_and_must_fit():
    close(xcorr.correlate(LEFT[:1], RIGHT[:1], form="one-to-one"), stacked(LEFT[:1], RIGHT[:1]))
    with pytest.raises(UserError, match=one_line("one-to-one means 1:1")):
        xcorr.correlate(LEFT, RIGHT, form="one-to-one")
    with pytest.raises(UserError, match=one_line("form 'pairs': unknown; use None, one-to-one")):
        xcorr.correlate(LEFT, RIGHT, form="pairs")


def test_no_right_array_is_the_left_one():
    close(xcorr.correlate(LEFT[0], None), expected(LEFT[0], LEFT[0]))
    close(xcorr.correlate(LEFT, None, form="n-to-mn"), np.stack([expected(one, one) for one in LEFT]))


def test_a_range_of_shifts_is_a_part_of_the_full_window():
    full = xcorr.correlate(LEFT[0], RIGHT[0])
    part = xcorr.correlate(LEFT[0], RIGHT[0], window="sy:-2..3,sx:0..4")
    close(part, full[2:8, 5:10])


def test_a_circular_boundary_is_a_transform_without_padding():
    left, right = RNG.normal(size=(2, 8, 9))
    made = xcorr.correlate(left, right, boundary="circular")
    whole = np.fft.ifft2(np.conj(np.fft.fft2(left)) * np.fft.fft2(right)).real
    close(made, np.fft.fftshift(whole), 1e-12)


@pytest.mark.parametrize("score", ["covariance", "ncc", "zncc:0.5"])
@pytest.mark.parametrize("precision", ["fp32", "fp64"])
def test_scores_are_those_of_the_reference(library, score, precision):
    made = xcorr.correlate(LEFT[0], RIGHT, score=score, precision=precision)
    problem = Problem("one-to-many", (5, 6), (8, 7), 1, 6, score=score)
    close(made, library.reference(problem, LEFT[0], RIGHT, method="definition"), 1e-4)


def test_masked_pixels_count_nowhere(library):
    masks = [RNG.random(array.shape) < 0.8 for array in (LEFT[0], RIGHT)]
    spoilt = np.where(masks[0], LEFT[0], 1e6).astype("f4")
    made = xcorr.correlate(spoilt, RIGHT, score="zncc", mask_left=masks[0], mask_right=masks[1])
    problem = Problem("one-to-many", (5, 6), (8, 7), 1, 6, score="zncc", masks="both")
    truth = library.reference(problem, LEFT[0], RIGHT, method="definition", left_mask=masks[0], right_mask=masks[1])
    close(made, truth, 1e-4)


@pytest.mark.parametrize("result, shape", [("peak", (3, 6)), ("peaks:2", (3, 6, 2))])
def test_peaks_have_the_axes_of_the_surfaces(result, shape):
    peaks = xcorr.correlate(LEFT, RIGHT, result=result)
    assert peaks.shape == shape
    surfaces = xcorr.correlate(LEFT, RIGHT)
    first = peaks if result == "peak" else peaks[..., 0]
    for index in np.ndindex(3, 6):
        at = np.unravel_index(np.argmax(surfaces[index]), surfaces.shape[2:])
        assert (first[index]["sy"] + 4, first[index]["sx"] + 5) == at
        assert first[index]["value"] == pytest.approx(surfaces[index][at], rel=1e-5)


def test_detections_are_one_list_and_a_capacity_that_is_exceeded_is_an_error():
    surfaces = xcorr.correlate(LEFT, RIGHT)
    found = xcorr.correlate(LEFT, RIGHT, result="above:6.5:1000")
    assert len(found) == (surfaces >= 6.5).sum() > 1
    with pytest.raises(LibraryError, match=one_line("use a larger capacity or threshold")):
        xcorr.correlate(LEFT, RIGHT, result="above:6.5:1")


def test_sums_of_all_outputs():
    made = xcorr.correlate(LEFT, RIGHT, result="sum")
    assert made.dtype == np.float64
    close(made, np.outer(LEFT.sum((1, 2), dtype="f8"), RIGHT.sum((1, 2), dtype="f8")), 1e-4)


@pytest.mark.parametrize(
    "kind, scalar",
    [("u1", "f4"), ("i2", "f4"), ("f2", "f4"), ("?", "f4"), ("f4", "f4"), ("i4", "f8"), ("i8", "f8"), ("f8", "f8")],
)
def test_types_that_float32_holds_are_computed_in_it(kind, scalar):
    left, right = (RNG.integers(0, 2, size=(4, 5)).astype(kind) for _ in range(2))
    made = xcorr.correlate(left, right)
    assert made.dtype == scalar
    close(made, expected(left, right))
    assert xcorr.correlate(left, right, precision="fp64").dtype == np.float64
    assert xcorr.correlate(left, right, precision="fp32").dtype == np.float32


def test_strided_arrays_are_taken():
    left, right = LEFT[::2, ::-1, ::2], RIGHT[:, 1:, 2:5]
    close(xcorr.correlate(left, right), stacked(left, right))


def test_lists_are_arrays():
    close(xcorr.correlate([[1.0, 2.0]], [[3.0, 4.0]]), np.array([[6.0, 11.0, 4.0]]))


def test_out_receives_the_result():
    out = np.full((3, 6, 12, 12), np.nan, "f4")
    assert xcorr.correlate(LEFT, RIGHT, out=out) is out
    close(out, stacked(LEFT, RIGHT))


@pytest.mark.parametrize(
    "out, words",
    [
        (np.empty((18, 12, 12), "f4"), "out: float32 (18, 12, 12); give float32 (3, 6, 12, 12)"),
        (np.empty((3, 6, 12, 12), "f8"), "out: float64"),
        (np.empty((3, 6, 12, 24), "f4")[..., ::2], "out: its elements are not contiguous"),
        ("text", "out: "),
    ],
)
def test_an_out_that_does_not_fit_is_refused(out, words):
    with pytest.raises(UserError, match=one_line(words)):
        xcorr.correlate(LEFT, RIGHT, out=out)


def test_an_out_that_is_an_input_is_refused():
    square = np.ones((3, 3), "f4")
    with pytest.raises(LibraryError, match=one_line("out: shares memory with left")):
        xcorr.correlate(square, np.ones((3, 3), "f4"), boundary="circular", out=square)


@pytest.mark.parametrize(
    "left, right, options, words",
    [
        (None, RIGHT, {}, "left: None; give an array"),
        (LEFT[0, 0], RIGHT, {}, "left: an array of shape (6,); give (rows, cols)"),
        (LEFT, RIGHT[None], {}, "right: an array of shape (1, 6, 8, 7); give (rows, cols)"),
        (LEFT[:0], RIGHT, {}, "left: an array of shape (0, 5, 6) has no elements"),
        (LEFT, RIGHT[:, :, :0], {}, "right: an array of shape (6, 8, 0) has no elements"),
        (LEFT, RIGHT, {"score": "best"}, "score 'best': unknown"),
        (LEFT, RIGHT, {"score": "best"}, "taken as n-to-m"),
        (LEFT, RIGHT, {"window": "same"}, "window 'same': not understood"),
        (LEFT, RIGHT, {"boundary": "circular"}, "use two equal shapes"),
        (LEFT, RIGHT, {"precision": "fp8"}, "precision 'fp8': unknown; use None, fp64"),
        (LEFT, RIGHT, {"variant": ""}, "variant '': not a text"),
        (LEFT, RIGHT, {"variant": "cpu_ftt"}, "variant 'cpu_ftt': unknown"),
        (LEFT, RIGHT, {"mask_left": LEFT > 0}, "only ncc and zncc use masks"),
        (LEFT, RIGHT, {"stream": 7}, "stream: arrays of the host have none"),
        (LEFT.astype("c8"), RIGHT, {}, "left: type complex64; give real numbers"),
        (LEFT, np.full((2, 2), np.nan), {}, "right: nan at"),
        (object(), RIGHT, {}, "left: an array of shape ()"),
    ],
)
def test_a_wrong_call_is_refused_in_one_line(left, right, options, words):
    with pytest.raises((UserError, LibraryError), match=one_line(words)):
        xcorr.correlate(left, right, **options)


def test_a_variant_may_be_named_with_its_parameters():
    close(xcorr.correlate(LEFT, RIGHT, variant="cpu_fft:threads=1"), stacked(LEFT, RIGHT))
    assert xcorr.plan(LEFT, RIGHT, variant="cpu_definition").variant == "cpu_definition"


def test_the_user_is_warned_of_what_may_be_wrong():
    # An offset that float32 rounds away; product does not remove it.
    left, right = (1e9 + RNG.normal(size=(8, 8)) for _ in range(2))
    with pytest.warns(RuntimeWarning, match="rounding to float32"):
        xcorr.correlate(left, right, precision="fp32")


def test_a_plan_computes_what_the_call_does():
    planned = xcorr.plan(LEFT, RIGHT, score="zncc", result="peak")
    for sign in (1, -1):
        truth = xcorr.correlate(sign * LEFT, RIGHT, score="zncc", result="peak")
        made = planned(sign * LEFT, RIGHT)
        assert (made[["sy", "sx"]] == truth[["sy", "sx"]]).all()
    planned.check()
    assert planned.device == "cpu" and planned.variant in repr(planned)


def test_a_plan_takes_out_and_masks():
    mask = RNG.random(LEFT.shape) < 0.9
    planned = xcorr.plan(LEFT, RIGHT, score="ncc", mask_left=mask)
    out = np.empty((3, 6, 12, 12), "f4")
    assert planned(LEFT, RIGHT, out, mask_left=mask) is out
    close(out, xcorr.correlate(LEFT, RIGHT, score="ncc", mask_left=mask))
    with pytest.raises(UserError, match=one_line("mask_left: missing")):
        planned(LEFT, RIGHT)
    with pytest.raises(UserError, match=one_line("mask_right: the plan has none")):
        planned(LEFT, RIGHT, mask_left=mask, mask_right=RIGHT > 0)


def test_a_plan_refuses_what_it_was_not_made_for():
    planned = xcorr.plan(LEFT, RIGHT)
    with pytest.raises(UserError, match=one_line("right: shape (5, 8, 7), and the plan has (6, 8, 7)")):
        planned(LEFT, RIGHT[:5])
    with pytest.raises(UserError, match=one_line("stream: this plan computes on the CPU")):
        planned(LEFT, RIGHT, stream=1)
    with planned:
        pass
    with pytest.raises(LibraryError, match=one_line("closed")):
        planned(LEFT, RIGHT)


def test_clones_compute_in_threads():
    planned, truth, wrong = xcorr.plan(LEFT, RIGHT), stacked(LEFT, RIGHT), []

    def compute(own):
        for _ in range(20):
            if not np.allclose(own(LEFT, RIGHT), truth, atol=1e-4):
                wrong.append(own)

    threads = [threading.Thread(target=compute, args=(planned.clone(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    planned.close()
    for thread in threads:
        thread.join()
    assert not wrong


class HostTensor:
    """A tensor of PyTorch in memory of the host."""

    is_cuda = False

    def __init__(self, array, kind):
        self.array, self.dtype = array, f"torch.{kind}"

    def data_ptr(self):
        raise AssertionError("read by numpy()")

    def detach(self):
        return self

    def float(self):
        return HostTensor((self.array.astype("u4") << 16).view("f4"), "float32")

    def numpy(self):
        assert self.dtype != "torch.bfloat16", "NumPy has no such type"
        return self.array


def test_tensors_of_the_host_give_tensors(monkeypatch):
    torch = types.ModuleType("torch")
    torch.from_numpy = lambda array: HostTensor(array, array.dtype.name)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(HostTensor, "__module__", "torch")
    made = xcorr.correlate(HostTensor(LEFT, "float32"), HostTensor(RIGHT, "float32"))
    assert isinstance(made, HostTensor)
    close(made.array, stacked(LEFT, RIGHT))
    bits = (np.array([[1.0, -2.0]], "f4").view("u4") >> 16).astype("u2")
    close(xcorr.correlate(HostTensor(bits, "bfloat16"), [[3.0, 4.0]]).array, np.array([[-6.0, -5.0, 4.0]]))


def test_importing_loads_no_package_that_takes_long():
    program = "import sys, xcorr; print(*sorted({'scipy', 'pandas', 'matplotlib', 'torch', 'cupy'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=HANG_S, check=True
    )
    assert done.stdout == "\n"
