#!/usr/bin/env bash
# Makes the local results of a machine a published set, draws the set, and rewrites the report and the generated blocks of README.md and
# docs/. Then commit the set's folder and the pages: git adds only what belongs there.
#
# usage: scripts/publish.sh [--add] [machine-key]    (default: the only local set)
#   --add    keep the published rows of problems that the local set lacks
# example: scripts/publish.sh amd-epyc-2-cores
set -euo pipefail
scripts=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=scripts/env.sh
source "$scripts/env.sh"
add=()
case ${1:-} in
  --help | -h) show_help "$0"; exit 0 ;;
  --add) add=(--add); shift ;;
esac
if [[ ${1:-} == -* ]]; then refuse "$1: unknown option; see scripts/publish.sh --help"; fi

"$scripts/setup.sh" || exit
# shellcheck source=scripts/env.sh
source "$scripts/env.sh"
if ((!$#)); then
  shopt -s nullglob
  sets=("$XCORR_ROOT"/results/local/*/)
  if ((${#sets[@]} != 1)); then
    refuse "machine-key: ${#sets[@]} local sets; name one of: ${sets[*]##*/local/}"
  fi
  set -- "$(basename "${sets[0]}")"
fi
run_python -m experiments.published.publish "${add[@]}" "$1" || exit
"$scripts/build.sh" || exit
run_python -m plots.render "$1" || exit
run_python -m plots.machines || exit
run_python -m plots.report.pages || exit
run_python -m plots.site || exit
echo "published: $XCORR_ROOT/results/published/$1"
