"""Rivals that call libraries of a GPU by their C interface: what they pass, to a library that computes on the host."""

import ctypes
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.fft
import scipy.signal

from experiments.compare.rivals import Unsupported, truth
from experiments.compare.rivals.libraries import cufft, npp, vkfft
from xcorr.problem import Problem

PROBLEMS = [
    "one-to-one/9x7/9x7/1:1/full",
    "one-to-many/6x6/9x8/1:3/full",
    "n-to-m/5x4/12x15/2:3/valid",
    "n-to-mn/8x8/8x8/2:6/sy:-4..3,sx:-4..3",
    "n-to-m/1x8/1x300/2:1/valid",
    "n-to-mn/9x9/9x9/3:3/full/result=peak",
]


class OfCard(np.ndarray):
    """An array whose `data.ptr` is its address, as CuPy's."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)


def on_card(function):
    return lambda *words, **more: np.asarray(function(*words, **more)).view(OfCard)


def floats(address, rows, cols, bytes_a_row):
    place = address if isinstance(address, int) else address.value
    count = (rows - 1) * bytes_a_row // 4 + cols
    values = np.ctypeslib.as_array((ctypes.c_float * count).from_address(place))
    return np.lib.stride_tricks.as_strided(values, (rows, cols), (bytes_a_row, 4))


def valid(frame, frame_step, frame_size, part, part_step, part_size, out, out_step, _):
    """nppiCrossCorrValid_32f_C1R_Ctx."""
    whole = floats(frame, frame_size.height, frame_size.width, frame_step)
    template = floats(part, part_size.height, part_size.width, part_step)
    shape = (frame_size.height - part_size.height + 1, frame_size.width - part_size.width + 1)
    floats(out, *shape, out_step)[:] = scipy.signal.correlate(whole.astype(float), template.astype(float), "valid")
    return 0


class FakeCufft:
    """cuFFT for contiguous two-dimensional transforms; `properties` are those that were set."""

    def __init__(self):
        self.plans, self.properties = {}, []

    def cufftCreate(self, _):
        return 0

    def cufftSetPlanPropertyInt64(self, plan, name, value):
        assert id(plan) not in self.plans, "too late"
        self.properties.append((name, value))
        return 0

    def cufftMakePlanMany(self, plan, rank, lengths, *more):
        assert rank == 2
        self.plans[id(plan)] = (more[-2], *lengths)
        return 0

    def _sides(self, plan, real, bins):
        count, rows, cols = self.plans[id(plan)]
        width = cols // 2 + 1
        spectra = floats(bins, count * rows, 2 * width, 8 * width).view(np.complex64)
        return floats(real, count * rows, cols, 4 * cols).reshape(count, rows, cols), spectra.reshape(
            count, rows, width
        )

    def cufftExecR2C(self, plan, source, target):
        real, bins = self._sides(plan, source, target)
        bins[:] = scipy.fft.rfft2(real)
        return 0

    def cufftExecC2R(self, plan, source, target):
        real, bins = self._sides(plan, target, source)
        real[:] = scipy.fft.irfft2(bins, s=real.shape[1:], norm="forward")
        return 0

    def cufftDestroy(self, _):
        return 0


@pytest.fixture
def cupy(monkeypatch):
    """What the rivals use of CuPy, on the host."""
    names = "pad empty zeros ascontiguousarray".split()
    facts = dict.fromkeys("maxThreadsPerMultiProcessor maxThreadsPerBlock sharedMemPerBlock minor".split(), 1)
    properties = facts | {"multiProcessorCount": 1, "major": 9}
    fake = SimpleNamespace(
        **{name: on_card(getattr(np, name)) for name in names},
        **{name: getattr(np, name) for name in ("float32", "complex64", "uint8", "flip")},
        asarray=on_card(np.ascontiguousarray),
        asnumpy=np.asarray,
        ElementwiseKernel=lambda *_: on_card(lambda a, b, s: (a * b * s).astype(np.complex64)),
        cuda=SimpleNamespace(
            Device=lambda: SimpleNamespace(id=0), runtime=SimpleNamespace(getDeviceProperties=lambda _: properties)
        ),
    )
    monkeypatch.setitem(sys.modules, "cupy", fake)
    return fake


def verdicts(problem, prepare, library):
    """The verdicts of two calls of one preparation: the second one must not depend on what the first one left."""
    arrays = truth.inputs(problem)
    exact = truth.exact(problem, *arrays)
    call = prepare(library, problem, *arrays)
    state = call.upload()
    return [truth.judge(problem, call.download(call.compute(state)), exact, "fp32").outcome for _ in range(2)]


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("patient", [False, True])
def test_cufft(name, patient, cupy):
    library = FakeCufft()
    prepare = cufft.RIVALS[patient].prepare
    assert verdicts(Problem.of_id(name), prepare, library) == ["passed", "passed"]
    assert library.properties == [(cufft.PATIENT_JIT, 1)] * (3 * patient)


@pytest.mark.parametrize("name", PROBLEMS)
def test_npp(name, cupy):
    library = SimpleNamespace(nppiCrossCorrValid_32f_C1R_Ctx=valid)
    assert verdicts(Problem.of_id(name), npp.RIVALS[0].prepare, library) == ["passed", "passed"]


@pytest.mark.parametrize("name", PROBLEMS)
def test_vkfft(name, cupy):
    library = SimpleNamespace(
        rfftn=on_card(lambda one, ndim: scipy.fft.rfft2(one)), irfftn=on_card(lambda one, ndim: scipy.fft.irfft2(one))
    )
    try:
        assert verdicts(Problem.of_id(name), vkfft.RIVALS[0].prepare, library) == ["passed", "passed"]
    except Unsupported as reason:
        assert "last length" in str(reason)
