#!/usr/bin/env bash
# Formats all C++, CUDA and Python files with clang-format and ruff, and sorts imports; or says which are not formatted.
# Where one of the files is Python, mypy checks the hints of xcorr/, experiments/, plots/ and scripts/.
#
# All come in the versions of pyproject.toml from the Python package index, into .cache, where they are not there yet.
#
# usage: scripts/format.sh [--check | --tidy] [FILE...]
#   --check   change nothing; exit 1 and name the files that would change, and what ruff finds wrong; exit 77 where the
#             formatters cannot be installed
#   --tidy    change nothing; exit 1 and say what clang-tidy finds in harness/ and the CPU variants, as the build in
#             $XCORR_BUILD compiles them (5 s a file and core); exit 77 where it cannot be installed
#   FILE      only these; default: all
# environment: XCORR_FORMATTERS=/path/to/folder has them already, as pip install --target makes it
# example: scripts/format.sh --check
set -euo pipefail
# shellcheck source=scripts/env.sh
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$XCORR_ROOT"

check='' tidy='' files=()
for argument in "$@"; do
  case $argument in
    --help | -h) show_help "$0"; exit 0 ;;
    --check) check=yes ;;
    --tidy) tidy=yes ;;
    -*) refuse "$argument: unknown option; see scripts/format.sh --help" ;;
    *) [[ -f $argument ]] || refuse "$argument: no file; give paths from $XCORR_ROOT"
      files+=("$argument") ;;
  esac
done
if ((!${#files[@]})) && [[ -z $tidy ]]; then
  listed=$(git ls-files --cached --others --exclude-standard) ||
    die "git: it lists no files in $XCORR_ROOT; name the files, or use a clone"
  mapfile -t files <<<"$listed"
fi
cxx=() python=()
for file in "${files[@]}"; do
  [[ -f $file ]] || continue # removed, not yet committed
  case $file in
    scripts/templates/*) ;; # words of theirs, such as @ID@, are no C++ yet
    *.c | *.cpp | *.hpp | *.h | *.cu | *.cuh) cxx+=("$file") ;;
    *.py) python+=("$file") ;;
  esac
done

chosen Python "${XCORR_PYTHON:-}"

# A group of pyproject.toml in a folder, whose name it leaves in `tools`; it has these files.
installed() {
  local group=$1 wanted log=$XCORR_ROOT/.cache/formatters.log
  shift
  wanted=$("$XCORR_PYTHON" scripts/build/python_packages.py "$group") || exit
  tools=${XCORR_FORMATTERS:-$XCORR_ROOT/.cache/formatters-${wanted//[^a-z0-9.]/-}}
  if has "$@"; then return; fi
  mkdir -p "$XCORR_ROOT/.cache"
  echo "[format] installing ${wanted//$'\n'/ } (log: $log)"
  # shellcheck disable=SC2086  # one requirement a word
  "$XCORR_PYTHON" -m pip install --disable-pip-version-check --progress-bar off --upgrade --target "$tools" \
    $wanted >"$log" 2>&1 ||
    XCORR_EXIT=77 die "formatters: pip did not install them: $(first_error '^ERROR' "$log"); full log: $log"
  has "$@" || die "formatters: pip installed them, but not into $tools; remove that folder"
}
has() {
  local program
  for program in "$@"; do [[ -x $tools/$program ]] || return; done
}

if [[ -n $tidy ]]; then
  installed tidy clang_tidy/data/bin/clang-tidy
  "$XCORR_PYTHON" scripts/build/clang_tidy.py "$tools/clang_tidy/data/bin/clang-tidy" "$XCORR_BUILD" "${files[@]}" || exit
  exit
fi
installed format clang_format/data/bin/clang-format bin/ruff bin/mypy
clang_format=$tools/clang_format/data/bin/clang-format ruff=$tools/bin/ruff

status=0
if ((${#cxx[@]})); then
  if [[ -n $check ]]; then how=(--dry-run --Werror); else how=(-i); fi
  "$clang_format" "${how[@]}" "${cxx[@]}" || status=1
fi
if ((${#python[@]})); then
  if [[ -n $check ]]; then
    "$ruff" check --quiet --force-exclude "${python[@]}" || status=1
    "$ruff" format --quiet --check --diff --force-exclude "${python[@]}" || status=1
  else
    "$ruff" check --quiet --fix --force-exclude "${python[@]}" || status=1
    "$ruff" format --quiet --force-exclude "${python[@]}"
  fi
  PYTHONPATH=$tools "$XCORR_PYTHON" -m mypy --no-error-summary || status=1
fi
if ((status)) && [[ -n $check ]]; then
  die "format: files are not formatted, or ruff or mypy found mistakes, as named above; run scripts/format.sh, mend the rest"
fi
exit "$status"
