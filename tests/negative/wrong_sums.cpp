// Faults of the sums: what is multiplied with what, and what is left out.
#include <utility>

#include "tests/negative/broken.hpp"

namespace xcorr::broken {
namespace {

Pair wrong_pair(const Problem& q, Index p) {
  switch (q.form) {
    case Form::n_to_mn:
      return {p % q.lefts, p};
    case Form::n_to_m:
      return {p % q.lefts, p / q.lefts};  // right-major
    default:
      return {0, q.rights - 1 - p};
  }
}

const bool kAdded[] = {
    add("broken_nothing", "Right, the control of these tests", make_plan<Sound>),
    add("broken_last_row", "Last row of every overlap dropped",
        [](Sound& s, const Call& call) {
          const Problem& q = s.problem_;
          s.each_sum(call, [&](const float* l, const float* r, Index sy, Index sx) {
            const Overlap rows = overlap(q.left.rows, q.right.rows, sy);
            const Index end = (rows.first + rows.count - 1) * q.left.cols;
            float sum = 0;
            each_meeting(q, sy, sx, [&](Index i, Index j) { sum += i < end ? l[i] * r[j] : 0; });
            return sum;
          });
        }),
    add("broken_sign", "Sign of the shift flipped",
        [](Sound& s, const Call& call) {
          s.each_sum(call, [&](const float* l, const float* r, Index sy, Index sx) {
            return product_sum<float>(s.problem_, l, r, -sy, -sx);
          });
        }),
    add("broken_swapped", "Left and right swapped",
        [](Sound& s, const Call& call) {
          Problem turned = s.problem_;
          std::swap(turned.left, turned.right);
          s.each_sum(call, [&](const float* l, const float* r, Index sy, Index sx) {
            return product_sum<float>(turned, r, l, sy, sx);
          });
        }),
    add("broken_pairing", "Wrong left or right for a pair",
        [](Sound& s, const Call& call) {
          const Problem& q = s.problem_;
          each_output(q, [&](Index i, Pair, Index sy, Index sx) {
            const auto [l, r] = wrong_pair(q, i / q.out_size());
            call.outs<float>()[i] =
                product_sum<float>(q, s.left(call, l), s.right(call, r), sy, sx);
          });
        }),
    add("broken_no_product", "A constant beside the products",
        [](Sound& s, const Call& call) {
          s.Sound::compute(call);
          for (Index i = 0; i < s.problem_.out_elements(); ++i) call.outs<float>()[i] += 1.0f;
        }),
    add("broken_window", "Partial windows are off by one",
        [](Sound& s, const Call& call) {
          const Index off = s.problem_.window.sx.first > 1 - s.problem_.left.cols ? 1 : 0;
          s.each_sum(call, [&](const float* l, const float* r, Index sy, Index sx) {
            return product_sum<float>(s.problem_, l, r, sy, sx - off);
          });
        }),
    add("broken_missing", "The last output is never written",
        [](Sound& s, const Call& call) {
          float& last = call.outs<float>()[s.problem_.out_elements() - 1];
          const float kept = last;
          s.Sound::compute(call);
          last = kept;
        }),
};

}  // namespace
}  // namespace xcorr::broken
