#include "harness/overlapping.hpp"

#include <new>
#include <optional>

#include "harness/banded.hpp"
#include "harness/error.hpp"
#include "harness/registry.hpp"

namespace xcorr {
namespace {

struct SecondSet {
  SecondSet(Device& device, std::size_t left_bytes, std::size_t right_bytes, std::size_t out_bytes)
      : left(device, left_bytes), right(device, right_bytes), out(device, out_bytes) {
    for (Banded* buffer : {&left, &right, &out}) buffer->poison(device);
  }
  Banded left, right, out;
};

std::size_t bytes_of(Index elements, Precision precision) {
  return static_cast<std::size_t>(elements) * scalar_bytes(precision);
}

}  // namespace

int overlapping_calls(Seconds once) { return once < 0.01 ? 6 : 2; }

Overlapping check_overlapping(Device& device, Truth& truth, const Problem& problem,
                              Precision precision, Plan& plan, const Call& call, InputKind kind,
                              int calls) {
  const std::size_t left = bytes_of(problem.left_elements(), precision);
  const std::size_t right = bytes_of(problem.right_elements(), precision);
  const std::size_t out = bytes_of(problem.out_elements(), precision);
  const std::size_t needed = left + right + out + 6 * kBand;
  const std::size_t available = device.available_bytes();
  const Overlapping no_memory{"", "memory: a second set of inputs and outputs needs " +
                                      bytes_text(static_cast<double>(needed))};
  if (needed > available) return no_memory;
  std::optional<SecondSet> second;
  try {
    second.emplace(device, left, right, out);
  } catch (const OutOfMemory&) {
    return no_memory;
  } catch (const std::bad_alloc&) {
    return no_memory;
  }

  // One set holds integers, so that an element of the wrong set is far beyond every bound. Integers
  // have no bound where the sums of so many products are not exact.
  const InputKind whole =
      problem.max_overlap() > kExactSum ? InputKind::uniform : InputKind::integer;
  const InputKind other_kind = kind == whole ? InputKind::zero_mean : whole;
  Call other = call;
  other.left = second->left.data();
  other.right = second->right.data();
  other.out = second->out.data();
  truth.fill(other_kind, second->left.data(), second->right.data());
  device.fill(call.out, kPoison, out);
  for (int turn = 0; turn < calls; ++turn) plan.compute(turn % 2 == 0 ? call : other);
  device.synchronize();

  struct Turn {
    const Call& of;
    InputKind kind;
  };
  for (const Turn& turn : {Turn{call, kind}, Turn{other, other_kind}}) {
    const std::string where = std::string(to_string(turn.kind)) + " input: ";
    if (const Check check = truth.check(turn.kind, turn.of.out); !check.passed()) {
      return {where + describe_failure(problem, check), ""};
    }
    const std::string changed = truth.changed_inputs(turn.kind, turn.of.left, turn.of.right);
    if (!changed.empty()) return {where + changed, ""};
  }
  if (!second->out.bands_intact(device)) return {"memory beside the second output was written", ""};
  if (!second->left.bands_intact(device) || !second->right.bands_intact(device)) {
    return {"memory beside the second inputs was written", ""};
  }
  return {};
}

}  // namespace xcorr
