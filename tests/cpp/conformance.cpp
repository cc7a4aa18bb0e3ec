// Conformance: every registered variant that the device can run x every point of its grid x every
// precision class x every form it declares, on the shapes, counts and windows at which kernels
// break. Checks both witnesses, the memory beside the output, the inputs, and a second call of the
// same plan. One line per failure; its problem id is what --problem takes. Exits 1 on a failure, or
// when nothing ran.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/device.hpp"
#include "harness/error.hpp"
#include "harness/registry.hpp"
#include "harness/verdict.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

namespace xcorr {
namespace {

constexpr std::uint64_t kSeed = 7;

struct ShapePair {
  const char *left, *right;
};
constexpr ShapePair kShapes[] = {
    {"1x1", "1x1"},     {"1x37", "1x37"},   {"37x1", "37x1"},   {"31x31", "31x31"},
    {"32x32", "32x32"}, {"33x33", "33x33"}, {"17x40", "17x40"}, {"40x17", "40x17"},
    {"8x9", "33x21"},   {"33x21", "8x9"},   {"12x40", "40x12"}, {"5x33", "33x33"},
    {"1x9", "1x300"},   {"70x1", "9x1"},    {"1x1", "12x7"},    {"12x7", "1x1"}};
// On a GPU only, with few pairs: every length of a transform written here, beyond one warp too.
constexpr ShapePair kLargeShapes[] = {
    {"60x60", "60x60"},   {"100x70", "100x70"}, {"140x190", "140x190"}, {"250x12", "250x12"},
    {"1x90", "1x90"},     {"90x1", "90x1"},     {"12x120", "12x120"},   {"12x250", "12x250"}};
// These get every partial window: equal, left smaller, right smaller, crossing, single rows.
constexpr ShapePair kWindowShapes[] = {{"33x33", "33x33"}, {"17x40", "17x40"}, {"8x9", "33x21"},
                                       {"33x21", "8x9"},   {"12x40", "40x12"}, {"1x9", "1x70"},
                                       {"70x1", "9x1"}};

struct Counts {
  Form form;
  Index lefts, rights;
};
// On every shape.
constexpr Counts kCounts[] = {{Form::one_to_one, 1, 1},
                              {Form::one_to_many, 1, 7},
                              {Form::n_to_mn, 3, 12},
                              {Form::n_to_m, 3, 5}};
// On two shapes: one matrix on a side, m = 1, counts beyond a group of a kernel.
constexpr Counts kMoreCounts[] = {{Form::one_to_many, 1, 1}, {Form::one_to_many, 1, 33},
                                  {Form::n_to_mn, 1, 1},     {Form::n_to_mn, 5, 5},
                                  {Form::n_to_mn, 1, 4},     {Form::n_to_mn, 2, 18},
                                  {Form::n_to_m, 1, 1},      {Form::n_to_m, 1, 5},
                                  {Form::n_to_m, 5, 1},      {Form::n_to_m, 9, 17}};

constexpr Counts kLargeCounts[] = {
    {Form::one_to_one, 1, 1}, {Form::one_to_many, 1, 3}, {Form::n_to_m, 2, 2}};

std::string range(Index first, Index last) {
  return std::to_string(first) + ".." + std::to_string(last);
}

// Partial windows of one pair of shapes; `full` is its full window.
std::vector<std::string> partial_windows(const Problem& full) {
  const Shifts y = full.window.sy, x = full.window.sx;
  const auto text = [](const std::string& sy, const std::string& sx) {
    return "sy:" + sy + ",sx:" + sx;
  };
  return {
      "valid",
      text("0..0", "0..0"),
      text(range(y.first, y.first), range(x.first, x.first)),  // a single product
      text(range(std::max(y.first, y.last - 2), y.last),
           range(std::max(x.first, x.last - 4), x.last)),
      text(range(y.first, std::min(y.first + 3, y.last)),
           range(std::max(x.first, x.last - 1), x.last)),
      text(range(y.first / 2, y.last / 3), range(x.first / 3, x.last / 2)),
      text(range(std::min<Index>(1, y.last), y.last), range(x.first, std::max<Index>(-1, x.first))),
      text("0..0", range(x.first, x.last)),
      text(range(y.first, y.last), range(x.last, x.last)),
  };
}

std::vector<Problem> all_problems(Backend backend) {
  std::vector<Problem> problems;
  std::set<std::string> ids;
  const auto add = [&](const Counts& counts, const ShapePair& shapes, const std::string& window) {
    const Shape left = parse_shape(shapes.left), right = parse_shape(shapes.right);
    const Problem problem =
        make_problem(counts.form, left, right, counts.lefts, counts.rights, window);
    if (ids.insert(problem.id()).second) problems.push_back(problem);
  };
  for (const ShapePair& shapes : kShapes) {
    for (const Counts& counts : kCounts) add(counts, shapes, "full");
  }
  for (const ShapePair& shapes : kLargeShapes) {
    if (backend == Backend::cpu) break;
    for (const Counts& counts : kLargeCounts) add(counts, shapes, "full");
  }
  // Forms take turns over the windows, so that each form meets each window on some shape.
  std::size_t turn = 0;
  for (const ShapePair& shapes : kWindowShapes) {
    const Problem full = make_problem(Form::one_to_one, parse_shape(shapes.left),
                                      parse_shape(shapes.right), 1, 1, "full");
    for (const std::string& window : partial_windows(full)) {
      try {
        add(kCounts[turn++ % std::size(kCounts)], shapes, window);
      } catch (const UserError&) {
        if (window != "valid") throw;  // neither contains the other
      }
    }
  }
  for (const Counts& counts : kMoreCounts) {
    add(counts, {"13x11", "13x11"}, "full");
    add(counts, {"4x5", "9x10"}, "sy:-2..1,sx:-1..3");
  }
  return problems;
}

// Device memory between two bands that nobody may touch; AddressSanitizer knows them too.
class Banded {
 public:
  Banded(Device& device, std::size_t bytes)
      : device_(device), bytes_(bytes), memory_(device.allocate(bytes + 2 * kBand)) {
    device_.fill(memory_.get(), 0xff, bytes + 2 * kBand);  // NaN
    protect(true);
  }
  ~Banded() { protect(false); }
  Banded(const Banded&) = delete;

  char* data() const { return static_cast<char*>(memory_.get()) + kBand; }
  std::size_t size() const { return bytes_; }

  bool bands_intact() {
    std::vector<unsigned char> bands(2 * kBand);
    protect(false);
    device_.download(bands.data(), memory_.get(), kBand);
    device_.download(bands.data() + kBand, data() + bytes_, kBand);
    protect(true);
    return std::all_of(bands.begin(), bands.end(), [](unsigned char b) { return b == 0xff; });
  }

 private:
  static constexpr std::size_t kBand = 256;

  void protect(bool on) const {
    if (!device_.host_memory()) return;
    for (char* band : {static_cast<char*>(memory_.get()), data() + bytes_}) {
      if (on) {
        ASAN_POISON_MEMORY_REGION(band, kBand);
      } else {
        ASAN_UNPOISON_MEMORY_REGION(band, kBand);
      }
    }
  }

  Device& device_;
  std::size_t bytes_;
  Buffer memory_;
};

// Calls in a row with inputs and outputs in turn, nobody waiting between them: one must not meet
// the next in the workspace, nor read or write ahead of its turn. `call` has zero-mean inputs.
std::string calls_in_a_row(Plan& plan, const Problem& problem, const Call& call,
                           std::size_t out_bytes, std::size_t scalar, Truth& truth,
                           Device& device) {
  const auto bytes = [&](Index elements) { return static_cast<std::size_t>(elements) * scalar; };
  Banded left(device, bytes(problem.left_elements())),
      right(device, bytes(problem.right_elements())), out(device, out_bytes);
  Call other = call;
  other.left = left.data();
  other.right = right.data();
  other.out = out.data();
  truth.fill(InputKind::integer, left.data(), right.data());
  device.fill(out.data(), 0xff, out_bytes);
  device.fill(call.out, 0xff, out_bytes);
  for (int turn = 0; turn < 6; ++turn) plan.compute(turn % 2 == 0 ? call : other);
  device.synchronize();
  const Check last = truth.check(InputKind::integer, other.out);
  const Check before = truth.check(InputKind::zero_mean, call.out);
  if (last.passed() && before.passed()) return "";
  return "calls in a row: " + (last.passed() ? before.first_wrong : last.first_wrong);
}

// Plans once, computes three times, on a GPU six times more. Returns "" or what is wrong.
std::string run_case(const Variant& variant, PlanRequest request, Truth& truth, Device& device) {
  const std::size_t scalar = scalar_bytes(request.precision);
  const auto bytes = [&](Index elements) { return static_cast<std::size_t>(elements) * scalar; };
  const Problem& problem = request.problem;
  Banded left(device, bytes(problem.left_elements())),
      right(device, bytes(problem.right_elements()));
  Banded out(device, bytes(problem.out_elements()));
  Banded workspace(device, std::max<std::size_t>(variant.workspace_bytes(request), 1));
  request.workspace = workspace.data();
  std::vector<char> first(out.size()), again(out.size());

  const std::unique_ptr<Plan> plan = variant.plan(request);
  const Call call{left.data(), right.data(), out.data(), device.stream(), nullptr};
  const auto compute = [&](std::vector<char>& result) {
    plan->compute(call);
    device.synchronize();
    device.download(result.data(), out.data(), out.size());
  };
  for (const InputKind kind : {InputKind::integer, InputKind::zero_mean}) {
    const std::string where = std::string(to_string(kind)) + " input: ";
    truth.fill(kind, left.data(), right.data());
    device.fill(out.data(), 0xff, out.size());
    compute(first);
    if (const Check check = truth.check(kind, out.data()); !check.passed()) {
      return where + std::to_string(check.wrong) + " wrong; " + check.first_wrong;
    }
    const std::string changed = truth.changed_inputs(kind, left.data(), right.data());
    if (!changed.empty()) return where + changed;
  }
  compute(again);
  if (device.host_memory()) {
    if (first != again) return "a second call of the same plan gives other bits";
  } else if (const Check check = truth.check(InputKind::zero_mean, out.data()); !check.passed()) {
    return "second call: " +
           check.first_wrong;  // atomics may sum in another order, within the bound
  }
  if (!device.host_memory()) {
    const std::string wrong =
        calls_in_a_row(*plan, problem, call, out.size(), scalar, truth, device);
    if (!wrong.empty()) return wrong;
  }
  const std::pair<const char*, Banded*> buffers[] = {
      {"left", &left}, {"right", &right}, {"output", &out}, {"workspace", &workspace}};
  for (const auto& [name, buffer] : buffers) {
    if (!buffer->bands_intact()) return std::string("memory beside the ") + name + " was written";
  }
  return "";
}

struct Tally {
  Index passed = 0, failed = 0, skipped = 0;
  std::map<std::string, Index> ran;                              // cases of a variant
  std::map<std::pair<std::string, std::string>, Index> reasons;  // (variant, why) -> cases skipped
};

void run_problem(const std::vector<const Variant*>& chosen, const Problem& problem, Device& device,
                 Tally& tally) {
  std::map<std::pair<Precision, AlgorithmClass>, std::shared_ptr<Truth>> truths;
  for (const Variant* v : chosen) {
    if (std::count(v->forms.begin(), v->forms.end(), problem.form) == 0) continue;
    for (const Precision precision : v->precisions) {
      for (const Params& params : grid_points(*v)) {
        const PlanRequest request{problem, params, precision, nullptr, device.stream()};
        std::string wrong;
        try {
          if (const Support support = v->supports(request); !support) {
            ++tally.skipped;
            ++tally.reasons[{v->id, support.reason}];
            continue;
          }
          auto& truth = truths[{precision, v->algorithm_class}];
          if (!truth) truth = device.truth(problem, precision, v->algorithm_class, kSeed);
          wrong = run_case(*v, request, *truth, device);
        } catch (const std::exception& error) {
          wrong = std::string("threw: ") + error.what();
        }
        ++tally.ran[v->id];
        ++(wrong.empty() ? tally.passed : tally.failed);
        if (!wrong.empty()) {
          std::cout << "FAILED " << v->id << " (" << params.canonical() << ") "
                    << to_string(precision) << " " << problem.id() << ": " << wrong << std::endl;
          if (device.lost()) throw DeviceLost("device: lost by this case; the others did not run");
        }
      }
    }
  }
}

int run(int argc, char** argv) {
  std::string device_name = "cpu", wanted_problem;
  std::vector<std::string> ids;
  std::pair<Index, Index> shard{1, 1};
  CLI::App app(
      "Runs every variant of the build on the problems at which kernels break.\n"
      "Example: conformance --device cpu --variant cpu_fft --problem n-to-m/33x33/33x33/3:5/full");
  app.add_option("--device", device_name, "cpu, cuda or cuda:N")->capture_default_str();
  app.add_option("--variant", ids, "only these ids; default all that the device can run");
  app.add_option("--problem", wanted_problem, "only the problem of this id");
  app.add_option("--shard", shard, "K N: only the K-th of N parts of the problems");
  CLI11_PARSE(app, argc, argv);

  const std::unique_ptr<Device> device = open_device(device_name);
  std::vector<const Variant*> chosen;
  Tally tally;
  for (const std::string& id : ids) chosen.push_back(&find_variant(id));
  if (ids.empty()) {
    for (const Variant& variant : variants()) chosen.push_back(&variant);
  }
  std::erase_if(chosen, [&](const Variant* v) {
    if (v->backend == device->backend()) return false;
    ++tally.skipped;
    ++tally.reasons[{v->id, "needs a " + std::string(to_string(v->backend)) + " device"}];
    return true;
  });
  Index turn = 0;
  for (const Problem& problem : all_problems(device->backend())) {
    // By fours, so that every part has every form.
    const bool mine = turn++ / 4 % shard.second == shard.first - 1;
    if (mine && (wanted_problem.empty() || wanted_problem == problem.id())) {
      run_problem(chosen, problem, *device, tally);
    }
  }
  for (const auto& [key, count] : tally.reasons) {
    std::cout << "skipped " << key.first << ": " << key.second << " (" << count << ")\n";
  }
  if (wanted_problem.empty() && shard.second == 1) {
    for (const Variant* v : chosen) {
      if (tally.ran[v->id] > 0) continue;
      std::cout << "FAILED " << v->id << ": supports none of the problems\n";
      ++tally.failed;
    }
  }
  if (tally.passed + tally.failed == 0) std::cout << "FAILED: nothing ran\n";
  std::cout << tally.passed << " passed, " << tally.failed << " failed, " << tally.skipped
            << " skipped\n";
  return tally.failed > 0 || tally.passed == 0 ? 1 : 0;
}

}  // namespace
}  // namespace xcorr

int main(int argc, char** argv) {
  try {
    return xcorr::run(argc, argv);
  } catch (const xcorr::UserError& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}
