// What no object says of kernels that are compiled while a program runs: bytes of their parameters. Compiled with
// record_calls against the tree that is recorded, for the emulation, whose device code a C++ compiler takes; nothing
// but sizes is used of it.
#include <cstddef>
#include <vector>

#include "stand_in.hpp"
#if __has_include("algorithms/template_matching/template_pearson_jit/tile_sums.hpp")
#define XCORR_EMULATE "tests/emulation/vocabulary.hpp"
#include "algorithms/template_matching/template_pearson_jit/tile_sums.hpp"
const std::vector<std::size_t> stand_in::kParametersAtRunTime = {
    sizeof(xcorr::template_matching::RunTimeArguments)};
#else
const std::vector<std::size_t> stand_in::kParametersAtRunTime;
#endif
