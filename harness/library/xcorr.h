/* The C interface of libxcorr: cross-correlations of many pairs of matrices, by any variant of the
   library, on the CPU or an NVIDIA GPU.

   For every pair p of a left matrix L and a right matrix R, and every shift (sy, sx):
       out[p][sy][sx] = sum over (y, x) of L[y][x] * R[y + sy][x + sx]
   Elements outside a matrix count as zero. Output index [0][0] is the smallest shift of the window.

   Errors. A function returns 0, or 1 after an error: then `error`, a buffer of the caller of
   `error_capacity` bytes, has one line of text that ends with 0. `error` may be null. No exception
   leaves a function. A pointer that may not be null and is null is an error. The functions that return
   other numbers say so.

   JSON. A function that gives JSON writes it, with a 0 at its end, into `json`, a buffer of the
   caller. It returns 2 where the buffer is too small, and writes the needed bytes into it as decimal
   text.

   Ownership. The library keeps no pointer to memory of the caller after a call. A session belongs to
   the library; its handle is valid until xcorr_close.

   Threads. Every function may be called from any thread. Calls with one session compute one after
   the other. After a fork, a child may compute on the CPU; CUDA works in no child of a process that
   has used it.

   Requests are JSON objects. A problem has
       form           "one-to-one", "one-to-many", "n-to-mn" or "n-to-m"
       left, right    [rows, cols] of one matrix
       lefts, rights  the number of left matrices and of right matrices
       window         "full" (default), "valid" or "sy:a..b,sx:c..d"
   and the fields boundary, score, masks, result, same and views, each with a default
   (docs/design.md, Fields of a problem). A computation also has
       variant        an id of xcorr_list
       params         a point of the variant; default: its first point
       precision      "fp32" (default), "fp64" or another one of the variant
       device         "cpu" (default), "cuda" or "cuda:1"
       planning       "once" (default): quickly; "measured": FFTW times its ways to compute, which
                      takes seconds; "kept": as measured, with findings kept in the user's cache
   An unknown key is an error.

   Example: harness/library/example.c. Symbols have the version XCORR_1. */
#ifndef XCORR_H
#define XCORR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. It grows when a function or a member changes its meaning or is
   removed; a new function does not change it. */
#define XCORR_ABI_VERSION 1

/* XCORR_ABI_VERSION of the loaded library. */
int xcorr_abi_version(void);

/* Gives {"single": NAME, "double": NAME}: what computes transforms on the CPU, such as
   "fftw-3.3.10-sse2-avx" or "pocketfft". Loads FFTW where that is done at run time. */
int xcorr_cpu_transforms(char* json, size_t capacity, char* error, size_t error_capacity);

/* Gives {"grid": ..., "variants": [...]}: every variant with its id, family, forms, fields,
   precisions and points. */
int xcorr_list(char* json, size_t capacity, char* error, size_t error_capacity);

/* Gives the facts of a machine and of this build; `machine_key` names the machine. */
int xcorr_machine(const char* device, char* json, size_t capacity, char* error,
                  size_t error_capacity);

/* Gives pairs, out_rows, out_cols, the smallest shift (sy0, sx0), fmas, bytes, result_bytes and
   max_overlap of a problem. Byte counts are those of fp32. */
int xcorr_describe(const char* request, char* json, size_t capacity, char* error,
                   size_t error_capacity);

/* Gives {"reason": TEXT}: an empty text where the variant computes the request on the device. Plans
   nothing. */
int xcorr_supports(const char* request, char* json, size_t capacity, char* error,
                   size_t error_capacity);

/* Plans a computation and allocates its memory. Leaves a handle in `session`, or null after an
   error. The caller ends it with xcorr_close. */
int xcorr_open(const char* request, void** session, char* error, size_t error_capacity);

/* Computes with dense arrays in host memory, of the scalar type of the precision: left
   [lefts][rows][cols], right [rights][rows][cols] (not read with same=yes), out
   [pairs][out_rows][out_cols] or records of the field `result`. `out` shares no memory with an
   input. */
int xcorr_compute(void* session, const void* left, const void* right, void* out, char* error,
                  size_t error_capacity);

/* Arrays of a problem with masks or views, in host memory. Members that the fields of the problem do
   not use may be null or 0. */
typedef struct xcorr_arrays {
  const void *left, *right;
  void* out;
  const uint8_t *left_mask, *right_mask;       /* a byte a pixel, 0 or 1 */
  const int64_t *left_offsets, *right_offsets; /* first element of each window of a frame */
  int64_t left_pitch, right_pitch;             /* elements between two rows of a frame */
  int64_t left_elements, right_elements;       /* elements of the whole frame */
} xcorr_arrays;

/* As xcorr_compute. */
int xcorr_compute_with(void* session, const xcorr_arrays* arrays, char* error,
                       size_t error_capacity);

/* Plans a computation on arrays in the memory of its device. The request also tells how they lie:
       left_type, right_type        type of the elements, such as "uint8" (default: the scalar type)
       left_strides, right_strides  [matrix, row, column], in elements (default: dense)
       left_aligned, right_aligned  "yes" (default) where addresses are multiples of 16 bytes, or "no"
   Elements of other types or strides are converted by each call. Leaves a handle in `session`, or
   null after an error. Returns 3 where another variant may take such arrays. */
int xcorr_open_device(const char* request, void** session, char* error, size_t error_capacity);

/* Enqueues one call on the stream (cudaStream_t) and returns: it waits for nothing and allocates
   nothing. Pointers are to memory of the device; offsets and pitches are not read. One thread and one
   stream at a time. The caller keeps arrays and session until the work has ended, and a session as
   long as a graph that has recorded it. A kernel of the caller that lets the next launch start early
   (programmatic dependent launch) waits for its own previous launch before that. */
int xcorr_enqueue(void* session, const xcorr_arrays* arrays, void* stream, char* error,
                  size_t error_capacity);

/* Waits for the stream. An error where the device has failed, and where `out`, the result of a call
   of this session, has more detections than the capacity of result `above`. */
int xcorr_check(void* session, const void* out, void* stream, char* error, size_t error_capacity);

/* Frees the plan and its memory. A handle that is not open is an error. */
int xcorr_close(void* session, char* error, size_t error_capacity);

/* The surface of a problem in float64, by key `method` of the request: "definition" (default) or
   "fft". out is [pairs][out_rows][out_cols]. */
int xcorr_reference(const char* request, const double* left, const double* right, double* out,
                    char* error, size_t error_capacity);

/* As xcorr_reference, with a mask for each side that has one by the field `masks`, else null. Arrays
   are dense, also for a request with views. */
int xcorr_reference_masked(const char* request, const double* left, const double* right,
                           const uint8_t* left_mask, const uint8_t* right_mask, double* out,
                           char* error, size_t error_capacity);

#ifdef __cplusplus
}
#endif

#endif
