# shellcheck shell=bash
# Sourced by every script: the root of the tree, what setup.sh chose, helpers, and a last word for what fails silently.
XCORR_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export XCORR_BUILD=${XCORR_BUILD:-$XCORR_ROOT/build}
if [[ -f $XCORR_ROOT/.xcorr-env ]]; then
  # shellcheck disable=SC1091
  source "$XCORR_ROOT/.xcorr-env"
fi
# The usual place of the CUDA toolkit is not on PATH by default.
if ! command -v nvcc >/dev/null && [[ -x /usr/local/cuda/bin/nvcc ]]; then
  PATH=$PATH:/usr/local/cuda/bin
fi

# Build folders in different trees share what ccache keeps, also objects with debug information.
export CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-true}
# A unit with a precompiled header is kept only where its user says so.
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}

die() {
  printf 'error: %s\n' "$*" >&2
  exit "${XCORR_EXIT:-1}"
}

# set -e ends a script without a word where the command that failed said nothing. A script that knows the cause says it
# with die; this is for the rest. In a subshell it is silent, since the shell that waits for the subshell says it.
last_words() {
  if ((BASH_SUBSHELL)); then return; fi
  printf 'error: %s, line %s: "%s" or a part of its pipe failed with exit code %s; bash -x %s shows each command\n' \
    "$2" "$3" "${4%%$'\n'*}" "$1" "$0" >&2
}
set -E
trap 'last_words "$?" "${BASH_SOURCE[0]}" "$LINENO" "$BASH_COMMAND"' ERR

# A mistake on the command line.
refuse() { XCORR_EXIT=2 die "$*"; }

# The first line of a log that matches a pattern, else its last one: the cause that a message quotes.
first_error() {
  local line
  line=$(grep -m 1 -e "$1" "$2" 2>/dev/null || tail -n 1 "$2" 2>/dev/null || true)
  echo "${line:-it said nothing}"
}

# A script's help is the comment at its head.
show_help() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$1"; }

# A program that setup.sh chose: `chosen Meson "${XCORR_MESON:-}"` ends the script unless it is there.
chosen() {
  [[ -n $2 ]] || die "$1: not chosen yet; run scripts/setup.sh"
  command -v "$2" >/dev/null || die "$1: $2 is gone; run scripts/setup.sh, which chooses another"
}

# An option's folder as an absolute path, which need not exist yet.
absolute() { realpath -m -- "$2" 2>/dev/null || refuse "$1 '$2': is no path; name a folder"; }

# A Python module of the tree, from the root, with the interpreter that setup.sh chose. The module says its errors
# itself, so the caller adds `|| exit`, which keeps the exit code.
run_python() {
  chosen Python "${XCORR_PYTHON:-}"
  (cd "$XCORR_ROOT" && exec "$XCORR_PYTHON" "$@")
}

# One value of what `experiments.driver.run --machine-facts` printed.
fact() {
  "$XCORR_PYTHON" -c 'import json, sys; print(json.loads(sys.argv[2])[sys.argv[1]])' "$1" "$2" 2>/dev/null ||
    die "machine facts: $1 cannot be read from '$2'; run scripts/build.sh and try again"
}
