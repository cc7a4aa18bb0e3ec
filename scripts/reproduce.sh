#!/usr/bin/env bash
# Measures, checks, draws and reports on this machine: set-up, build, the evaluation, the experiments on
# real input, every figure, the best-algorithm table and the report. Ends by naming what it wrote, and with the best times of this
# machine beside those of the published ones.
# What is measured already is not measured again; after an interruption the same command resumes.
#
# usage: scripts/reproduce.sh [options]
#   --check                      only say whether this machine is fit to measure, one line for each thing; exit
#                                code 1 when something would spoil times
#   --preset NAME                how long and how often to measure. smoke, the default, measures of every variant
#                                its best-known points on a few problems, in less than 5 minutes; evaluation measures what
#                                figures, tables and claims show, and builds every compile-time point; extended measures
#                                what evaluation leaves out; quick measures every point of the grids; paper measures
#                                longer, those that were fastest under quick
#   --experiments NAMES          comma-separated stems of experiments/<source>/*.toml
#   --variants IDS               comma-separated variants or families
#   --sizes SIZES                comma-separated, such as 64,128 or 36x90
#   --forms FORMS                comma-separated: one-to-one, one-to-many, n-to-mn, n-to-m
#   --device cpu|cuda:N          default: the first GPU where CUDA variants are built, else the CPU. For the CPU no CUDA
#                                variant is compiled, unless the build folder has them
#   --results DIR                where rows go (default: results)
#   --slowed                     measure again what a busy host slowed down
#   --for-minutes M              with evaluation: stop after about M minutes of measuring, with exit code 3 where something
#                                is left; the same command goes on, here or on another machine of the kind with the same
#                                results folder
#   --dry-run                    only say what would be measured and for how long
#   --force                      measure again what is measured already
# A selection by experiments, variants, sizes or forms leaves the real inputs out.
# example: scripts/reproduce.sh --check && scripts/reproduce.sh --preset quick --forms n-to-m
set -euo pipefail
scripts=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=scripts/env.sh
source "$scripts/env.sh"
started=$SECONDS
command_line="$0 $*"

selection=() build=() more=() force=() dry_run=() device=() check=no preset=smoke results=$XCORR_ROOT/results
while (($#)); do
  case $1 in
    --help | -h) show_help "$0"; exit 0 ;;
    --dry-run) dry_run=(--dry-run) ;;
    --force) force=(--force) ;;
    --check) check=only ;;
    --slowed) more+=(--slowed) ;;
    --for-minutes | --preset | --experiments | --variants | --sizes | --forms | --device | --results)
      if (($# < 2)); then refuse "$1: a value is missing; see scripts/reproduce.sh --help"; fi
      case $1 in
        --preset) preset=$2 ;;
        --for-minutes) more+=(--for-minutes "$2") ;;
        --device) device=(--device "$2") ;;
        --results) results=$(absolute "$1" "$2") || exit ;;
        *) selection+=("$1" "$2") ;;
      esac
      shift ;;
    *) refuse "$1: unknown option; see scripts/reproduce.sh --help" ;;
  esac
  shift
done

inputs=$preset # the programs on real input have fewer presets
case $preset in
  evaluation | extended) build+=(--grid paper) inputs=quick ;;
esac

# nvidia-smi can be missing in a container. /dev/dxg is a GPU under Windows, /dev/nvmap one of Tegra.
may_have_gpu() {
  nvidia-smi -L >/dev/null 2>&1 || compgen -G '/dev/nvidia*' >/dev/null || [[ -e /dev/dxg || -e /dev/nvmap ]]
}

told='' # the driver says it itself, with what is saved
trap '[[ -n $told ]] || printf "\ninterrupted: the same command resumes: %s\n" "$command_line" >&2; exit 130' INT

echo "[1/5] set up"
"$scripts/setup.sh" || exit
# shellcheck source=scripts/env.sh
source "$scripts/env.sh"
echo "[2/5] build"
if [[ ${device[*]} == '--device cpu' ]] || { ((${#device[@]} == 0)) && ! may_have_gpu; }; then build+=(--cpu-only); fi
"$scripts/build.sh" "${build[@]}" || exit
facts=$(run_python -m experiments.driver.run --machine-facts "${device[@]}") || exit
key=$(fact machine_key "$facts") || exit
on=$(fact device "$facts") || exit
if [[ $check == only ]]; then
  echo "[check] is this machine fit to measure?"
  run_python -m experiments.driver.check --device "$on" --results "$results" || exit
  exit 0
fi
common=(--device "$on" --results "$results" "${force[@]}")

echo "[3/5] measure on $key, preset $preset"
# What is unfit is said, and measured all the same.
if ((${#dry_run[@]} == 0)); then
  run_python -m experiments.driver.check --device "$on" --results "$results" --brief || [[ $? == 1 ]] || exit 2
fi
status=0 told=yes
run_python -m experiments.driver.run --preset "$preset" "${common[@]}" "${selection[@]}" "${more[@]}" "${dry_run[@]}" || status=$?
if ((${#dry_run[@]})) || [[ $status == 2 || $status == 3 || $status == 130 ]]; then exit "$status"; fi
failed=()
if ((status)); then failed+=('experiments.driver.run, which names the points that are incorrect or failed above and in the report'); fi

told=''
# The floor in figures and tables is made from the measured ceilings of the GPU: once, in seconds.
ceilings=$results/local/$key/ceilings.json
if [[ $on == cuda* && (! -f $ceilings || ${#force[@]} != 0) ]]; then
  mkdir -p "${ceilings%/*}" 2>/dev/null || die "${ceilings%/*}: cannot be made; name another folder with --results"
  if "$XCORR_BUILD/xcorr-bench" --ceilings --device "$on" >"$ceilings.part" && mv "$ceilings.part" "$ceilings"; then
    echo "ceilings of the GPU: $ceilings"
  else
    rm -f "$ceilings.part"
    echo "the ceilings of the GPU were not measured, see the line above; figures and tables then have no floor"
  fi
fi
echo "[4/5] real input"
if ((${#selection[@]} == 0)); then
  programs=$(run_python -m experiments.folders) || exit
  while read -r kind module; do
    if [[ $kind == input ]]; then
      run_python -m "$module" --preset "$inputs" "${common[@]}" </dev/null || failed+=("$module, see its error above")
    elif [[ $kind == reading && $on == cuda* ]]; then
      run_python -m "$module" --machine-key "$key" --results "$results" </dev/null ||
        echo "$module: nothing was read back from the GPU, see the line above; its claims are not decided"
    fi
  done <<<"$programs"
else
  echo "left out: this run is a selection"
fi

echo "[5/5] draw"
run_python -m plots.render --local "$key" --results "$results" || failed+=('plots.render, see its error above')
echo "this machine beside the published ones"
run_python -m plots.machines --local "$key" --results "$results" || failed+=('plots.machines, see its error above')

echo "done in $(((SECONDS - started) / 60)) min $(((SECONDS - started) % 60)) s"
for one in "${failed[@]}"; do echo "error: failed: $one" >&2; done
exit $((${#failed[@]} > 0))
