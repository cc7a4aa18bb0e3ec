#!/usr/bin/env bash
# Writes the artifact into one file, an RO-Crate in a zip: result rows of published sets, sources at the commit, environment,
# licence and citation, with a checksum of each file. Or checks such a file. Needs neither compiler nor GPU.
#
# The packages that write the description come from the Python package index into .cache, in the versions of pyproject.toml,
# unless Python has them. A tree that is not as its commit is refused, and no file is overwritten.
#
# usage: scripts/archive.sh [--local KEY]... [--output FILE] [machine-key ...]    (default: every published set)
#        scripts/archive.sh --check FILE
#   --local KEY     also the local set of this machine key
#   --output FILE   default: xcorr-bench-VERSION-COMMIT.zip in the root of the tree
#   --check FILE    write nothing; name damaged, missing and extra files of this archive
# example: scripts/archive.sh --output artifact.zip && scripts/archive.sh --check artifact.zip
set -euo pipefail
scripts=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=scripts/env.sh
source "$scripts/env.sh"
arguments=() check=''
while (($#)); do
  case $1 in
    --help | -h) show_help "$0"; exit 0 ;;
    --check | --output | --local)
      if (($# < 2)); then refuse "$1: a value is missing; see scripts/archive.sh --help"; fi
      if [[ $1 == --check ]]; then check=yes; fi
      value=$2
      if [[ $1 != --local ]]; then value=$(absolute "$1" "$2") || exit; fi
      arguments+=("$1" "$value")
      shift ;;
    -*) refuse "$1: unknown option; see scripts/archive.sh --help" ;;
    *) arguments+=("$1") ;;
  esac
  shift
done

"$scripts/setup.sh" --python-only || exit
# shellcheck source=scripts/env.sh
source "$scripts/env.sh"
if [[ -z $check ]] && ! run_python -c 'import rocrate, yaml' 2>/dev/null; then
  wanted=$(run_python scripts/build/python_packages.py archive) || exit
  tools=$XCORR_ROOT/.cache/archive-${wanted//[^a-z0-9.]/-} log=$XCORR_ROOT/.cache/archive.log
  if [[ ! -f $tools/rocrate/__init__.py ]]; then
    mkdir -p "$XCORR_ROOT/.cache"
    echo "[archive] installing ${wanted//$'\n'/ } (log: $log)"
    # shellcheck disable=SC2086  # one requirement a word
    run_python -m pip install --disable-pip-version-check --progress-bar off --upgrade --target "$tools" $wanted >"$log" 2>&1 ||
      die "archive: pip did not install what writes it: $(first_error '^ERROR' "$log"); full log: $log"
  fi
  export PYTHONPATH=$tools${PYTHONPATH:+:$PYTHONPATH}
fi
run_python -m experiments.published.archive "${arguments[@]}" || exit
