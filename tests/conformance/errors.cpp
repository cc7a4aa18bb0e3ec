#include "tests/conformance/errors.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>

#include "harness/measure/banded.hpp"
#include "harness/problem/error.hpp"
#include "harness/registry.hpp"
#include "tests/conformance/problems.hpp"
#include "tests/conformance/random.hpp"

namespace xcorr::conformance {
namespace {

constexpr const char* kProblems[] = {
    "one-to-one/16x16/16x16/1:1/full",  "one-to-one/64x64/64x64/1:1/full",
    "one-to-many/64x64/64x64/1:5/full", "n-to-mn/64x64/64x64/2:6/full",
    "n-to-m/100x100/100x100/5:11/full", "one-to-one/256x256/256x256/1:1/full"};
// Points of a grid; the order of summation depends on the point.
constexpr std::size_t kPoints = 4;

struct Errors {
  double relative = -1, l2 = -1;
  bool argmax_agrees = true;
};

template <typename T>
std::vector<T> downloaded(Device& device, const void* from, Index count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  device.download(values.data(), from, values.size() * sizeof(T));
  return values;
}

double norm(const double* values, Index count) {
  double sum = 0;
  for (Index i = 0; i < count; ++i) sum += values[i] * values[i];
  return std::sqrt(sum);
}

// Inputs as the device holds them, and their float64 correlation.
struct Reference {
  std::vector<double> left, right, out;
};

template <typename T>
Reference make_reference(const Problem& p, Device& device, const void* left, const void* right) {
  const std::vector<T> l = downloaded<T>(device, left, p.left_elements());
  const std::vector<T> r = downloaded<T>(device, right, p.right_elements());
  Reference reference{{l.begin(), l.end()}, {r.begin(), r.end()}, {}};
  reference.out.resize(static_cast<std::size_t>(p.out_elements()));
  if (p.fmas() < (Index{1} << 30)) {
    correlate_definition(p, reference.left.data(), reference.right.data(), 0, p.pairs(),
                         reference.out.data());
  } else {
    FftReference(p, reference.left.data(), reference.right.data())
        .correlate(0, p.pairs(), reference.out.data());
  }
  return reference;
}

template <typename T>
Errors errors_of(const Problem& p, const Reference& ref, const std::vector<T>& out) {
  Errors worst;
  const Index size = p.out_size();
#pragma omp parallel for schedule(static)
  for (Index pair = 0; pair < p.pairs(); ++pair) {
    const auto [l, r] = p.pair(pair);
    const double* want = ref.out.data() + pair * size;
    const T* got = out.data() + pair * size;
    const double norms = norm(ref.left.data() + l * p.left.size(), p.left.size()) *
                         norm(ref.right.data() + r * p.right.size(), p.right.size());
    double largest = 0, difference2 = 0;
    for (Index i = 0; i < size; ++i) {
      const double difference = static_cast<double>(got[i]) - want[i];
      // A NaN stays one.
      if (!(std::abs(difference) <= largest)) largest = std::abs(difference);
      difference2 += difference * difference;
    }
    const double of_ref = norm(want, size);
    const Index argmax = std::max_element(got, got + size) - got;
    const bool agrees = want[argmax] == *std::max_element(want, want + size);
#pragma omp critical
    {
      const double relative = norms > 0 ? largest / norms : largest;
      const double l2 = of_ref > 0 ? std::sqrt(difference2) / of_ref : std::sqrt(difference2);
      if (!(relative <= worst.relative)) worst.relative = relative;
      if (!(l2 <= worst.l2)) worst.l2 = l2;
      worst.argmax_agrees &= agrees;
    }
  }
  return worst;
}

// The way in which a point sums products: the value of its parameter `sums`, "" where the variant has one way.
std::string sums_of(const Params& params) { return params.has("sums") ? params.get("sums") : ""; }

// Each of these ways has lines in the table, in the order of the grid.
std::vector<std::string> ways_of_sums(const Variant& variant) {
  std::vector<std::string> ways;
  for (const Params& params : grid_points(variant)) {
    const std::string own = sums_of(params);
    if (std::find(ways.begin(), ways.end(), own) == ways.end()) ways.push_back(own);
  }
  return ways;
}

// Spread evenly over those that the device takes.
std::vector<Params> some_points(const Variant& variant, const std::string& sums,
                                Precision precision, const Problem& problem, Device& device) {
  std::vector<Params> points = grid_points(variant);
  std::erase_if(points, [&](const Params& params) {
    return sums_of(params) != sums ||
           !supported({&variant, params, precision, problem, {}, 0}, device);
  });
  std::vector<Params> some;
  const std::size_t count = std::min(kPoints, points.size());
  for (std::size_t i = 0; i < count; ++i) {
    some.push_back(points[count == 1 ? 0 : i * (points.size() - 1) / (count - 1)]);
  }
  return some;
}

class Table {
 public:
  Table(std::ostream& file, std::uint64_t seed, Device& device)
      : file_(file), seed_(seed), device_(device) {}

  Index lines() const { return lines_; }

  template <typename T>
  void add(const Problem& problem, InputKind kind, const std::vector<const Variant*>& variants,
           const std::vector<Precision>& precisions) {
    const auto has = [&](const Variant* variant) {
      return std::find_first_of(variant->precisions.begin(), variant->precisions.end(),
                                precisions.begin(), precisions.end()) != variant->precisions.end();
    };
    if (std::none_of(variants.begin(), variants.end(), has)) return;
    const auto bytes = [](Index elements) {
      return static_cast<std::size_t>(elements) * sizeof(T);
    };
    Banded left(device_, bytes(problem.left_elements()));
    Banded right(device_, bytes(problem.right_elements()));
    Banded out(device_, bytes(problem.out_elements()));
    device_.truth(problem, precisions.front(), AlgorithmClass::definition, seed_)
        ->fill(kind, left.data(), right.data());
    const Reference reference = make_reference<T>(problem, device_, left.data(), right.data());
    for (const Variant* variant : variants) {
      for (const Precision precision : variant->precisions) {
        if (std::count(precisions.begin(), precisions.end(), precision) == 0) continue;
        for (const std::string& sums : ways_of_sums(*variant)) {
          Errors worst;
          Params of_worst;
          for (const Params& params : some_points(*variant, sums, precision, problem, device_)) {
            const Errors errors =
                errors_of(problem, reference,
                          computed<T>({problem, params, precision, nullptr, device_.stream()},
                                      *variant, left, right, out));
            worst.argmax_agrees &= errors.argmax_agrees;
            if (!(errors.l2 <= worst.l2)) worst.l2 = errors.l2;
            if (!(errors.relative <= worst.relative)) {
              worst.relative = errors.relative;
              of_worst = params;
            }
          }
          // It stays below 0 where the device takes no such point.
          if (worst.relative >= 0) add_line(*variant, precision, kind, problem, of_worst, worst);
        }
      }
    }
  }

 private:
  template <typename T>
  std::vector<T> computed(PlanRequest request, const Variant& variant, Banded& left, Banded& right,
                          Banded& out) {
    const Buffer workspace =
        device_.allocate(std::max<std::size_t>(variant.workspace_bytes(request), 1));
    request.workspace = workspace.get();
    device_.fill(out.data(), 0xff, out.bytes);
    const std::unique_ptr<Plan> plan = variant.plan(request);
    // As the calls that are timed: all the stream's work is this plan's.
    plan->compute(
        {left.data(), right.data(), out.data(), device_.stream(), nullptr, /*exclusive=*/true});
    device_.synchronize();
    return downloaded<T>(device_, out.data(), request.problem.out_elements());
  }

  void add_line(const Variant& variant, Precision precision, InputKind kind, const Problem& problem,
                const Params& params, const Errors& errors) {
    char numbers[80];
    std::snprintf(numbers, sizeof numbers, "%.4g,%.4g,%s", errors.relative, errors.l2,
                  errors.argmax_agrees ? "True" : "False");
    // A window holds commas; these problems are full.
    file_ << variant.id << "," << to_string(precision) << "," << to_string(kind) << ","
          << problem.id() << "," << params.canonical() << "," << numbers << "\n";
    ++lines_;
  }

  std::ostream& file_;
  std::uint64_t seed_;
  Device& device_;
  Index lines_ = 0;
};

}  // namespace

Index write_errors(const std::string& path, const std::vector<const Variant*>& variants,
                   std::optional<Precision> precision, Index most_fmas, std::uint64_t seed,
                   Device& device) {
  std::ofstream file(path);
  if (!file) throw UserError("--errors " + path + ": cannot be written; name another file");
  file << "variant,precision,input,problem,params,max_relative_error,rel_l2_error,argmax_agrees\n";
  Table table(file, seed, device);
  const auto keep = [&](std::vector<Precision> classes) {
    if (precision) std::erase_if(classes, [&](Precision p) { return p != *precision; });
    return classes;
  };
  const std::vector<Precision> narrow =
      keep({Precision::fp32, Precision::tf32, Precision::three_tf32, Precision::bf16x3,
            Precision::fp16});
  const std::vector<Precision> wide = keep({Precision::fp64});
  for (const char* id : kProblems) {
    const Problem problem = parse_problem(id);
    if (problem.fmas() > most_fmas) {
      std::cout << "left out " << id << ": more work than --work\n";
      continue;
    }
    for (const InputKind kind : kInputKinds) {
      if (is_exact(kind)) continue;  // judged to the bit by every conformance run
      table.add<float>(problem, kind, variants, narrow);
      table.add<double>(problem, kind, variants, wide);
    }
    std::cerr << "errors: " << id << " done, " << table.lines() << " lines\n";
  }
  file.close();
  if (!file) throw UserError("--errors " + path + ": writing failed; is the disk full?");
  return table.lines();
}

}  // namespace xcorr::conformance
