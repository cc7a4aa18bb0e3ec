// What every emulated unit includes, compiled once.
// Before everything that opens these namespaces.
// clang-format off
#include "tests/emulation/families.hpp"
// clang-format on

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/problem/problem.hpp"
#include "tests/emulation/vocabulary.hpp"
