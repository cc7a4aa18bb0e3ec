"""What xcorr.correlate and plans do with arrays of a device. XCORR_BUILD names a folder with the library of tests/host_card."""

import gc
import threading

import numpy as np
import pytest
from calls import one_line
from device_arrays import Interface, Tensor, aligned, copied
from on_card import LEFT, NOTHING, RIGHT, RNG, TRUTH, close, sides
from scipy import signal

import xcorr
from xcorr.call import chosen, device
from xcorr.errors import LibraryError, NotEnqueued, UserError
from xcorr.results import DETECTION


def test_a_planned_call_enqueues_and_does_nothing_else(counts):
    left, right = sides()
    plan = xcorr.plan(left, right)
    out = Interface(aligned((3, 4, 11, 15), fill=np.nan))
    counts()
    for stream in (5, 9):
        assert plan(left, right, out, stream) is out
        assert counts() == {**NOTHING, "stream": stream}
        close(out.array)
    plan.close()


@pytest.mark.parametrize("variant", ["card_definition", "card_fft"])
@pytest.mark.parametrize(
    "left, right, options",
    [
        (LEFT[0], RIGHT[0], {}),
        (LEFT[0], RIGHT, {}),
        (LEFT, RIGHT[0], {"window": "valid"}),
        (LEFT[:2], RIGHT, {"form": "n-to-mn"}),
        (LEFT, LEFT, {"boundary": "circular"}),
        (LEFT, RIGHT, {"window": "sy:0..2,sx:-1..3"}),
        (LEFT.astype("f8"), RIGHT.astype("f8"), {}),
        (LEFT, RIGHT, {"result": "sum"}),
    ],
)
def test_a_device_computes_what_the_host_does(cupy, variant, left, right, options):
    on_host = xcorr.correlate(left, right, variant=variant.replace("card", "cpu"), **options)
    made = xcorr.correlate(*sides(cupy.asarray, left, right), variant=variant, **options)
    assert made.bits.shape == on_host.shape and made.bits.dtype == on_host.dtype
    np.testing.assert_array_equal(made.bits, on_host)


def test_no_right_array_is_the_left_one(cupy):
    left = cupy.asarray(copied(LEFT))
    close(xcorr.correlate(left, None).bits, xcorr.correlate(LEFT, LEFT))


def test_auto_chooses_by_sizes_and_skips_what_cannot_be_enqueued(monkeypatch):
    asked = []

    class Chooser:
        def __init__(self, refused):
            self.refused = refused

        def choose(self, problem, precision):
            asked.append(problem.id)
            name = "card_fft" if "card_waits" in self.refused else "card_waits"
            return type("Choice", (), {"variant": name, "params": ""})

    monkeypatch.setattr(chosen, "_auto", lambda path, device, refused: Chooser(refused))
    plan = xcorr.plan(*sides())
    assert plan.variant == "card_fft" and len(asked) == 2
    assert plan.device == "cuda:0" and "card_fft" in repr(plan)


def test_a_variant_without_refused_ones_is_left(monkeypatch):
    """The real choice, which has four variants of the card here."""
    first = xcorr.plan(*sides()).variant
    second = chosen.choice_by_sizes(xcorr.plan(*sides()).question, "auto", "cuda:0", (first,))[0]
    assert second != first and second.startswith("card_")


def test_a_named_variant_that_cannot_be_enqueued_is_refused():
    with pytest.raises(NotEnqueued, match=one_line("variant 'card_waits': a call cannot be enqueued")):
        xcorr.plan(*sides(), variant="card_waits")


@pytest.mark.parametrize("kind", ["u1", "i1", "u2", "i2", "f2", "?"])
def test_other_types_are_converted_by_the_device(counts, cupy, kind):
    left, right = (RNG.integers(0, 2, size=shape).astype(kind) for shape in ((5, 8), (7, 8)))
    plan = xcorr.plan(*sides(cupy.asarray, left, right), variant="card_definition")
    counts()
    out = cupy.asarray(aligned((11, 15)))
    plan(*sides(cupy.asarray, left, right), out, 3)
    assert counts() == {**NOTHING, "conversions": 2, "stream": 3}
    close(out.bits, signal.correlate2d(right.astype("f4"), left.astype("f4")))


@pytest.mark.parametrize("kind", ["i4", "f8"])
def test_types_that_float32_does_not_hold_are_computed_in_float64(cupy, kind):
    left, right = (RNG.integers(-(2**30), 2**30, size=(4, 4)).astype(kind) for _ in range(2))
    made = xcorr.correlate(cupy.asarray(copied(left)), cupy.asarray(copied(right)))
    assert made.bits.dtype == np.float64
    close(made.bits, signal.correlate2d(right.astype("f8"), left.astype("f8")))
    with pytest.raises(UserError, match=one_line("with precision fp32; give one of bool")):
        xcorr.correlate(cupy.asarray(copied(left)), cupy.asarray(copied(right)), precision="fp32")


def test_strided_rows_are_read_in_place_where_a_variant_has_views(counts):
    frame = copied(RNG.normal(size=(4, 12, 20)).astype("f4"))
    left, right = frame[:3, :5, :8], frame[:, 4:11, 8:16]
    truth = np.array([[signal.correlate2d(b, a) for b in right] for a in left])
    plan = xcorr.plan(Interface(left), Interface(right), variant="card_definition")
    assert plan.question.problem.fields.views == "windows"
    counts()
    out = Interface(aligned((3, 4, 11, 15)))
    plan(Interface(left), Interface(right), out, 3)
    assert counts() == {**NOTHING, "stream": 3}
    close(out.array, truth)
    other = xcorr.plan(Interface(left), Interface(right), variant="card_fft")  # it has no views
    assert other.question.problem.fields.views == "dense"
    close(other(Interface(left), Interface(right), out, 3).array, truth)
    assert counts()["conversions"] == 2


@pytest.mark.parametrize("turn", [lambda a: a[:, ::-1, :], lambda a: a[:, :, ::2], lambda a: a.transpose(0, 2, 1)])
def test_other_strides_are_copied_by_the_device(counts, cupy, turn):
    left, right = turn(copied(LEFT)), turn(copied(RIGHT))
    made = xcorr.correlate(cupy.asarray(left), cupy.asarray(right))
    assert counts()["conversions"] == 2
    close(made.bits, xcorr.correlate(left, right))


def test_an_array_that_starts_anywhere_is_copied_if_the_plan_knows(counts, cupy):
    moved, right = cupy.asarray(copied(LEFT, offset=4)), cupy.asarray(copied(RIGHT))
    close(xcorr.correlate(moved, right).bits)
    assert counts()["conversions"] == 1
    plan = xcorr.plan(cupy.asarray(copied(LEFT)), right)
    with pytest.raises(LibraryError, match=one_line("left: its address is no multiple of 16 bytes; give a copy")):
        plan(moved, right)


def test_masks():
    masks = [RNG.random(one.shape) < 0.8 for one in (LEFT, RIGHT)]
    left, right = sides()
    given = {"mask_left": Interface(copied(masks[0])), "mask_right": Interface(copied(masks[1].astype("u1")))}
    plan = xcorr.plan(left, right, score="zncc", **given)
    out = Interface(aligned((3, 4, 11, 15)))
    plan(left, right, out, **given)
    close(out.array, xcorr.correlate(LEFT, RIGHT, score="zncc", mask_left=masks[0], mask_right=masks[1]))
    with pytest.raises(UserError, match=one_line("mask_right: missing")):
        plan(left, right, out, mask_left=given["mask_left"])
    with pytest.raises(UserError, match=one_line("mask_left: float32 of strides")):
        xcorr.plan(left, right, score="zncc", mask_left=left)


def test_detections_are_counted_and_checked_when_it_is_asked_for(torch, counts):
    left, right = sides(Tensor)
    on_host = xcorr.correlate(LEFT, RIGHT, result="above:6:1000")
    plan = xcorr.plan(left, right, result="above:6:1000")
    plan.check()  # nothing was called
    made = plan(left, right)
    counts()
    plan.check()
    assert counts()["waits"] == 1
    columns = xcorr.columns(made, "above:6:1000")
    found = int(columns["count"].bits[0])
    assert found == len(on_host) > 1
    rows = np.stack([columns[name].bits[:found] for name in DETECTION.names[:3]], axis=1)
    assert {tuple(row) for row in rows} == {(d["pair"], d["sy"], d["sx"]) for d in on_host}
    few = xcorr.plan(left, right, result="above:6:1")
    few(left, right)
    with pytest.raises(LibraryError, match=one_line("use a larger capacity or threshold")):
        few.check()


def test_a_call_keeps_the_plans_of_its_last_kinds(cupy, counts):
    left, right = sides(cupy.asarray)
    xcorr.correlate(left, right)
    counts()
    xcorr.correlate(left, right)
    assert counts() == {**NOTHING, "stream": 0}
    for stream in range(2, 2 + device.KEPT_PLANS):  # a workspace of its own for each stream
        xcorr.correlate(left, right, stream=stream)
        assert counts()["allocations"] > 0
    xcorr.correlate(left, right)
    assert counts()["allocations"] > 0, "the oldest plan was closed"


def test_memory_of_a_plan_that_nobody_has_is_freed(counts):
    gc.collect()
    plan = xcorr.plan(*sides())
    counts()
    del plan
    gc.collect()
    assert counts()["waits"] == 1, "the device has ended its calls"


WRONG = [
    (lambda a: Interface(copied(LEFT[:2])), "left: shape (2, 5, 8), and the plan has (3, 5, 8); make another plan"),
    (lambda a: Interface(copied(LEFT.astype("f8"))), "left: type float64, and the plan has float32; convert it"),
    (lambda a: Interface(copied(LEFT), device=1), "left: lies on cuda:1, and the plan is of cuda:0"),
    (
        lambda a: Interface(aligned((3, 5, 16))[:, :, ::2]),
        "left: strides (80, 16, 2), and the plan has (40, 8, 1); give",
    ),
    (lambda a: LEFT, "left: ndarray is no array on a GPU; move it there"),
    (lambda a: None, "left: None; give an array"),
]


@pytest.mark.parametrize("left, words", WRONG)
def test_an_array_that_the_plan_was_not_made_for_is_refused(left, words, counts):
    good, right = sides()
    plan = xcorr.plan(good, right)
    counts()
    with pytest.raises(UserError, match=one_line(words)):
        plan(left(good), right, Interface(aligned((3, 4, 11, 15))))
    assert counts()["calls"] == 0


@pytest.mark.parametrize(
    "out, words",
    [
        (aligned((4, 3, 11, 15)), "out: float32 (4, 3, 11, 15); give float32 (3, 4, 11, 15)"),
        (aligned((3, 4, 11, 15), "f8"), "out: float64"),
        (aligned((3, 4, 11, 30))[..., ::2], "out: its elements are not contiguous"),
        (None, "out: nobody knows how to make a Interface; give an array for the result"),
    ],
)
def test_an_out_that_does_not_fit_is_refused(out, words):
    with pytest.raises(UserError, match=one_line(words)):
        xcorr.correlate(*sides(), out=None if out is None else Interface(out))


def test_an_out_elsewhere_is_refused():
    with pytest.raises(UserError, match=one_line("out: ndarray is no array on a GPU")):
        xcorr.correlate(*sides(), out=aligned((3, 4, 11, 15)))
    with pytest.raises(UserError, match=one_line("out: lies on cuda:1")):
        xcorr.correlate(*sides(), out=Interface(aligned((3, 4, 11, 15)), device=1))
    with pytest.raises(LibraryError, match=one_line("out: its address is no multiple of 16 bytes")):
        xcorr.correlate(*sides(), out=Interface(aligned((3, 4, 11, 15), offset=4)))


def test_arrays_of_two_places_are_refused():
    left, right = sides()
    with pytest.raises(UserError, match=one_line("arrays: lie on several devices, [0, 1]; move them to one")):
        xcorr.correlate(left, Interface(right.array, device=1))
    with pytest.raises(UserError, match=one_line("right: ndarray is no array on a GPU")):
        xcorr.correlate(left, RIGHT)
    with pytest.raises(UserError, match=one_line("right: lies on a GPU, and the left array on the host")):
        xcorr.correlate(LEFT, right)
    with pytest.raises(LibraryError, match=one_line("cuda:2")):
        xcorr.plan(Interface(left.array, device=2), Interface(right.array, device=2), variant="card_fft")


def test_a_plan_is_of_the_device_of_its_arrays():
    left, right = (Interface(copied(one), device=1) for one in (LEFT, RIGHT))
    plan = xcorr.plan(left, right)
    assert plan.device == "cuda:1"
    close(plan(left, right, Interface(aligned((3, 4, 11, 15)), device=1)).array)


def test_a_closed_plan_refuses_calls():
    left, right = sides()
    with xcorr.plan(left, right) as plan:
        pass
    with pytest.raises(LibraryError, match=one_line("plan: closed; make another one")):
        plan(left, right, Interface(aligned((3, 4, 11, 15))))
    plan.close()


def test_clones_compute_in_threads():
    left, right = sides()
    plan, wrong = xcorr.plan(left, right), []

    def compute(own, stream):
        for _ in range(20):
            out = aligned((3, 4, 11, 15))
            own(left, right, Interface(out), stream)
            if not np.allclose(out, TRUTH, atol=1e-3):
                wrong.append(stream)

    threads = [threading.Thread(target=compute, args=(plan.clone(), stream)) for stream in range(3, 7)]
    plan.close()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_session_of_numpy_arrays_runs_beside():
    close(xcorr.correlate(LEFT, RIGHT))
