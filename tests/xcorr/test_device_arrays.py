"""Calls on arrays of a real GPU: every CUDA variant of the build by the CUDA runtime alone, and arrays of PyTorch and CuPy where they
are installed. Skipped, with a reason, where there is no GPU, no build with CUDA, or no such library."""

import threading
import timeit

import numpy as np
import pytest
from cuda_arrays import runtime
from tree import ROOT

import xcorr
from xcorr.call.device import result_words
from xcorr.errors import LibraryError
from xcorr.results import PEAK

RNG = np.random.default_rng(11)
# Shapes of left and right (None: the left array), and options: each variant computes what it supports of these.
PROBLEMS = [
    ((16, 16), (16, 16), {}),
    ((64, 64), (8, 64, 64), {}),
    ((4, 32, 32), (4, 32, 32), {}),
    ((2, 64, 64), (6, 64, 64), {"form": "n-to-mn"}),
    ((64, 64), None, {}),
    ((3, 24, 24), (2, 96, 128), {"window": "valid", "score": "zncc"}),
    ((3, 24, 24), (2, 96, 128), {"window": "valid", "score": "zncc", "result": "peak"}),
    ((4, 32, 32), (4, 32, 32), {"form": "n-to-mn", "boundary": "circular", "score": "covariance"}),
    ((4, 32, 32), (4, 32, 32), {"form": "n-to-mn", "boundary": "circular", "result": "peak"}),
    ((4, 64, 64), (4, 64, 64), {"form": "n-to-mn", "boundary": "circular", "score": "phase"}),
    ((4, 1, 256), (1, 1, 30000), {"window": "valid"}),
    ((4, 1, 256), (1, 1, 30000), {"window": "valid", "score": "zncc", "result": "above:0.2:100000"}),
    ((24, 20), (24, 20), {"precision": "fp64"}),
]
VARIANTS = sorted({path.stem for path in (ROOT / "algorithms").rglob("*.cu")})


@pytest.fixture(scope="module")
def cuda(request):
    built = request.getfixturevalue("library")
    if not any(one["backend"] == "cuda" for one in built.variants()):
        pytest.skip("the build has no CUDA variants")
    found = runtime()
    if isinstance(found, str):
        pytest.skip(f"no GPU: {found}")
    try:
        built.machine("cuda")
    except LibraryError as error:
        pytest.skip(f"no GPU: {error}")
    return found


@pytest.fixture(scope="module")
def torch(cuda):
    module = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not module.cuda.is_available():
        pytest.skip("PyTorch was built without CUDA")
    return module


@pytest.fixture(scope="module")
def cupy(cuda):
    return pytest.importorskip("cupy", reason="CuPy is not installed")


def numbers(shape):
    return None if shape is None else RNG.normal(size=shape).astype("f4")


class Case:
    """One planned problem of a variant with its arrays on the device, and what is right."""

    def __init__(self, cuda, library, variant, left, right, options):
        self.left, self.right, self.options = numbers(left), numbers(right), options
        self.arrays = [None if one is None else cuda.array(one) for one in (self.left, self.right)]
        self.plan = xcorr.plan(*self.arrays, variant=variant, **options)
        self.question = self.plan.question
        self.library = library
        shape, of_type = result_words(self.question)
        self.out = cuda.array(np.full(shape, 99, of_type))

    def call(self, stream):
        self.plan(*self.arrays, self.out, stream)

    def clear(self):
        self.out.write(np.full(self.out.shape, 99))

    def surfaces(self):
        problem = self.question.problem.surface
        return self.library.reference(problem, self.left, self.right, method="definition")

    def check(self):
        """The result against float64."""
        surfaces, made = self.surfaces(), self.out.read()
        largest = np.abs(surfaces).max()
        tolerance = (1e-4 if self.question.precision in ("fp32", "fp64", "3xtf32") else 3e-2) * largest
        kind = self.question.problem.fields.result_kind
        if kind == "surface":
            np.testing.assert_allclose(made.reshape(surfaces.shape), surfaces, rtol=0, atol=tolerance)
        elif kind == "peak":
            records = made.reshape(-1, 8).view(PEAK)[:, 0]
            np.testing.assert_allclose(records["value"], surfaces.max(axis=(1, 2)), rtol=0, atol=tolerance)
        else:
            count, bound = int(made[:2].view("u8")[0]), 0.2
            assert (surfaces > bound + tolerance).sum() <= count <= (surfaces > bound - tolerance).sum()
            self.plan.check()


def cases(cuda, library, variant):
    """The problems that the variant supports. Skips where the build lacks it, or it supports none."""
    known = {one["id"]: one for one in library.variants()}
    if variant not in known:
        pytest.skip("the build lacks this variant")
    precisions = known[variant]["precisions"]
    for left, right, options in PROBLEMS:
        precision = options.get("precision", "fp32" if "fp32" in precisions else precisions[0])
        try:
            case = Case(cuda, library, variant, left, right, {**options, "precision": precision})
        except LibraryError as error:
            assert "not supported" in str(error), error
            continue
        yield case
        case.plan.close()


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_computes_on_the_stream_of_the_caller(cuda, library, variant):
    """In streams that end between calls, and again from a graph with other numbers. A call that waits or allocates cannot be
    captured."""
    computed = 0
    for case in cases(cuda, library, variant):
        computed += 1
        for _ in range(2):
            stream = cuda.stream()
            case.clear()
            case.call(stream)
            cuda.wait(stream)
            case.check()
            cuda.destroy(stream)
        stream = cuda.stream()
        graph = cuda.captured(stream, lambda case=case, stream=stream: case.call(stream))
        for sign in (1, -1):
            case.left = np.float32(sign) * numbers(case.left.shape)
            case.arrays[0].write(case.left)
            case.clear()
            cuda.replay(graph, stream)
            cuda.wait(stream)
            case.check()
        case.clear()
        case.call(stream)  # not recorded, after a graph
        cuda.wait(stream)
        case.check()
        cuda.destroy(stream)
    if not computed:
        pytest.skip("the variant supports none of these problems")


@pytest.mark.parametrize("kind", ["u1", "i1", "u2", "i2", "f2"])
def test_other_types_are_converted(cuda, kind):
    left, right = (RNG.integers(0, 100, size=(3, 20, 24)).astype(kind) for _ in range(2))
    plan = xcorr.plan(cuda.array(left), cuda.array(right))
    out = cuda.array(np.full((3, 3, 39, 47), 99, "f4"))
    plan(cuda.array(left), cuda.array(right), out, 0)
    cuda.wait()
    truth = xcorr.correlate(left, right, variant="cpu_definition")
    np.testing.assert_allclose(out.read(), truth, rtol=1e-4, atol=1e-4 * truth.max())


def test_other_strides_and_addresses_are_taken(cuda):
    left, right = numbers((4, 32, 32)), numbers((4, 32, 32))
    moved, frame = cuda.array(left, offset=4), cuda.array(right)
    frame.shape, part = (4, 16, 20), right[:, :16, :20]
    out = cuda.array(np.full((4, 4, 47, 51), 99, "f4"))
    xcorr.correlate(moved, frame, out=out)
    cuda.wait()
    np.testing.assert_allclose(out.read(), xcorr.correlate(left, part), rtol=0, atol=1e-2)


def test_clones_compute_in_threads_and_streams(cuda, library):
    wrong = []

    def compute(case):
        stream = cuda.stream()
        for _ in range(50):
            case.clear()
            case.call(stream)
            cuda.wait(stream)
            try:
                case.check()
            except AssertionError as error:
                wrong.append(error)

    made = [Case(cuda, library, "auto", (64, 64), (8, 64, 64), {}) for _ in range(4)]
    for case in made[1:]:
        case.plan = made[0].plan.clone()
    threads = [threading.Thread(target=compute, args=(case,)) for case in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[0]


def test_too_many_detections_are_found_by_check(cuda):
    left, right = cuda.array(numbers((8, 8))), cuda.array(numbers((64, 64)))
    plan = xcorr.plan(left, right, result="above:-1000:5")
    plan(left, right, cuda.array(np.zeros(4 + 4 * 5, "i4")), 0)
    with pytest.raises(LibraryError, match="the capacity is 5"):
        plan.check()


def tensors(torch, *shapes):
    return [torch.from_numpy(numbers(shape)).cuda() for shape in shapes]


FORBIDDEN = (
    "cudaMalloc",
    "cudaFree",
    "cudaMemcpy",
    "cudaStreamSynchronize",
    "cudaDeviceSynchronize",
    "cudaEventSynchronize",
)


def test_pytorch_sees_no_wait_and_no_memory(torch):
    left, right = tensors(torch, (64, 64), (8, 64, 64))
    out = torch.empty((8, 127, 127), device="cuda")
    plan = xcorr.plan(left, right)
    plan(left, right, out)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as trace:
        for _ in range(10):
            plan(left, right, out)
        torch.zeros(1, device="cuda")  # a launch that must be seen, or the trace sees nothing
    assert torch.cuda.memory_allocated() == before
    seen = {event.name for event in trace.events()}
    assert any("cudaLaunchKernel" in name for name in seen), seen
    # The end of the trace itself waits for the device, once.
    calls = [event.name for event in trace.events() if event.name.startswith(FORBIDDEN)]
    assert calls.count("cudaDeviceSynchronize") <= 1 and set(calls) <= {"cudaDeviceSynchronize"}, calls
    np.testing.assert_allclose(out.cpu(), xcorr.correlate(left.cpu().numpy(), right.cpu().numpy()), rtol=0, atol=1e-2)


def test_pytorch_captures_a_planned_call(torch):
    left, right = tensors(torch, (3, 32, 32), (5, 32, 32))
    out = torch.empty((3, 5, 63, 63), device="cuda")
    plan = xcorr.plan(left, right)
    plan(left, right, out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        plan(left, right, out)
    left.copy_(torch.from_numpy(numbers((3, 32, 32))))
    out.fill_(99)
    graph.replay()
    torch.cuda.synchronize()
    np.testing.assert_allclose(out.cpu(), xcorr.correlate(left.cpu().numpy(), right.cpu().numpy()), rtol=0, atol=1e-2)


@pytest.mark.parametrize("kind", ["uint8", "int16", "float16", "bfloat16"])
def test_types_of_pytorch(torch, kind):
    left, right = (torch.randint(0, 100, (20, 24), device="cuda").to(getattr(torch, kind)) for _ in range(2))
    made = xcorr.correlate(left, right)
    assert made.dtype == torch.float32
    truth = xcorr.correlate(left.float().cpu().numpy(), right.float().cpu().numpy(), variant="cpu_definition")
    np.testing.assert_allclose(made.cpu(), truth, rtol=1e-4, atol=1e-4 * truth.max())


def test_streams_of_pytorch(torch):
    """Memory that is freed at once, while another stream still reads it."""
    right = tensors(torch, (32, 128, 128))[0]
    streams, made = [torch.cuda.Stream() for _ in range(3)], []
    for round_ in range(12):
        stream = streams[round_ % 3]
        with torch.cuda.stream(stream):
            left = torch.full((128, 128), float(round_), device="cuda")
            stream.wait_stream(torch.cuda.default_stream())
            made.append(xcorr.correlate(left, right, result="sum"))
        del left
        torch.full((128, 128), -1e9, device="cuda")  # takes freed memory
    torch.cuda.synchronize()
    for round_, one in enumerate(made):
        truth = float(round_) * 128 * 128 * right.double().sum((1, 2)).cpu()
        np.testing.assert_allclose(one.cpu(), truth, rtol=1e-3, atol=1e-3 * max(1.0, float(truth.abs().max())))


def test_peaks_of_pytorch_have_columns(torch):
    left, right = tensors(torch, (24, 24), (4, 96, 96))
    columns = xcorr.columns(xcorr.correlate(left, right, window="valid", score="zncc", result="peak"))
    truth = xcorr.correlate(left.cpu().numpy(), right.cpu().numpy(), window="valid", score="zncc", result="peak")
    for name in ("sy", "sx"):
        np.testing.assert_array_equal(columns[name].cpu(), truth[name])
    np.testing.assert_allclose(columns["value"].cpu(), truth["value"], atol=1e-4)


def test_arrays_of_cupy(cupy):
    left, right = (cupy.asarray(numbers(shape)) for shape in ((64, 64), (8, 64, 64)))
    plan = xcorr.plan(left, right)
    out = cupy.empty((8, 127, 127), "f4")
    truth = xcorr.correlate(left.get(), right.get())
    for stream in (cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True)):
        cupy.cuda.Device().synchronize()
        with stream:
            out.fill(99)
            used = cupy.get_default_memory_pool().total_bytes()
            plan(left, right, out)
            assert cupy.get_default_memory_pool().total_bytes() == used
            made = xcorr.correlate(left, right)
        stream.synchronize()
        for one in (out, made):
            np.testing.assert_allclose(one.get(), truth, rtol=0, atol=1e-2)


def test_host_time_of_a_planned_call_is_printed(cupy, capsys):
    """Only printed: nothing is right or wrong about it."""
    from cupyx.scipy import signal

    left, right = (cupy.asarray(numbers((64, 64))) for _ in range(2))
    plan, out = xcorr.plan(left, right), cupy.empty((127, 127), "f4")
    calls = {
        "planned call": lambda: plan(left, right, out),
        "xcorr.correlate": lambda: xcorr.correlate(left, right, out=out),
        "cupyx.scipy.signal.fftconvolve": lambda: signal.fftconvolve(right, left[::-1, ::-1]),
        "cupy elementwise": lambda: cupy.multiply(left, right, out=left),
    }
    with capsys.disabled():
        for name, call in calls.items():
            call()
            cupy.cuda.Device().synchronize()
            print(f"\nhost time of {name}: {1e6 * min(timeit.repeat(call, number=200, repeat=5)) / 200:.1f} us", end="")
            cupy.cuda.Device().synchronize()
