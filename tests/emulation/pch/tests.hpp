// What most tests of this program include, compiled once.
// Before everything that opens these namespaces.
// clang-format off
#include "tests/emulation/families.hpp"
// clang-format on

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/emulation/conformance.hpp"
#include "tests/emulation/support.hpp"
