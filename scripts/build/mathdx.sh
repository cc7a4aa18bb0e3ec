#!/usr/bin/env bash
# Prints the folder of NVIDIA's headers for transforms inside kernels (cufftdx.hpp); nothing where they are not found.
#
# Looked for in FOLDER when one is given, else in $MATHDX_ROOT, else in the Python package nvidia-mathdx. They are never
# required: variants that need them are left out without.
#
# usage: scripts/build/mathdx.sh [FOLDER]
# example: meson setup build -Dmathdx=$(scripts/build/mathdx.sh)
set -euo pipefail
# shellcheck source=scripts/env.sh
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"
if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help "$0"; exit 0; fi
if [[ ${1:-} == -* ]]; then refuse "$1: unknown option; see scripts/build/mathdx.sh --help"; fi
if (($# > 1)); then refuse "$2: one folder is looked in; see scripts/build/mathdx.sh --help"; fi

# The headers lie in the folder itself, in include/, or in what an unpacked package has.
find_in() {
  local folder
  for folder in "$1" "$1/include" "$1/nvidia/mathdx/include"; do
    if [[ -f $folder/cufftdx.hpp && -d $folder/cufftdx ]]; then
      (cd "$folder" && pwd)
      return
    fi
  done
  return 1
}

if [[ -n ${1:-} ]]; then
  find_in "$1" || refuse "mathdx: no cufftdx.hpp in $1; unpack the Python package nvidia-mathdx there"
  exit 0
fi
if [[ -n ${MATHDX_ROOT:-} ]] && find_in "$MATHDX_ROOT"; then exit 0; fi
for python in "${XCORR_PYTHON:-}" python3; do
  [[ -n $python ]] || continue
  found=$("$python" -c 'import importlib.util as u; s = u.find_spec("nvidia.mathdx")
print(*(s.submodule_search_locations if s else ()), sep="\n")' 2>/dev/null) || continue
  while read -r folder; do
    if [[ -n $folder ]] && find_in "$folder"; then exit 0; fi
  done <<<"$found"
done
