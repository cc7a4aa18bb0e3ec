#!/usr/bin/env bash
# Runs a program that was built with the thread sanitizer. Where the kernel spreads addresses over more bits than the
# sanitizer knows, the program cannot start; then it runs without that, or is skipped (exit code 77).
#
# usage: tests/stress/sanitized.sh PROGRAM [ARGUMENT...]
# example: tests/stress/sanitized.sh build/tests/stress/stress-thread-sanitizer --device cpu --rounds 4
set -euo pipefail
# shellcheck source=scripts/env.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/env.sh"

case ${1:-} in
  --help | -h) show_help "$0"; exit 0 ;;
  '') refuse "program: none is given; see tests/stress/sanitized.sh --help" ;;
  -*) refuse "$1: unknown option; see tests/stress/sanitized.sh --help" ;;
esac
program=$1
shift
if "$program" --help >/dev/null 2>&1; then
  exec "$program" "$@"
elif setarch -R "$program" --help >/dev/null 2>&1; then
  exec setarch -R "$program" "$@"
fi
echo "skipped: the thread sanitizer does not start on this kernel; set vm.mmap_rnd_bits to 28"
exit 77
