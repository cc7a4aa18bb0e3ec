// What compiling at run time took. A plan that does it also is a CompiledAtRunTime, and its rows have the
// columns compile_us and load_us.
#pragma once

namespace xcorr {

struct CompileTimes {
  double compile_us =
      0;  // by the compiler, when the code was compiled: by this plan, or one before it
  double load_us = 0;  // by this plan, from the code in a file to kernels that can be launched
};

class CompiledAtRunTime {
 public:
  virtual ~CompiledAtRunTime() = default;
  virtual CompileTimes compile_times() const = 0;
};

}  // namespace xcorr
