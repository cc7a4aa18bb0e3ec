// FFTW's planner without its clock: measured plans differ from run to run, and with them the last
// bits of outputs. What was asked for is printed.
#include <dlfcn.h>
#include <fftw3.h>

#include <cstdio>

#define PLAN(PREFIX, NAME, PARAMETERS, ARGUMENTS, FORMAT, ...)                                \
  extern "C" PREFIX##plan PREFIX##NAME PARAMETERS {                                           \
    using Function = PREFIX##plan(*) PARAMETERS;                                              \
    static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, #PREFIX #NAME));     \
    std::printf(#PREFIX #NAME " " FORMAT " flags %x\n", __VA_ARGS__, flags);                  \
    flags = (flags & ~static_cast<unsigned>(FFTW_PATIENT | FFTW_EXHAUSTIVE)) | FFTW_ESTIMATE; \
    return real ARGUMENTS;                                                                    \
  }
#define PLANS(PREFIX, REAL)                                                                        \
  PLAN(PREFIX, plan_dft_r2c_1d, (int n, REAL* in, PREFIX##complex* out, unsigned flags),           \
       (n, in, out, flags), "%d", n)                                                               \
  PLAN(PREFIX, plan_dft_c2r_1d, (int n, PREFIX##complex* in, REAL* out, unsigned flags),           \
       (n, in, out, flags), "%d", n)                                                               \
  PLAN(PREFIX, plan_dft_r2c_2d, (int n, int m, REAL* in, PREFIX##complex* out, unsigned flags),    \
       (n, m, in, out, flags), "%d %d", n, m)                                                      \
  PLAN(PREFIX, plan_dft_c2r_2d, (int n, int m, PREFIX##complex* in, REAL* out, unsigned flags),    \
       (n, m, in, out, flags), "%d %d", n, m)                                                      \
  PLAN(PREFIX, plan_many_dft,                                                                      \
       (int rank, const int* n, int many, PREFIX##complex* in, const int* in_embed, int in_stride, \
        int in_next, PREFIX##complex* out, const int* out_embed, int out_stride, int out_next,     \
        int sign, unsigned flags),                                                                 \
       (rank, n, many, in, in_embed, in_stride, in_next, out, out_embed, out_stride, out_next,     \
        sign, flags),                                                                              \
       "%d of %d (%d axes) strides %d,%d,%d,%d sign %d", many, n[0], rank, in_stride, in_next,     \
       out_stride, out_next, sign)

PLANS(fftw_, double)
PLANS(fftwf_, float)
