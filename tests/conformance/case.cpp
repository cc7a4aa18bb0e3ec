#include "tests/conformance/case.hpp"

#include <algorithm>

#include "harness/measure/operands.hpp"
#include "harness/measure/overlapping.hpp"
#include "harness/problem/error.hpp"
#include "harness/reduce/reduce.hpp"

namespace xcorr::conformance {
namespace {

PlanRequest request_of(const Case& c, Device& device) {
  return {c.problem, c.params, c.precision, nullptr, device.stream()};
}

std::string first_fault(const Case& c, Truth& truth, Device& device) {
  const Problem& problem = c.problem;
  PlanRequest request = request_of(c, device);
  Operands operands(problem, c.precision, device, c.seed);
  Banded out(device, static_cast<std::size_t>(problem.result_bytes(scalar_bytes(c.precision))));
  Banded workspace(device, std::max<std::size_t>(plan_workspace_bytes(*c.variant, request), 1));
  request.workspace = workspace.data();
  operands.poison(device);
  for (Banded* buffer : {&out, &workspace}) buffer->poison(device);

  const std::unique_ptr<Plan> plan = make_plan(*c.variant, request);
  const Call call = operands.call(out.data(), device);
  const auto compute = [&] {
    device.fill(out.data(), kPoison, out.bytes);
    plan->compute(call);
    device.synchronize();
  };
  for (const InputKind kind : c.inputs) {
    truth.fill(kind, operands.left(), operands.right());
    compute();
    const std::string fault = checked_call(truth, problem, kind, call).fault;
    if (!fault.empty()) return fault;
  }
  const InputKind last = c.inputs.back();
  std::vector<char> first(device.host_memory() ? out.bytes : 0), again(first.size());
  device.download(first.data(), out.data(), first.size());
  compute();
  if (device.host_memory()) {
    device.download(again.data(), out.data(), again.size());
    if (first != again) return "a second call of the same plan gives other bits";
  } else if (const Check check = truth.check(last, out.data()); !check.passed()) {
    // Atomics may sum in another order, within the bound.
    return "second call: " + describe_failure(problem, check);
  }
  const Overlapping turns = check_overlapping(device, truth, problem, c.precision, c.seed, *plan,
                                              call, last, device.host_memory() ? 2 : 6);
  if (!turns.wrong.empty()) return "calls in turn: " + turns.wrong;
  for (const auto& [name, buffer] : {std::pair{"output", &out}, {"workspace", &workspace}}) {
    if (!buffer->bands_intact(device))
      return std::string("memory beside the ") + name + " was written";
  }
  return operands.written(device);
}

}  // namespace

Support supported(const Case& c, Device& device) {
  return device.runs(*c.variant, request_of(c, device));
}

Outcome judged(const std::function<std::string()>& steps) {
  try {
    const std::string wrong = steps();
    return {wrong.empty() ? Outcome::passed : Outcome::failed, wrong};
  } catch (const Refused& refused) {
    return {Outcome::refused, refused.why};
  } catch (const OutOfMemory& error) {
    return {Outcome::refused, std::string("out of memory: ") + error.what()};
  } catch (const std::exception& error) {
    return {Outcome::failed, std::string("threw: ") + error.what()};
  } catch (...) {
    return {Outcome::failed, "threw a value that does not derive from std::exception"};
  }
}

Outcome run(const Case& c, Device& device, std::shared_ptr<Truth> truth) {
  return judged([&] {
    if (const Support support = supported(c, device); !support) throw Refused{support.reason};
    if (!truth) truth = device.truth(c.problem, c.precision, c.variant->algorithm_class, c.seed);
    return first_fault(c, *truth, device);
  });
}

std::string name_of(const Case& c) {
  std::string name = c.variant->id;
  name.append(" (").append(c.params.canonical()).append(") ");
  name.append(to_string(c.precision)).append(" ").append(c.problem.id());
  for (const InputKind kind : c.inputs) name.append(" ").append(to_string(kind));
  return name.append(" seed ").append(std::to_string(c.seed));
}

std::string command_of(const Case& c, const std::string& program, const std::string& device_name) {
  std::string command = program + " --device " + device_name + " --variant " + c.variant->id +
                        " --params '" + c.params.canonical() + "' --precision " +
                        std::string(to_string(c.precision)) + " --problem " + c.problem.id();
  for (const InputKind kind : c.inputs) command += " --input " + std::string(to_string(kind));
  return command + " --seed " + std::to_string(c.seed);
}

}  // namespace xcorr::conformance
