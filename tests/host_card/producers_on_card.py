"""Streams, new arrays and types of the libraries that make arrays on a device: PyTorch, CuPy, Numba, JAX, DLPack. As calls_on_card.py."""

import contextlib
import ctypes
import sys
import types

import numpy as np
import pytest
from calls import one_line
from device_arrays import Dlpack, Interface, Tensor, aligned, copied
from on_card import LEFT, NOTHING, RIGHT, close, sides

import xcorr
from xcorr.errors import UserError
from xcorr.results import PEAK


def test_bfloat16_is_converted_by_the_device(torch):
    bits = [(copied(array).view("u4") >> 16).astype("u2") for array in (LEFT, RIGHT)]
    left, right = (Tensor(copied(one), type(torch.float32)("bfloat16")) for one in bits)
    values = [(one.astype("u4") << 16).view("f4") for one in bits]
    made = xcorr.correlate(left, right)
    close(made.bits, xcorr.correlate(*values))


@pytest.mark.parametrize("result, axes", [("peak", (3, 4)), ("peaks:2", (3, 4, 2))])
def test_peaks_are_words_with_named_columns(torch, result, axes):
    left, right = sides(Tensor)
    made = xcorr.correlate(left, right, result=result)
    assert made.shape == (*axes, 8) and made.dtype == torch.int32
    on_host = xcorr.correlate(LEFT, RIGHT, result=result)
    assert on_host.shape == axes
    columns = xcorr.columns(made, result)
    assert tuple(columns) == PEAK.names
    for name, column in columns.items():
        np.testing.assert_allclose(column.bits, on_host[name], rtol=1e-4, atol=1e-4, equal_nan=True)
    assert (xcorr.columns(on_host)["sy"] == on_host["sy"]).all()
    with pytest.raises(UserError, match=one_line("has no records")):
        xcorr.columns(made, "sum")


def test_the_stream_is_the_current_one_of_pytorch(torch, counts):
    left, right = sides(Tensor)
    plan = xcorr.plan(left, right)
    torch.current = 77
    made = plan(left, right)
    assert counts()["stream"] == 77 and torch.allocated[-1] == (made, 77)
    assert not (left.used_by or right.used_by or made.used_by)
    close(made.bits)


def test_another_stream_is_told_to_the_allocator_of_pytorch(torch, counts):
    left, right = sides(Tensor)
    plan = xcorr.plan(left, right)
    torch.current = 77
    made = plan(left, right, stream=torch.cuda.Stream(88))
    assert counts()["stream"] == 88 and torch.current == 77
    assert torch.allocated[-1] == (made, 88), "memory comes in the order of the stream that writes it"
    assert [one.used_by for one in (left, right, made)] == [[88]] * 3


def test_the_stream_is_the_current_one_of_cupy(cupy, counts):
    left, right = sides(cupy.asarray)
    cupy.current = 55
    close(xcorr.correlate(left, right).bits)
    assert counts()["stream"] == 55
    xcorr.correlate(left, right, stream=66)
    assert counts()["stream"] == 66 and cupy.streams[-1] == 66


def test_the_stream_is_the_one_that_the_interface_names(counts):
    left, right = Interface(copied(LEFT), stream=33), Interface(copied(RIGHT), stream=33)
    out = Interface(aligned((3, 4, 11, 15)))
    plan = xcorr.plan(left, right)
    plan(left, right, out)
    assert counts()["stream"] == 33
    plan(Interface(left.array), Interface(right.array), out)
    assert counts()["stream"] == 1, "the default stream"
    right.stream = 44
    with pytest.raises(UserError, match=one_line("stream: the arrays are of streams [33, 44]; order these")):
        plan(left, right, out)
    plan(left, right, out, stream=33)


def test_a_producer_of_dlpack_is_told_the_stream(counts):
    left, right, out = (Dlpack(copied(one)) for one in (LEFT, RIGHT, np.zeros((3, 4, 11, 15), "f4")))
    plan = xcorr.plan(left, right)
    plan(left, right, out)
    assert counts()["stream"] == 1 and left.asked[-1] == right.asked[-1] == 1
    close(out.array)
    plan(left, right, out, stream=12)
    assert counts()["stream"] == 12 and left.asked[-1] == right.asked[-1] == 12
    turned = Dlpack(copied(LEFT)[:, ::-1])
    close(xcorr.correlate(turned, right, out=out).array, xcorr.correlate(LEFT[:, ::-1], RIGHT))


def test_arrays_of_dlpack_on_the_host_are_those_of_the_host():
    left = Dlpack(copied(LEFT), device=(1, 0))
    left.__class__ = type("OnHost", (Dlpack,), {"__array__": lambda self, *_, **__: self.array})
    assert isinstance(xcorr.correlate(left, RIGHT), np.ndarray)
    with pytest.raises(UserError, match=one_line("DLPack's type 7; move it to a CUDA device or to the host")):
        xcorr.correlate(Dlpack(LEFT, device=(7, 0)), RIGHT)


class Handle:
    def __init__(self, handle):
        self.handle = handle


@pytest.mark.parametrize(
    "stream, handle",
    [(0, 0), (21, 21), (np.int64(22), 22), (Handle(ctypes.c_void_p(23)), 23), (Handle(ctypes.c_void_p(None)), 0)],
)
def test_a_stream_is_a_handle_or_an_object_that_has_one(counts, stream, handle):
    left, right = sides()
    out = Interface(aligned((3, 4, 11, 15)))
    xcorr.correlate(left, right, out=out, stream=stream)
    assert counts()["stream"] == handle


@pytest.mark.parametrize("stream", ["text", True, -1, 1.5])
def test_what_is_no_stream_is_refused(stream):
    with pytest.raises(UserError, match=one_line("give a handle, or an object with cuda_stream, ptr or handle")):
        xcorr.correlate(*sides(), stream=stream)


def test_a_mask_of_the_interface_is_refused():
    left, right = sides()
    left.mask = object()
    with pytest.raises(UserError, match=one_line("left: has a mask of its own; give that as mask_left")):
        xcorr.correlate(left, right)


def test_a_clone_takes_tensors(torch, counts):
    left, right = sides(Tensor)
    plan = xcorr.plan(left, right).clone()
    out = plan(left, right)
    counts()
    assert plan(left, right, out) is out
    assert counts() == {**NOTHING, "stream": 0} and len(torch.allocated) == 1
    close(out.bits)
    with pytest.raises(UserError, match=one_line("out: float32 (3, 4, 11)")):
        plan(left, right, Tensor(out.bits[..., 0]))


def test_a_tensor_that_is_negated_when_it_is_read_is_refused(torch):
    left, right = sides(Tensor)
    plan = xcorr.plan(left, right)
    left.negated = True
    with pytest.raises(UserError, match=one_line("left: a view that PyTorch negates when it is read")):
        plan(left, right)


class JaxArray(Dlpack):
    """An immutable array of JAX, which says when it is there."""

    def block_until_ready(self):
        return self

    def devices(self):
        return {"gpu:0"}


def test_a_call_with_arrays_of_jax_waits_for_its_result(monkeypatch, counts):
    monkeypatch.setattr(JaxArray, "__module__", "jaxlib.xla_extension")
    jax = types.ModuleType("jax")
    jax.numpy = types.SimpleNamespace(zeros=lambda shape, kind: JaxArray(aligned(shape, kind)))
    jax.default_device = lambda one: contextlib.nullcontext(one)
    monkeypatch.setitem(sys.modules, "jax", jax)
    left, right = sides(JaxArray)
    plan = xcorr.plan(left, right)
    counts()
    made = plan(left, right)
    assert isinstance(made, JaxArray)
    assert counts() == {**NOTHING, "waits": 1, "stream": 1}
    close(made.array)


def test_arrays_of_numba(monkeypatch, counts):
    cuda = types.ModuleType("numba.cuda")
    cuda.device_array = lambda shape, kind: NumbaArray(aligned(shape, kind))
    cuda.current_context = lambda: types.SimpleNamespace(device=types.SimpleNamespace(id=1))
    monkeypatch.setitem(sys.modules, "numba.cuda", cuda)
    left, right = sides(NumbaArray)
    plan = xcorr.plan(left, right)
    assert plan.device == "cuda:1"
    made = plan(left, right, stream=Handle(ctypes.c_void_p(17)))
    assert isinstance(made, NumbaArray) and counts()["stream"] == 17
    close(made.array)


class NumbaArray(Interface):
    def __init__(self, array):
        super().__init__(array)
        self.device = None


NumbaArray.__module__ = "numba.cuda.cudadrv.devicearray"
