#!/usr/bin/env bash
# Sets up, builds and runs every test: the C++ suites, then the Python tests.
#
# usage: scripts/test.sh [--fast] [-k EXPRESSION]
#   --fast          leave out what builds or measures (pytest marker slow)
#   -k EXPRESSION   only the Python tests whose names match, as pytest has it
# example: scripts/test.sh --fast -k schema
set -euo pipefail
scripts=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=scripts/env.sh
source "$scripts/env.sh"

pytest_options=()
while (($#)); do
  case $1 in
    --help | -h) show_help "$0"; exit 0 ;;
    --fast) pytest_options+=(-m 'not slow') ;;
    -k)
      if (($# < 2)); then refuse "-k: an expression is missing; see scripts/test.sh --help"; fi
      pytest_options+=(-k "$2")
      shift ;;
    *) refuse "$1: unknown option; see scripts/test.sh --help" ;;
  esac
  shift
done

echo "[1/4] set up"
"$scripts/setup.sh"
# shellcheck source=scripts/env.sh
source "$scripts/env.sh"
echo "[2/4] build"
"$scripts/build.sh" --tests
# Not piped into grep -q, which may leave before everything is written and so fail the pipe.
tests="$("$XCORR_MESON" test -C "$XCORR_BUILD" --list 2>/dev/null || true)"
if [[ "$tests" != *emulation* ]]; then
  refuse "Boost.Context: not found by the build, so no kernel would be tested; run scripts/setup.sh"
fi
status=0
echo "[3/4] C++ suites"
"$XCORR_MESON" test -C "$XCORR_BUILD" --no-rebuild --print-errorlogs || status=$?
echo "[4/4] Python tests"
XCORR_REQUIRE_BUILD=1 run_python -m pytest "${pytest_options[@]}" || status=$?
exit "$status"
