# shellcheck shell=bash
# Sourced by every door: the root of the tree, what setup.sh chose, and three helpers.
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

die() {
  printf 'error: %s\n' "$*" >&2
  exit "${XCORR_EXIT:-1}"
}

# A mistake on the command line.
refuse() { XCORR_EXIT=2 die "$*"; }

# A script's help is the comment at its head.
show_help() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$1"; }

# A Python module of the tree, from the root, with the interpreter that setup.sh chose.
run_python() { (cd "$XCORR_ROOT" && exec "${XCORR_PYTHON:?run scripts/setup.sh first}" "$@"); }
