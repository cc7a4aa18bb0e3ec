// The output of --list and --machine: the variants of the build, and facts about this machine.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "harness/device/device.hpp"

namespace xcorr {

nlohmann::json catalogue();                          // --list=json
std::string catalogue_table();                       // --list
nlohmann::json machine_facts(const Device& device);  // --machine

}  // namespace xcorr
