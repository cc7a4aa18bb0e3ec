#!/usr/bin/env bash
# Builds ${XCORR_BUILD:-build}/xcorr-bench and libxcorr.so; quick when nothing has changed.
#
# A new, renamed or removed source file reconfigures by itself. Options given once stay until given again.
# Of every CUDA variant that was compiled, points, seconds of processor time and registers are printed at the end;
# resources.csv in the build folder has them by kernel.
#
# usage: scripts/build.sh [--grid quick|paper] [--cuda auto|enabled|disabled] [--gpu-arch LIST] [--tests] [--cpu-only]
#                         [--emulation-points sample|all] [--emulation-seed N]
#   --grid        which compile-time points are built (first build: quick)
#   --cuda        auto builds the CUDA variants where nvcc is found
#   --cpu-only    leave the CUDA variants out of a new build folder, until the next call without --cpu-only and --cuda
#   --gpu-arch    GPU architectures, such as 80,90; native asks the GPU of this machine
#   --tests       build the C++ tests too
#   --emulation-points, --emulation-seed   compile-time points that the tests without a GPU build (first build: sample of
#                 a new seed)
# example: scripts/build.sh --grid paper --gpu-arch 90
set -euo pipefail
# shellcheck source=scripts/env.sh
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

options=() cpu_only='' cuda=''
while (($#)); do
  case $1 in
    --help | -h) show_help "$0"; exit 0 ;;
    --grid | --cuda | --gpu-arch | --emulation-points | --emulation-seed)
      if (($# < 2)); then refuse "$1: a value is missing; see scripts/build.sh --help"; fi
      name=${1#--}
      if [[ $name == cuda ]]; then cuda=asked; fi
      options+=("-D${name//-/_}=$2")
      shift ;;
    --cpu-only) cpu_only=yes ;;
    --tests) options+=(-Dtests=true) ;;
    *) refuse "$1: unknown option; see scripts/build.sh --help" ;;
  esac
  shift
done

chosen Meson "${XCORR_MESON:-}"
chosen Ninja "${NINJA:-}"
cd "$XCORR_ROOT"
mkdir -p "$XCORR_BUILD" 2>/dev/null || die "$XCORR_BUILD: cannot be made; set XCORR_BUILD to a folder that can be"
log=$XCORR_BUILD/configure.log applied=$XCORR_BUILD/options.list sources=$XCORR_BUILD/sources.list
present=$(find algorithms harness tests -name '*.cpp' -o -name '*.cu' -o -name meson.build | sort &&
  { grep -rE '^XCORR_(COMPILE_IN_PARTS|NEEDS_TARGET)' algorithms || true; } | sort) ||
  die "sources: cannot be listed with find and sort in $XCORR_ROOT; restore what is missing there"
# The mark is there while CUDA variants are left out because of --cpu-only alone.
mark=$XCORR_BUILD/cpu_only marked=''
if [[ -z $cuda && -n $cpu_only && ! -f $XCORR_BUILD/build.ninja ]]; then
  options+=(-Dcuda=disabled) marked=yes
elif [[ -z $cuda && -n $cpu_only && -f $mark ]]; then
  marked=yes
elif [[ -z $cuda && -f $mark ]]; then
  options+=(-Dcuda=auto)
fi
changed=()
for option in "${options[@]}"; do
  if ! grep -qxFs -- "$option" "$applied"; then changed+=("$option"); fi
done

configure() {
  echo "[build] configuring (log: $log)"
  "$XCORR_MESON" setup "$@" "$XCORR_BUILD" "$XCORR_ROOT" >"$log" 2>&1 ||
    die "configuring failed: $(first_error ERROR "$log"); full log: $log"
  echo "$present" >"$sources"
  for option in "${changed[@]}"; do
    if [[ -f $applied ]]; then sed -i "/^${option%%=*}=/d" "$applied"; fi
    echo "$option" >>"$applied"
  done
}

# Ninja would build the sources of the tree that the folder was made for, without a word.
if [[ -f $XCORR_BUILD/build.ninja && -f $XCORR_BUILD/meson-info/meson-info.json ]]; then
  tree=$(sed -n 's/.*"source": "\([^"]*\)".*/\1/p' "$XCORR_BUILD/meson-info/meson-info.json")
  [[ -z $tree || $tree -ef $XCORR_ROOT ]] ||
    die "$XCORR_BUILD: is a build folder of $tree; remove it, or name another in XCORR_BUILD"
fi
if [[ ! -f $XCORR_BUILD/build.ninja ]]; then
  rm -f "$applied"
  changed=("${options[@]}")
  configure -Dtests=false "${changed[@]}"
elif ((${#changed[@]})) || [[ ! -f $sources || $present != "$(<"$sources")" ]]; then
  configure --reconfigure "${changed[@]}"
fi
if [[ -n $marked ]]; then touch "$mark"; else rm -f "$mark"; fi
"$NINJA" -C "$XCORR_BUILD" || die "build: failed; the first line above that says FAILED or error has the cause"
