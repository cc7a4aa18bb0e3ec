#!/usr/bin/env bash
# Sets up, builds and runs every test: the format of the sources, the C++ suites, then the Python tests. The last lines
# name every test that was skipped.
#
# usage: scripts/test.sh [--extended] [--fast] [-k EXPRESSION] [--gpu-arch LIST]
#        scripts/test.sh --exhaustive [--only STEPS] [--seed N] [--fast] [-k EXPRESSION]
#   --fast          leave out what builds or measures (pytest marker slow)
#   -k EXPRESSION   only the Python tests whose names match, as pytest has it
#   --gpu-arch LIST as scripts/build.sh has it
#   --extended      after the usual tests the steps that take minutes. A failed step stops none of those after it:
#                     fuzz                     random requests of the C API and random .npy files, under the sanitizers
#                     thread_sanitizer         threads through the C API, built once more under the thread sanitizer
#                     clang_tidy               what clang-tidy finds in harness/ and the CPU variants
#                     host_symbols             the library and the CPU variants define each name once
#                     wheels                   the CPU wheel is built, and each Python found here computes with it
#   --exhaustive    after these the steps that take hours:
#                     random_problems          2,000 random problems on the CPU
#                     random_properties        1,000 random problems, judged by linearity, shift, swap, window and symmetry
#                     random_problems_on_gpu   100,000 on the GPU, where there is one
#                     compile_time_points      the emulation of every compile-time point instead of a sample
#                     mutants                  every mutant of a kernel must be caught
#                     architectures            CUDA variants compile for each GPU architecture, where nvcc is found
#                     one_definition           kernels of all families, compiled as the emulation does, define a name once
#                     peers                    values against OpenCV and openpiv-python, where they can be imported
#   --only STEPS    comma-separated steps of --exhaustive, without the usual tests
#   --seed N        of the random problems; default: a new one, which is printed
# example: scripts/test.sh --fast -k schema
# example: scripts/test.sh --exhaustive --only random_problems --seed 7
set -euo pipefail
scripts=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=scripts/env.sh
source "$scripts/env.sh"

# A new step: its function step_NAME below, its name here, its line in the help above.
extended_steps=(fuzz thread_sanitizer clang_tidy host_symbols wheels)
all_steps=("${extended_steps[@]}" random_problems random_properties random_problems_on_gpu compile_time_points mutants architectures one_definition peers)

# Runs in a subshell without set -e: commands of a step are joined by &&, so that the first failure is its exit code.
left_out=77
leave_out() {
  echo "left out: $*"
  exit "$left_out"
}

step_fuzz() {
  "$NINJA" -C "$XCORR_BUILD" tests/fuzz/libxcorr-sanitized.so &&
    XCORR_REQUIRE_BUILD=1 run_python -m pytest -m exhaustive tests/fuzz
}

step_thread_sanitizer() {
  "$NINJA" -C "$XCORR_BUILD" tests/stress/stress-thread-sanitizer &&
    "$XCORR_MESON" test -C "$XCORR_BUILD" --no-rebuild --print-errorlogs --suite thread_sanitizer
}

step_clang_tidy() { "$scripts/format.sh" --tidy; }

step_host_symbols() { run_python -m pytest -m exhaustive tests/test_one_definition.py -k host_code; }

step_wheels() { run_python -m pytest -m exhaustive tests/scripts/test_wheels.py; }

step_random_problems() {
  "$XCORR_BUILD/tests/conformance/conformance" --device cpu --random 2000 --seed "$seed"
}

step_random_properties() {
  "$XCORR_BUILD/tests/conformance/conformance" --device cpu --properties 1000 --seed "$seed"
}

step_random_problems_on_gpu() {
  "$XCORR_BUILD/xcorr-bench" --machine --device cuda >/dev/null 2>&1 ||
    leave_out "no GPU is found, or the build has no CUDA variants"
  "$XCORR_BUILD/tests/conformance/conformance" --device cuda --random 100000 --seed "$seed"
}

step_compile_time_points() {
  XCORR_BUILD=$XCORR_BUILD-every-point
  "$scripts/build.sh" --tests --cuda disabled --grid paper --emulation-points all &&
    "$XCORR_MESON" test -C "$XCORR_BUILD" --no-rebuild --print-errorlogs --suite emulation
}

step_mutants() {
  local places=emulation,cpu
  if command -v nvcc >/dev/null; then places+=,ptx; else echo "mutants in PTX: left out, nvcc is not found"; fi
  run_python -m tests.mutants.run --where "$places" --build "$XCORR_BUILD"
}

step_architectures() {
  local one known list=''
  command -v nvcc >/dev/null || leave_out "nvcc is not found"
  known=" $(nvcc --list-gpu-arch | tr '\n' ' ')" || die "nvcc: it does not list its architectures; install it again"
  for one in 80 86 89 90 120; do
    if [[ $known == *" compute_$one "* ]]; then list+=,$one; else echo "sm_$one: this nvcc does not know it"; fi
  done
  [[ -n $list ]] || leave_out "this nvcc knows none of the architectures"
  XCORR_BUILD=$XCORR_BUILD-architectures "$scripts/build.sh" --cuda enabled --gpu-arch "${list#,}"
}

# pytest names what it skipped, and succeeds where that is everything.
step_peers() {
  local said
  run_python -m pytest -rs -m exhaustive tests/harness/test_templates_vs_peers.py tests/xcorr/test_piv_vs_openpiv.py \
    2>&1 | tee "$XCORR_BUILD/peers.log" || return
  said=$(tail -n 1 "$XCORR_BUILD/peers.log")
  if [[ $said =~ [0-9]\ skipped && ! $said =~ [0-9]\ passed ]]; then leave_out "no peer can be imported: $said"; fi
}

step_one_definition() { run_python -m pytest -m exhaustive tests/test_one_definition.py -k kernels; }

pytest_options=() leave_out_too='' build_options=() tier='' only='' seed=''
while (($#)); do
  case $1 in
    --help | -h) show_help "$0"; exit 0 ;;
    --fast) leave_out_too=' and not slow' ;;
    --extended) tier=${tier:-extended} ;;
    --exhaustive) tier=exhaustive ;;
    -k | --gpu-arch | --only | --seed)
      if (($# < 2)); then refuse "$1: a value is missing; see scripts/test.sh --help"; fi
      case $1 in
        -k) pytest_options+=(-k "$2") ;;
        --gpu-arch) build_options+=(--gpu-arch "$2") ;;
        --only) only=$2 ;;
        --seed) seed=$2 ;;
      esac
      shift ;;
    *) refuse "$1: unknown option; see scripts/test.sh --help" ;;
  esac
  shift
done
if [[ $tier != exhaustive && -n $only$seed ]]; then refuse "--only, --seed: choose among the steps of --exhaustive; add it"; fi
if [[ ! $seed =~ ^[0-9]{0,18}$ ]]; then refuse "--seed $seed: not a number; use 0 or more, at most 18 digits"; fi
steps=()
if [[ $tier == extended ]]; then
  steps=("${extended_steps[@]}")
elif [[ $tier == exhaustive ]]; then
  seed=${seed:-$((RANDOM << 30 | RANDOM << 15 | RANDOM))}
  IFS=, read -r -a steps <<<"${only:-$(IFS=,; echo "${all_steps[*]}")}"
fi
for step in "${steps[@]}"; do
  if [[ " ${all_steps[*]} " != *" $step "* ]]; then
    refuse "--only $step: no step of --exhaustive; they are ${all_steps[*]}"
  fi
done

# Runs the command, says how long it took, and notes the result for the end.
status=0 results=() skipped=()
timed() {
  local name=$1 started=$SECONDS code=0 result
  shift
  ("$@") || code=$?
  if ((code == 0)); then
    result=passed
  elif [[ $1 == step_* && $code == "$left_out" ]]; then # of another command any number may be a failure
    result='left out'
    skipped+=("$name")
  else
    result="FAILED, exit code $code" status=1
  fi
  results+=("$(printf '%-24s %6d s  %s' "$name" $((SECONDS - started)) "$result")")
  if [[ -n $tier ]]; then echo "[$name] $result after $((SECONDS - started)) s"; fi
}
trap 'exit 130' INT

# Where the formatters cannot be had, as without a network, the step is left out.
step_format() { "$scripts/format.sh" --check; }
cpp_suites() {
  "$XCORR_MESON" test -C "$XCORR_BUILD" --no-rebuild --print-errorlogs 2>&1 | tee "$XCORR_BUILD/cpp_suites.log"
}
# A process a core, up to 8; a file's tests stay in one process, since some build on each other.
python_tests() {
  local processes
  processes=$(nproc)
  run_python -m pytest -n "$((processes < 8 ? processes : 8))" --dist loadfile -m "not exhaustive$leave_out_too" \
    "${pytest_options[@]}" 2>&1 | tee "$XCORR_BUILD/python_tests.log"
}

# What Meson, GoogleTest and pytest say that they skipped, one line each.
skipped_tests() {
  local log
  for log in "$XCORR_BUILD"/{cpp_suites.log,meson-logs/testlog*.txt,python_tests.log}; do
    if [[ ! -f $log ]]; then continue; fi
    sed -nE -e 's/^ *[0-9]+\/[0-9]+ (xcorr-bench:)?(.*[^ ]) +SKIP .*/\2/p' \
      -e 's/^\[  SKIPPED \] ([^ ,]+).*/\1/p' -e 's/^SKIPPED \[[0-9]+\] //p' "$log" | sort -u
  done
}

echo "[1/5] set up"
"$scripts/setup.sh" || exit
# shellcheck source=scripts/env.sh
source "$scripts/env.sh"
echo "[2/5] build"
"$scripts/build.sh" --tests "${build_options[@]}" || exit
if [[ -z $only ]]; then
  # Not piped into grep -q, which may leave before everything is written and so fail the pipe.
  tests="$("$XCORR_MESON" test -C "$XCORR_BUILD" --list 2>/dev/null || true)"
  if [[ "$tests" != *emulation* ]]; then
    refuse "Boost.Context: not found by the build, so no kernel would be tested; run scripts/setup.sh"
  fi
  echo "[3/5] format"
  timed 'format' step_format
  echo "[4/5] C++ suites"
  if [[ -f $XCORR_BUILD/tests/emulation/points.txt ]]; then
    echo "compile-time points under the emulation: $(<"$XCORR_BUILD/tests/emulation/points.txt")"
  fi
  rm -f "$XCORR_BUILD"/meson-logs/testlog*
  timed 'C++ suites' cpp_suites
  echo "[5/5] Python tests"
  export XCORR_REQUIRE_BUILD=1
  timed 'Python tests' python_tests
  mapfile -t -O "${#skipped[@]}" skipped < <(skipped_tests)
fi
for ((i = 0; i < ${#steps[@]}; ++i)); do
  echo "[$tier $((i + 1))/${#steps[@]}] ${steps[i]}${seed:+, seed $seed}"
  timed "${steps[i]}" "step_${steps[i]}"
done

printf '%s\n' '' "${results[@]}"
if ((${#skipped[@]})); then printf 'skipped: %s\n' "${skipped[@]}"; else echo 'skipped: nothing'; fi
if ((status)); then die "tests: something failed; its output is above"; fi
