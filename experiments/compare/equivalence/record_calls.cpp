// Prints what the calls of variants enqueue, for all their points on a fixed list of problems; of a
// CPU variant, which enqueues nothing, a hash of its outputs instead. Compiled against the headers
// of the tree that it records, linked with cuda_stand_in ahead of the CUDA libraries, so that no
// GPU is needed.
//
// Parameters of kernels are printed byte by byte, and structs have padding that nobody sets. So the
// stack is filled with a byte, XCORR_PAINT, before the calls: what differs between two runs with
// two bytes is padding.
//
// usage: XCORR_KERNELS=TABLE XCORR_PAINT=255 record_calls ID...        example: record_calls
// split_row cpu_fft
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "harness/problem/error.hpp"
#include "harness/registry.hpp"

namespace {

using namespace xcorr;

struct Counts {
  Form form;
  Index lefts, rights;
};

// Every form; few matrices and more than any group of them takes, multiples of groups and not.
const Counts kCounts[] = {
    {Form::one_to_one, 1, 1}, {Form::one_to_many, 1, 3}, {Form::one_to_many, 1, 64},
    {Form::n_to_mn, 2, 6},    {Form::n_to_mn, 8, 256},   {Form::n_to_m, 2, 3},
    {Form::n_to_m, 33, 40},   {Form::n_to_m, 128, 128},
};
// Every length of transform, sizes of the experiments, odd ones, more than shared memory holds.
const Shape kEqual[] = {{1, 1},     {4, 4},     {7, 5},     {8, 8},     {16, 16},   {24, 24},
                        {31, 33},   {32, 32},   {48, 48},   {64, 64},   {96, 96},   {100, 36},
                        {128, 128}, {129, 97},  {192, 192}, {256, 256}, {384, 384}, {1, 1000},
                        {512, 512}, {128, 192}, {128, 256}, {192, 256}, {256, 128}, {256, 192}};
// Unequal shapes, and windows.
struct Special {
  Shape left, right;
  const char* window;
};
const Special kSpecial[] = {{{8, 8}, {32, 40}, "valid"},
                            {{16, 16}, {16, 16}, "sy:-3..3,sx:0..7"},
                            {{40, 24}, {9, 50}, "full"},
                            {{64, 64}, {64, 64}, "sy:0..63,sx:-63..63"},
                            {{1, 256}, {1, 5000}, "valid"}};
// Templates along a signal: every length of segment, several channels, more templates than a block takes.
struct Series {
  Index templates;
  Shape of_template, signal;
};
const Series kSeries[] = {{1, {1, 7}, {1, 100}},
                          {16, {1, 256}, {1, 20'000}},
                          {33, {3, 100}, {3, 9'001}},
                          {2, {1, 1500}, {1, 70'001}},
                          {1, {1, 3500}, {1, 30'000}}};
// Problems with fields, by their names: sizes of the experiments, odd ones, other forms, every length of transform, and
// every field that a variant may have kernels of its own for. A tree may be older than a field.
const std::vector<std::string> kShapesOfScores = {
    "one-to-one/11x9/40x37/1:1/valid",     "n-to-m/53x54/71x58/5:1/valid",
    "n-to-m/64x64/200x300/3:2/valid",      "n-to-mn/16x20/33x130/2:6/valid",
    "n-to-m/21x23/21x23/2:3/full",         "one-to-many/64x64/64x64/1:70/full",
    "one-to-one/9x7/600x700/1:1/valid",    "one-to-one/40x30/41x31/1:1/full",
    "n-to-mn/64x20/65x20/2:4/full",        "one-to-one/90x9/100x9/1:1/full",
    "one-to-many/120x9/130x9/1:3/full",    "one-to-one/180x9/200x9/1:1/full",
    "one-to-one/256x20/256x20/1:1/full",   "one-to-many/32x32/32x32/1:9/full",
    "one-to-many/96x96/96x96/1:9/full",    "one-to-many/128x128/128x128/1:9/full",
    "one-to-one/192x192/192x192/1:1/full", "n-to-m/20x18/20x18/40:2/full",
    "one-to-one/5x700/9x900/1:1/valid"};
const std::vector<std::string> kScores = {"/score=zncc:0.3",
                                          "/score=zncc:0.3/masks=left",
                                          "/score=zncc:0.3/masks=right",
                                          "/score=zncc:0.3/masks=both",
                                          "/score=ncc:0.3",
                                          "/score=ncc:0.3/masks=left",
                                          "/score=ncc:0.3/masks=right",
                                          "/score=ncc:0.3/masks=both",
                                          "/score=covariance",
                                          ""};
const std::vector<std::string> kResults = {"", "/result=peak", "/result=peak:gaussian"};
const std::vector<std::string> kEqualShapes = {
    "n-to-mn/16x16/16x16/9:9/full",        "n-to-mn/24x20/24x20/9:9/full",
    "n-to-mn/32x32/32x32/40:40/full",      "one-to-many/32x32/32x32/1:9/full",
    "n-to-m/48x48/48x48/3:2/full",         "n-to-mn/64x64/64x64/9:9/full",
    "n-to-mn/96x96/96x96/4:4/full",        "n-to-mn/128x128/128x128/3:3/full",
    "one-to-many/128x128/128x128/1:3/full"};
const std::vector<std::string> kScoresOfEqual = {"", "/score=covariance", "/boundary=circular",
                                                 "/boundary=circular/score=covariance",
                                                 "/boundary=circular/score=phase:0"};
const std::vector<std::string> kViews = {"", "/views=windows"};
const std::vector<std::string> kOthers = {
    "n-to-m/100x90/100x90/1:1/full/result=peak:upsample=10",
    "one-to-one/64x64/64x64/1:1/full/same=yes",
    "one-to-one/96x80/96x80/1:1/full/boundary=circular/same=yes",
    "n-to-m/1x256/1x20000/16:1/valid/result=above:8mad:1000",
    "n-to-m/1x256/1x20000/16:1/valid/result=above:0.5:1000",
    "n-to-m/3x256/3x20000/40:1/valid/result=above:8mad:1000",
    "n-to-m/3x256/3x90000/40:1/valid/score=zncc:0.3/result=above:8mad:1000",
    "n-to-mn/3x49/3x1201/3:3/valid/score=zncc:0.3/views=channels"};

// Every word of one list behind every word of the other.
std::vector<std::string> joined(const std::vector<std::string>& first,
                                const std::vector<std::string>& second) {
  std::vector<std::string> all;
  for (const std::string& a : first) {
    for (const std::string& b : second) all.push_back(a + b);
  }
  return all;
}

constexpr Index kMostFmasOfCpu = 20'000'000;
constexpr Index kMostBytes = Index{4} << 30;

std::vector<Problem> problems() {
  std::vector<Problem> all;
  for (const Counts& c : kCounts) {
    for (const Shape& shape : kEqual) {
      all.push_back(make_problem(c.form, shape, shape, c.lefts, c.rights, "full"));
    }
    for (const Special& s : kSpecial) {
      all.push_back(make_problem(c.form, s.left, s.right, c.lefts, c.rights, s.window));
    }
  }
  // Time series: one signal.
  for (const Series& one : kSeries) {
    all.push_back(
        make_problem(Form::n_to_m, one.of_template, one.signal, one.templates, 1, "valid"));
  }
  for (const std::vector<std::string>& ids :
       {joined(joined(kShapesOfScores, kScores), kResults),
        joined(joined(joined(kEqualShapes, kScoresOfEqual), kResults), kViews), kOthers}) {
    for (const std::string& id : ids) {
      try {
        all.push_back(parse_problem(id));
      } catch (const UserError&) {
        std::printf("unknown here: %s\n", id.c_str());
      }
    }
  }
  return all;
}

struct Names : PhaseMarks {
  void mark(std::string_view name) override {
    std::printf("phase %.*s\n", static_cast<int>(name.size()), name.data());
  }
};

// As the harness calls what it times. A tree may be older than the field.
template <typename AnyCall>
void as_timed(AnyCall& call) {
  if constexpr (requires { call.exclusive; }) call.exclusive = true;
}

[[gnu::noinline]] void paint_stack() {
  static const char* const byte = std::getenv("XCORR_PAINT");
  unsigned char stack[1 << 18];
  std::memset(stack, byte ? std::atoi(byte) : 0, sizeof stack);
  asm volatile("" : : "r"(stack) : "memory");  // or the compiler leaves it out
}

// The masks and views that the fields ask for.
void add_fields(Call& call, const Fields& fields, const std::uint8_t* left_mask,
                const std::uint8_t* right_mask, View left, View right) {
  if (masks_left(fields.masks)) call.left_mask = left_mask;
  if (masks_right(fields.masks)) call.right_mask = right_mask;
  if (fields.views == Views::dense) return;
  call.left_view = left;
  call.right_view = right;
}

constexpr Index kPitch = 2048;  // of frames that windows are taken from

struct DeviceMemory {
  explicit DeviceMemory(std::size_t bytes) { cudaMalloc(&pointer, bytes); }
  ~DeviceMemory() { cudaFree(pointer); }
  void* pointer = nullptr;
};

void record_cuda(const Variant& variant, PlanRequest request) {
  const Problem& problem = request.problem;
  const std::size_t scalar = scalar_bytes(request.precision);
  const auto bytes = [&](Index elements) { return static_cast<std::size_t>(elements) * scalar; };
  const std::size_t need = variant.workspace_bytes(request);
  std::printf("workspace %zu\n", need);
  const DeviceMemory workspace(need + 1), left(bytes(problem.left_elements())),
      right(bytes(problem.right_elements())),
      out(static_cast<std::size_t>(problem.result_bytes(scalar))),
      left_mask(static_cast<std::size_t>(problem.left_elements())),
      right_mask(static_cast<std::size_t>(problem.right_elements())),
      left_offsets(sizeof(Index) * static_cast<std::size_t>(problem.lefts * problem.left.rows)),
      right_offsets(sizeof(Index) * static_cast<std::size_t>(problem.rights * problem.right.rows));
  request.workspace = workspace.pointer;
  std::printf("plan\n");
  paint_stack();
  const std::unique_ptr<Plan> plan = variant.plan(request);
  Names names;
  Call call;
  call.left = left.pointer;
  call.right = right.pointer;
  call.out = out.pointer;
  call.stream = request.stream;
  const Index pitch = problem.fields.views == Views::channels ? 0 : kPitch;
  add_fields(call, problem.fields, static_cast<std::uint8_t*>(left_mask.pointer),
             static_cast<std::uint8_t*>(right_mask.pointer),
             {static_cast<Index*>(left_offsets.pointer), pitch},
             {static_cast<Index*>(right_offsets.pointer), pitch});
  as_timed(call);
  const auto compute = [&](const char* which) {
    std::printf("%s\n", which);
    paint_stack();
    plan->compute(call);
  };
  compute("first call");
  compute("second call");
  call.marks = &names;
  compute("call with phases");
  call.marks = nullptr;
  const auto stream = static_cast<cudaStream_t>(request.stream);
  cudaGraph_t graph{};
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  compute("captured call");
  cudaStreamEndCapture(stream, &graph);
  cudaGraphDestroy(graph);
  compute("call after the capture");
}

template <typename T>
std::vector<T> filled(Index elements, std::uint64_t seed) {
  std::vector<T> values(static_cast<std::size_t>(elements));
  for (T& value : values) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    value = static_cast<T>(static_cast<double>(seed >> 40) / (1 << 24));
  }
  return values;
}

template <typename T>
void record_cpu(const Variant& variant, PlanRequest request) {
  const Problem& problem = request.problem;
  const std::vector<T> left = filled<T>(problem.left_elements(), 1),
                       right = filled<T>(problem.right_elements(), 2);
  std::vector<unsigned char> out(static_cast<std::size_t>(problem.result_bytes(sizeof(T))));
  // Every eighth pixel is not valid; windows, or channels, lie one behind the other.
  const bool channels = problem.fields.views == Views::channels;
  std::vector<std::uint8_t> masks[2];
  std::vector<Index> offsets[2];
  for (const bool is_left : {true, false}) {
    const Index count = is_left ? problem.lefts : problem.rights;
    const Shape& shape = is_left ? problem.left : problem.right;
    for (Index i = 0; i < count * shape.size(); ++i) masks[is_left].push_back(i % 8 != 3);
    const Index parts = channels ? shape.rows : 1, size = shape.size() / parts;
    for (Index i = 0; i < count * parts; ++i) offsets[is_left].push_back(i * size);
  }
  const std::size_t need = (variant.workspace_bytes(request) / 256 + 1) * 256;
  const std::unique_ptr<void, decltype(&std::free)> workspace(std::aligned_alloc(256, need),
                                                              &std::free);
  request.workspace = workspace.get();
  const std::unique_ptr<Plan> plan = variant.plan(request);
  Call call;
  call.left = left.data();
  call.right = right.data();
  call.out = out.data();
  add_fields(call, problem.fields, masks[true].data(), masks[false].data(),
             {offsets[true].data(), channels ? 0 : problem.left.cols},
             {offsets[false].data(), channels ? 0 : problem.right.cols});
  for (int i = 0; i < 2; ++i) plan->compute(call);
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char byte : out) hash = (hash ^ byte) * 0x100000001b3;
  std::printf("outputs %016llx\n", static_cast<unsigned long long>(hash));
}

// Whether the variant says that it has these fields, without the harness behind it (Device::runs asks no less).
bool declares(const Variant& variant, const Fields& fields) {
  const auto has = [](const auto& values, auto value) {
    return std::find(values.begin(), values.end(), value) != values.end();
  };
  return has(variant.boundaries, fields.boundary) && has(variant.scores, fields.score.kind) &&
         has(variant.results, fields.result.kind) && has(variant.views, fields.views) &&
         (fields.masks == Masks::none || variant.masks) && (fields.same || !variant.same_only);
}

void record(const Variant& variant, const PlanRequest& request) {
  if (!declares(variant, request.problem.fields)) {
    std::printf("not declared\n");
  } else if (const Support support = variant.supports(request); !support) {
    std::printf("not supported\n");
  } else if (variant.backend == Backend::cuda) {
    record_cuda(variant, request);
  } else if (request.precision == Precision::fp64) {
    record_cpu<double>(variant, request);
  } else {
    record_cpu<float>(variant, request);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  cudaStream_t stream{};
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  for (int i = 1; i < argc; ++i) {
    const Variant& variant = find_variant(argv[i]);
    for (const Params& params : grid_points(variant)) {
      std::printf("point %s\n", params.canonical().c_str());
    }
    for (const Problem& problem : problems()) {
      bool has_form = false;
      for (const Form form : variant.forms) has_form |= form == problem.form;
      if (!has_form || problem.bytes(4) > kMostBytes ||
          (variant.backend == Backend::cpu && problem.fmas() > kMostFmasOfCpu))
        continue;
      for (const Precision precision : variant.precisions) {
        for (const Params& params : grid_points(variant)) {
          std::printf("== %s %s %s %s\n", variant.id.c_str(), problem.id().c_str(),
                      std::string(to_string(precision)).c_str(), params.canonical().c_str());
          PlanRequest request;
          request.problem = problem;
          request.params = params;
          request.precision = precision;
          request.stream = stream;
          record(variant, request);
        }
      }
    }
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: record_calls: %s\n", error.what());
  return 1;
}
