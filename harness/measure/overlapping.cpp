#include "harness/measure/overlapping.hpp"

#include <new>
#include <optional>

#include "harness/measure/banded.hpp"
#include "harness/measure/operands.hpp"
#include "harness/problem/error.hpp"
#include "harness/registry.hpp"

namespace xcorr {
namespace {

struct SecondSet {
  SecondSet(Device& device, const Problem& problem, Precision precision, std::uint64_t seed,
            std::size_t out_bytes)
      : operands(problem, precision, device, seed), out(device, out_bytes) {
    operands.poison(device);
    out.poison(device);
  }
  Operands operands;
  Banded out;
};

}  // namespace

int overlapping_calls(Seconds once) { return once < 0.01 ? 6 : 2; }

Overlapping check_overlapping(Device& device, Truth& truth, const Problem& problem,
                              Precision precision, std::uint64_t seed, Plan& plan, const Call& call,
                              InputKind kind, int calls) {
  const auto out = static_cast<std::size_t>(problem.result_bytes(scalar_bytes(precision)));
  const std::size_t needed =
      Operands::bytes(problem, precision, seed) + out + 2 * kBand * (Operands::arrays(problem) + 1);
  const std::size_t available = device.available_bytes();
  Overlapping no_memory{"",
                        "memory: a second set of inputs and outputs needs " + bytes_text(needed)};
  if (needed > available) return no_memory;
  std::optional<SecondSet> second;
  try {
    second.emplace(device, problem, precision, seed, out);
  } catch (const OutOfMemory&) {
    return no_memory;
  } catch (const std::bad_alloc&) {
    return no_memory;
  }

  // One set holds integers, so that an element of the wrong set is far beyond every bound, unless
  // sums of so many products are not exact.
  const InputKind whole =
      problem.max_overlap() > kExactSum ? InputKind::uniform : InputKind::integer;
  const InputKind other_kind = kind == whole ? InputKind::zero_mean : whole;
  Call other = second->operands.call(second->out.data(), device);
  other.exclusive = call.exclusive;
  truth.fill(other_kind, second->operands.left(), second->operands.right());
  device.fill(call.out, kPoison, out);
  for (int turn = 0; turn < calls; ++turn) plan.compute(turn % 2 == 0 ? call : other);
  device.synchronize();

  struct Turn {
    const Call& of;
    InputKind kind;
  };
  for (const Turn& turn : {Turn{call, kind}, Turn{other, other_kind}}) {
    const CheckedCall found = checked_call(truth, problem, turn.kind, turn.of);
    if (!found.fault.empty()) return {found.fault, ""};
  }
  if (!second->out.bands_intact(device)) return {"memory beside the second output was written", ""};
  if (const std::string written = second->operands.written(device); !written.empty()) {
    return {"second inputs: " + written, ""};
  }
  return {};
}

}  // namespace xcorr
