// The errors of variants on a fixed list of problems, as a table: how much a variant loses on data
// with an offset, for example. It judges nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/device/device.hpp"

namespace xcorr::conformance {

// Writes CSV lines `variant,precision,input,problem,params,max_relative_error,rel_l2_error,
// argmax_agrees`. Errors are those of the worst pair at the worst of a few points of the grid,
// which `params` names: the largest |out - ref| over |L| |R|, and the L2 norm of out - ref over
// that of ref. `most_fmas`: problems with more work are left out. Returns the number of lines.
Index write_errors(const std::string& path, const std::vector<const Variant*>& variants,
                   std::optional<Precision> precision, Index most_fmas, std::uint64_t seed,
                   Device& device);

}  // namespace xcorr::conformance
