// Sums of many products of one sign: those of `plain` points lose more than 3e-6 of the norms' product, those of
// `blocked` points do not, however the products lie in rows and columns. Variants with one float32 sum for an output
// refuse more products than such a sum holds.
#include "tests/emulation/support.hpp"

namespace xcorr::emulation {
namespace {

enum class Data { offset, constant, two_modes };

// offset: 1e4 and noise of -1 to 1. constant: one number near 1e4. two_modes: 1e4 and noise, or noise alone.
float drawn(Data data, std::uint64_t side, Index i) {
  const std::uint64_t bits = mix(mix(side) ^ static_cast<std::uint64_t>(i)) >> 43;
  const double noise = static_cast<double>(bits) * 0x1p-20 - 1;
  if (data == Data::constant) return static_cast<float>(1e4 + 0.3 * static_cast<double>(side));
  return static_cast<float>(data == Data::two_modes && bits % 2 ? noise : 1e4 + noise);
}

// The largest error of an output near shift 0, divided by the norms of both matrices.
double error(const Variant& variant, const Params& point, const std::string& shape,
             Data data = Data::offset) {
  const Problem q = parse_problem("one-to-one/" + shape + "/" + shape + "/1:1/sy:-1..1,sx:-1..0");
  const Operands in(
      q, [&](Index i) { return drawn(data, 1, i); }, [&](Index i) { return drawn(data, 2, i); });
  Planned planned(variant, q, point);
  const auto* const out = static_cast<const float*>(planned.compute(in));
  double worst = 0;
  each_output(q, [&](Index i, Pair, Index sy, Index sx) {
    const double want = product_sum(q, in.lefts(), in.rights(), sy, sx);
    worst = worse(worst, std::fabs(double{out[i]} - want));
  });
  return worst / std::sqrt(product_sum(q, in.lefts(), in.lefts(), 0, 0) *
                           product_sum(q, in.rights(), in.rights(), 0, 0));
}

TEST(LongSums, AreHeldByBlockedPoints) {
  bool met = false;
  for (const Variant& variant : emulated([](const Variant&) { return true; })) {
    for (const Params& point : emulated_points(variant)) {
      if (!point.has("sums") || point.get("sums") != "blocked") continue;
      if (!variant.supports({parse_problem("one-to-one/64x64/64x64/1:1/full"), point})) continue;
      Params plain;
      for (const auto& [name, value] : point.values()) {
        if (name != "sums") plain.set(name, value);
      }
      // One variant walks all shapes; the others have the same walk.
      std::vector<std::string> shapes = {"200x200", "20000x2"};
      if (!met) shapes.insert(shapes.end(), {"30x1000", "129x157", "3x9000"});
      for (const std::string& shape : shapes) {
        EXPECT_LE(error(variant, point, shape), 3e-6) << variant.id << " " << shape;
        EXPECT_GT(error(variant, plain, shape), 3e-6) << variant.id << " " << shape;
      }
      for (const Data data : {Data::constant, Data::two_modes}) {
        EXPECT_LE(error(variant, point, "200x200", data), 3e-6) << variant.id;
      }
      met = true;
      break;
    }
  }
  if (!met) GTEST_SKIP() << "no unit of this program has blocked points";
}

// Asked only: no kernel runs.
Support asked(const Variant& variant, const Params& point, const std::string& shape,
              Precision precision = Precision::fp32) {
  const std::string form = has(variant.forms, Form::one_to_one) ? "one-to-one" : "n-to-m";
  const std::string fields = has(variant.results, ResultKind::surface) ? "" : "/result=peak";
  const std::string id = form + "/" + shape + "/" + shape + "/1:1/sy:0..3,sx:-3..3" + fields;
  return variant.supports({parse_problem(id), point, precision});
}

bool is_one_sum(const Variant& variant, const Params& point) {
  const std::string id = short_id(variant);
  if (id == "overlap_wise_serial_batch" || id == "tiled_direct_async" || id == "tiled_direct_peak")
    return true;
  if (id == "tiled_direct") return !point.has("sums");
  if (variant.family != "warp_shuffle") return false;
  return !point.has("distribution") || point.get("distribution") == "none";
}

TEST(LongSums, OfOneRegisterAreRefused) {
  const char *const at_limit = "1024x512", *const longer = "1500x752";
  for (const Variant& variant :
       emulated([](const Variant& v) { return v.backend == Backend::cuda; })) {
    for (const Params& point : emulated_points(variant)) {
      const bool one_sum = is_one_sum(variant, point);
      if (!one_sum && variant.family != "tiled") continue;
      if (!asked(variant, point, at_limit)) continue;  // it takes no such shape at all
      const Support support = asked(variant, point, longer);
      EXPECT_EQ(static_cast<bool>(support), !one_sum) << variant.id << " " << point.canonical();
      if (one_sum) {
        EXPECT_EQ(support.reason.find("an output has 1128000 products"), 0u) << support.reason;
      }
      if (has(variant.precisions, Precision::fp64)) {
        EXPECT_TRUE(asked(variant, point, longer, Precision::fp64)) << variant.id;
      }
    }
  }
}

}  // namespace
}  // namespace xcorr::emulation
