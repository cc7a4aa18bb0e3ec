// What no object says of kernels that are compiled while a program runs: bytes of their parameters. Compiled with
// record_calls against the tree that is recorded, for the emulation, whose device code a C++ compiler takes; nothing
// but sizes is used of it. The recorder (calls.py) names the header of such kernels, where the tree has one, and its
// family.
#include <cstddef>
#include <vector>

#include "stand_in.hpp"
#ifdef XCORR_RUN_TIME_HEADER
#define XCORR_EMULATE "tests/emulation/vocabulary.hpp"
#include XCORR_RUN_TIME_HEADER
const std::vector<std::size_t> stand_in::kParametersAtRunTime = {
    sizeof(xcorr::XCORR_RUN_TIME_FAMILY::RunTimeArguments)};
#else
const std::vector<std::size_t> stand_in::kParametersAtRunTime;
#endif
