#!/usr/bin/env bash
# Draws figures, tables and reports of published result sets again, from their rows, then the figures that compare all published
# machines (results/machines/), and writes the pages of all published sets (results/report/). Neither compiler nor GPU is needed.
# Git has the tables, these pages and the figures as SVG; it ignores the PNG, PDF and report.html that are drawn beside them.
#
# usage: scripts/replot.sh [machine-key ...]    (default: every set in results/published)
# example: scripts/replot.sh nvidia-h200-132-sm-140-gib
set -euo pipefail
scripts=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=scripts/env.sh
source "$scripts/env.sh"
case ${1:-} in
  --help | -h) show_help "$0"; exit 0 ;;
  -*) refuse "$1: unknown option; see scripts/replot.sh --help" ;;
esac

"$scripts/setup.sh" --python-only || exit
# shellcheck source=scripts/env.sh
source "$scripts/env.sh"
if ((!$#)); then
  for folder in "$XCORR_ROOT"/results/published/*/; do
    if [[ -f $folder/runs.json ]]; then set -- "$@" "$(basename "$folder")"; fi
  done
fi
if ((!$#)); then die "results/published: holds no set; scripts/reproduce.sh makes one, scripts/publish.sh publishes it"; fi
for key in "$@"; do
  echo "drawing $key"
  run_python -m plots.render "$key" || exit
done
echo "comparing all published machines"
run_python -m plots.machines || exit
run_python -m plots.site || exit
