#include "harness/measure/operands.hpp"

#include <cstring>

#include "harness/problem/inputs.hpp"
#include "harness/problem/views.hpp"
#include "harness/registry.hpp"

namespace xcorr {
namespace {

constexpr const char* kMasks = "masks";
constexpr const char* kOffsets = "offsets";

std::size_t array_bytes(const Problem& problem, Precision precision, Side side,
                        std::uint64_t seed) {
  const bool dense = problem.fields.views == Views::dense;
  const Index elements = !dense               ? view_layout(problem, side, seed).elements
                         : side == Side::left ? problem.left_elements()
                                              : problem.right_elements();
  return static_cast<std::size_t>(elements) * scalar_bytes(precision);
}

bool has_mask(const Problem& problem, Side side) {
  return side == Side::left ? masks_left(problem.fields.masks) : masks_right(problem.fields.masks);
}

Index pixels(const Problem& problem, Side side) {
  return side == Side::left ? problem.left_elements() : problem.right_elements();
}

std::vector<unsigned char> mask_of(const Problem& problem, Side side, std::uint64_t seed) {
  std::vector<unsigned char> mask(pixels(problem, side));
  for (std::size_t i = 0; i < mask.size(); ++i) {
    mask[i] = mask_value(seed, side, static_cast<Index>(i));
  }
  return mask;
}

std::vector<unsigned char> bytes_of(const std::vector<Index>& values) {
  std::vector<unsigned char> bytes(values.size() * sizeof(Index));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace

Operands::Operands(const Problem& problem, Precision precision, Device& device, std::uint64_t seed)
    : problem_(problem),
      seed_(seed),
      left_(device, array_bytes(problem, precision, Side::left, seed)) {
  if (!problem.fields.same) {
    right_ = std::make_unique<Banded>(device, array_bytes(problem, precision, Side::right, seed));
  }
  for (const Side side : {Side::left, Side::right}) {
    if (has_mask(problem, side)) {
      const auto bytes = static_cast<std::size_t>(pixels(problem, side));
      constants_.push_back({kMasks, side, {}, std::make_unique<Banded>(device, bytes)});
    }
    if (problem.fields.views != Views::dense) {
      const ViewLayout layout = view_layout(problem, side, seed);
      (side == Side::left ? left_pitch_ : right_pitch_) = layout.pitch;
      const std::size_t bytes = layout.offsets.size() * sizeof(Index);
      constants_.push_back({kOffsets, side, {}, std::make_unique<Banded>(device, bytes)});
    }
  }
}

void Operands::poison(Device& device) {
  left_.poison(device);
  if (right_) right_->poison(device);
  for (Constant& constant : constants_) {
    constant.content = constant.name == kMasks
                           ? mask_of(problem_, constant.side, seed_)
                           : bytes_of(view_layout(problem_, constant.side, seed_).offsets);
    constant.memory->poison(device);
    device.upload(constant.memory->data(), constant.content.data(), constant.content.size());
  }
}

const void* Operands::constant(const char* name, Side side) const {
  for (const Constant& constant : constants_) {
    if (constant.name == name && constant.side == side) return constant.memory->data();
  }
  return nullptr;
}

Call Operands::call(void* out, Device& device) const {
  Call call;
  call.left = left();
  call.right = right();
  call.out = out;
  call.stream = device.stream();
  call.exclusive = true;
  call.left_mask = static_cast<const std::uint8_t*>(constant(kMasks, Side::left));
  call.right_mask = static_cast<const std::uint8_t*>(constant(kMasks, Side::right));
  call.left_view = {static_cast<const Index*>(constant(kOffsets, Side::left)), left_pitch_};
  call.right_view = {static_cast<const Index*>(constant(kOffsets, Side::right)), right_pitch_};
  return call;
}

std::string Operands::written(Device& device) const {
  if (!left_.bands_intact(device)) return "memory beside the left matrices was written";
  if (right_ && !right_->bands_intact(device))
    return "memory beside the right matrices was written";
  for (const Constant& constant : constants_) {
    const std::string name =
        std::string("the ") + (constant.side == Side::left ? "left " : "right ") + constant.name;
    if (!constant.memory->bands_intact(device)) return "memory beside " + name + " was written";
    std::vector<unsigned char> now(constant.content.size());
    device.download(now.data(), constant.memory->data(), now.size());
    if (now != constant.content) return name + " were overwritten";
  }
  return "";
}

std::size_t Operands::bytes(const Problem& problem, Precision precision, std::uint64_t seed) {
  std::size_t total = 0;
  for (const Side side : {Side::left, Side::right}) {
    if (side == Side::left || !problem.fields.same) {
      total += array_bytes(problem, precision, side, seed);
    }
    if (has_mask(problem, side)) total += static_cast<std::size_t>(pixels(problem, side));
    if (problem.fields.views != Views::dense) {
      total += view_layout(problem, side, seed).offsets.size() * sizeof(Index);
    }
  }
  return total;
}

std::size_t Operands::arrays(const Problem& problem) {
  std::size_t count = problem.fields.same ? 1 : 2;
  for (const Side side : {Side::left, Side::right}) {
    count += has_mask(problem, side) + (problem.fields.views != Views::dense);
  }
  return count;
}

}  // namespace xcorr
