// Faults of the sums: what is multiplied with what, and what is left out.
#include <utility>

#include "tests/negative/broken.hpp"

namespace xcorr::broken {
namespace {

struct LastRowDropped : Sound {
  using Sound::Sound;
  void compute(const Call& call) override {
    each_output(problem_, call.outs<float>(), [&](float& out, Index p, Index sy, Index sx) {
      const auto [l, r] = problem_.pair(p);
      out = product_sum(problem_, left(call, l), right(call, r), sy, sx, 1);
    });
  }
};

struct SignFlipped : Sound {
  using Sound::Sound;
  void compute(const Call& call) override {
    each_output(problem_, call.outs<float>(), [&](float& out, Index p, Index sy, Index sx) {
      const auto [l, r] = problem_.pair(p);
      out = product_sum(problem_, left(call, l), right(call, r), -sy, -sx);
    });
  }
};

struct Swapped : Sound {
  using Sound::Sound;
  void compute(const Call& call) override {
    Problem turned = problem_;
    std::swap(turned.left, turned.right);
    each_output(problem_, call.outs<float>(), [&](float& out, Index p, Index sy, Index sx) {
      const auto [l, r] = problem_.pair(p);
      out = product_sum(turned, right(call, r), left(call, l), sy, sx);
    });
  }
};

struct WrongPairing : Sound {
  using Sound::Sound;
  void compute(const Call& call) override {
    each_output(problem_, call.outs<float>(), [&](float& out, Index p, Index sy, Index sx) {
      const auto [l, r] = wrong_pair(p);
      out = product_sum(problem_, left(call, l), right(call, r), sy, sx);
    });
  }
  Pair wrong_pair(Index p) const {
    switch (problem_.form) {
      case Form::n_to_mn:
        return {p % problem_.lefts, p};
      case Form::n_to_m:
        return {p % problem_.lefts, p / problem_.lefts};  // right-major
      default:
        return {0, problem_.rights - 1 - p};
    }
  }
};

struct OutputMissing : Sound {
  using Sound::Sound;
  void compute(const Call& call) override {
    const Index last = problem_.out_elements() - 1;
    const float kept = call.outs<float>()[last];
    Sound::compute(call);
    call.outs<float>()[last] = kept;
  }
};

// No sum of products: a constant is added to each.
struct NoProduct : Sound {
  using Sound::Sound;
  void compute(const Call& call) override {
    Sound::compute(call);
    for (Index i = 0; i < problem_.out_elements(); ++i) call.outs<float>()[i] += 1.0f;
  }
};

// The first shift of a window that does not begin with the full one is off by one.
struct WrongWindow : Sound {
  using Sound::Sound;
  void compute(const Call& call) override {
    const Index off = problem_.window.sx.first > 1 - problem_.left.cols ? 1 : 0;
    each_output(problem_, call.outs<float>(), [&](float& out, Index p, Index sy, Index sx) {
      const auto [l, r] = problem_.pair(p);
      out = product_sum(problem_, left(call, l), right(call, r), sy, sx - off);
    });
  }
};

const bool kAdded[] = {
    add("broken_nothing", "Right, the control of these tests", plan<Sound>),
    add("broken_last_row", "Last row of every overlap dropped", plan<LastRowDropped>),
    add("broken_sign", "Sign of the shift flipped", plan<SignFlipped>),
    add("broken_swapped", "Left and right swapped", plan<Swapped>),
    add("broken_pairing", "Wrong left or right for a pair", plan<WrongPairing>),
    add("broken_no_product", "A constant beside the products", plan<NoProduct>),
    add("broken_window", "Partial windows are off by one", plan<WrongWindow>),
    add("broken_missing", "The last output is never written", plan<OutputMissing>),
};

}  // namespace
}  // namespace xcorr::broken
