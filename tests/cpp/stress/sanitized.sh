#!/bin/sh
# Runs a program that was built with the thread sanitizer. Where the kernel spreads addresses over more
# bits than the sanitizer knows, the program cannot start; then without that, or not at all (exit code 77).
# example: tests/cpp/stress/sanitized.sh build/tests/cpp/stress-thread-sanitizer --device cpu --rounds 4
program=$1
shift
if "$program" --help >/dev/null 2>&1; then
  exec "$program" "$@"
elif setarch -R "$program" --help >/dev/null 2>&1; then
  exec setarch -R "$program" "$@"
fi
echo "skipped: the thread sanitizer does not start on this kernel; set vm.mmap_rnd_bits to 28"
exit 77
