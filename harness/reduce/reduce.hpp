// Every result for every variant: a variant that computes only surfaces gets memory for its
// surface, and the harness reduces it inside compute, in kernels of its own (docs/design.md, Fields
// of a problem).
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "harness/variant.hpp"

namespace xcorr {

// Whether the harness reduces: the variant does not list the result, or detections have a least
// distance, which only the whole surface tells.
inline bool is_reduced(const Variant& variant, const Problem& problem) {
  if (problem.fields.result.distance > 1) return true;
  return std::find(variant.results.begin(), variant.results.end(), problem.fields.result.kind) ==
         variant.results.end();
}

// 8 hex digits: the hash of the tokens of the reduction on a backend.
std::string reduction_hash(Backend backend);
// What a row of the point depends on: source_hash, with `+` and reduction_hash where the harness
// reduces.
std::string point_hash(const Variant& variant, const Problem& problem);

// The request as the variant gets it: with result `surface` where the harness reduces.
inline PlanRequest variant_request(const Variant& variant, PlanRequest request) {
  if (is_reduced(variant, request.problem)) request.problem = request.problem.surface();
  return request;
}

// Bytes of the workspace for make_plan: that of the variant, and surface and scratch memory where
// the harness reduces.
std::size_t plan_workspace_bytes(const Variant& variant, const PlanRequest& request);

// Plans the variant and, where the harness reduces, the reduction, which is the phase `result` of
// compute.
std::unique_ptr<Plan> make_plan(const Variant& variant, const PlanRequest& request);

// How many blocks of a GPU share each surface, for few large surfaces: a share is `outputs`
// consecutive outputs, the last one fewer. It depends on the problem alone, so that scratch memory
// is known without a device and records never depend on the device.
struct SurfaceShares {
  explicit SurfaceShares(const Problem& problem);

  Index count = 1, outputs = 0;
};

// Scratch memory of a reduction on a GPU, as offsets in bytes. The host needs none.
struct ReduceScratch {
  explicit ReduceScratch(const Problem& problem);

  // peak and peaks, where blocks share a surface: findings of two consecutive scans,
  // reduce::Candidate[2][pairs][shares], and whether shares are finite, Index[pairs][shares].
  std::size_t found = 0, finite = 0;

  // above:8mad: double[pairs].
  std::size_t thresholds = 0;
  // peak:upsample=u: weights double[out_rows][points] and double[out_cols][points], and
  // double[out_rows][points] for each of `blocks` blocks.
  Index points = 0, blocks = 0;
  std::size_t row_weights = 0, col_weights = 0, lines = 0;
  std::size_t bytes = 0;
};

// Reduces surface[pairs][out_rows][out_cols], in the scalar type of the precision class, to the
// records of problem.fields.result. Pointers are to memory of the backend. A GPU enqueues the work
// on the stream (cudaStream_t).
void reduce_on_cpu(const Problem& problem, Precision precision, const void* surface, void* scratch,
                   void* out);
void reduce_on_cuda(const Problem& problem, Precision precision, const void* surface, void* scratch,
                    void* out, void* stream);  // only in builds with CUDA

}  // namespace xcorr
