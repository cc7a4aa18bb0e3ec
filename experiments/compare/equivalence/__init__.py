"""Parts of experiments.compare.equivalent: two trees, their machine code, their calls, their times."""
