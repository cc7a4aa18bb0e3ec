#include "harness/measure/operands.hpp"

#include <cstring>

#include "harness/problem/inputs.hpp"
#include "harness/problem/views.hpp"
#include "harness/registry.hpp"

namespace xcorr {

std::vector<Operands::Array> Operands::layout(const Problem& problem, Precision precision,
                                              std::uint64_t seed) {
  const auto& [boundary, score, masks, result, same, views] = problem.fields;
  std::vector<Array> arrays;
  for (const Side side : {Side::left, Side::right}) {
    const bool left = side == Side::left;
    const std::size_t pixels = left ? problem.left_elements() : problem.right_elements();
    const ViewLayout view = view_layout(problem, side, seed);
    if (left || !same)
      arrays.push_back({Content::matrices, side, view.elements * scalar_bytes(precision)});
    if (left ? masks_left(masks) : masks_right(masks))
      arrays.push_back({Content::masks, side, pixels});
    if (views != Views::dense) {
      arrays.push_back({Content::offsets, side, view.offsets.size() * sizeof(Index)});
    }
  }
  return arrays;
}

Operands::Operands(const Problem& problem, Precision precision, Device& device, std::uint64_t seed)
    : problem_(problem), seed_(seed), arrays_(layout(problem, precision, seed)) {
  for (Array& array : arrays_) array.memory = std::make_unique<Banded>(device, array.bytes);
}

void Operands::poison(Device& device) {
  for (Array& array : arrays_) {
    array.memory->poison(device);
    if (array.what == Content::matrices) continue;
    array.content.resize(array.bytes);
    if (array.what == Content::masks) {
      for (std::size_t i = 0; i < array.bytes; ++i) {
        array.content[i] = mask_value(seed_, array.side, static_cast<Index>(i));
      }
    } else {
      const ViewLayout view = view_layout(problem_, array.side, seed_);
      std::memcpy(array.content.data(), view.offsets.data(), array.bytes);
    }
    device.upload(array.memory->data(), array.content.data(), array.bytes);
  }
}

const Operands::Array* Operands::find(Content what, Side side) const {
  for (const Array& array : arrays_) {
    if (array.what == what && array.side == side) return &array;
  }
  return nullptr;
}

void* Operands::data(Content what, Side side) const {
  const Array* const array = find(what, side);
  return array ? array->memory->data() : nullptr;
}

std::size_t Operands::bytes_of(Content what, Side side) const {
  const Array* const array = find(what, side);
  return array ? array->bytes : 0;
}

Call Operands::call(void* out, Device& device) const {
  const auto view = [&](Side side) {
    return View{static_cast<const Index*>(data(Content::offsets, side)),
                view_layout(problem_, side, seed_).pitch};
  };
  Call call;
  call.left = left();
  call.right = right();
  call.out = out;
  call.stream = device.stream();
  call.exclusive = true;
  call.left_mask = static_cast<const std::uint8_t*>(data(Content::masks, Side::left));
  call.right_mask = static_cast<const std::uint8_t*>(data(Content::masks, Side::right));
  call.left_view = view(Side::left);
  call.right_view = view(Side::right);
  return call;
}

std::string Operands::written(Device& device) const {
  constexpr const char* kNames[] = {"matrices", "masks", "offsets"};
  for (const Array& array : arrays_) {
    const std::string name = std::string(array.side == Side::left ? "the left " : "the right ") +
                             kNames[static_cast<int>(array.what)];
    if (!array.memory->bands_intact(device)) return "memory beside " + name + " was written";
    if (array.content.empty()) continue;
    std::vector<unsigned char> now(array.bytes);
    device.download(now.data(), array.memory->data(), now.size());
    if (now != array.content) return name + " were overwritten";
  }
  return "";
}

std::size_t Operands::bytes(const Problem& problem, Precision precision, std::uint64_t seed) {
  std::size_t total = 0;
  for (const Array& array : layout(problem, precision, seed)) total += array.bytes;
  return total;
}

std::size_t Operands::arrays(const Problem& problem) {
  return layout(problem, Precision::fp32, 0).size();
}

}  // namespace xcorr
