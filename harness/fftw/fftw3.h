/* The part of FFTW's interface that this project calls, written from FFTW's manual. A build with
   -Dfftw=loaded includes this file in place of FFTW's own header and needs no FFTW to compile or to
   link; loader.cpp defines the functions. tests/scripts/test_fftw_header.py compares the constants
   with FFTW's header. */
#pragma once

#include <stddef.h>

#define FFTW_FORWARD (-1)
#define FFTW_BACKWARD (+1)
#define FFTW_NO_TIMELIMIT (-1.0)

#define FFTW_MEASURE (0U)
#define FFTW_UNALIGNED (1U << 1)
#define FFTW_ESTIMATE (1U << 6)
#define FFTW_NO_DFT_R2HC (1U << 9)
#define FFTW_NO_BUFFERING (1U << 11)
#define FFTW_NO_INDIRECT_OP (1U << 12)
#define FFTW_NO_RANK_SPLITS (1U << 14)
#define FFTW_NO_VRANK_SPLITS (1U << 15)
#define FFTW_NO_VRECURSE (1U << 16)
#define FFTW_WISDOM_ONLY (1U << 21)

#ifdef __cplusplus
extern "C" {
#endif

typedef double fftw_complex[2];
typedef struct fftw_plan_s* fftw_plan;
typedef float fftwf_complex[2];
typedef struct fftwf_plan_s* fftwf_plan;

#define PLAN fftw_plan
#define REAL double
#define COMPLEX fftw_complex
#define XCORR_FFTW(result, name, parameters, arguments) result fftw_##name parameters;
#include "harness/fftw/functions.inc"
#undef XCORR_FFTW
#undef COMPLEX
#undef REAL
#undef PLAN

#define PLAN fftwf_plan
#define REAL float
#define COMPLEX fftwf_complex
#define XCORR_FFTW(result, name, parameters, arguments) result fftwf_##name parameters;
#include "harness/fftw/functions.inc"
#undef XCORR_FFTW
#undef COMPLEX
#undef REAL
#undef PLAN

/* Threads of FFTW: every plan of this project has one thread. */
int fftw_init_threads(void);
void fftw_plan_with_nthreads(int threads);

/* The version of what computes: FFTW's own text, or `pocketfft`. It is empty before the first call. */
extern char fftw_version[];
extern char fftwf_version[];

#ifdef __cplusplus
}
#endif
