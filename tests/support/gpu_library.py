"""The built library as that of a machine with a GPU: variants of the CPU compute under names of CUDA variants."""

DEVICE = "cuda:0"


class GpuLibrary:
    """`names`: of each CUDA variant the variant of the CPU that computes for it. Counts the calls of `correlate`."""

    def __init__(self, library, names):
        self._library, self._names, self.calls = library, names, []

    def machine(self, device):
        assert device == DEVICE
        return {"machine_key": "stand-in", "compute_capability": "9.0"}

    def variants(self):
        return [self.variant(name) for name in self._names]

    def variant(self, name):
        return {**self._library.variant(self._names[name]), "id": name, "backend": "cuda"}

    def describe(self, problem):
        return self._library.describe(problem)

    def supports(self, problem, *, variant, device, **how):
        assert device == DEVICE
        return self._library.supports(problem, variant=self._names[variant], **how)

    def correlate(self, problem, *sides, variant, device, **how):
        assert device == DEVICE
        self.calls.append((problem, variant))
        return self._library.correlate(problem, *sides, variant=self._names[variant], **how)
