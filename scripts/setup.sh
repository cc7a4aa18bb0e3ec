#!/usr/bin/env bash
# Makes ready what xcorr-bench needs, and records the choice in .xcorr-env. Quick when nothing is missing.
#
# As root on Debian or Ubuntu it installs distribution packages. Python packages of pyproject.toml that no interpreter
# has, or that are too old, come from the Python package index into .venv; what cannot be had like that is named.
# nvcc is used where it is found, never installed.
#
# usage: scripts/setup.sh [--python-only] [--no-apt]
#   --python-only   only what drawing needs: no compiler, no build tools, no test packages
#   --no-apt        install no distribution package, even as root
# environment: XCORR_PYTHON=/path/to/python3 is tried first; XCORR_REQUIRE_BROWSER=1 (continuous integration) also installs
#   what the tests of the report use
# example: scripts/setup.sh
set -euo pipefail
asked_python=${XCORR_PYTHON:-}
# shellcheck source=scripts/env.sh
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$XCORR_ROOT"

python_only='' use_apt=yes listed_anew=''
for argument in "$@"; do
  case $argument in
    --help | -h) show_help "$0"; exit 0 ;;
    --python-only) python_only=--no-tests ;;
    --no-apt) use_apt='' ;;
    *) refuse "$argument: unknown option; see scripts/setup.sh --help" ;;
  esac
done
if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then use_apt=''; fi

recent_python() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; }

python_candidates() {
  printf '%s\n' "$asked_python" "${XCORR_PYTHON:-}" "$XCORR_ROOT/.venv/bin/python" python3 /usr/bin/python3
}

# Prints the first interpreter that has every Python package.
choose_python() {
  local candidate
  while read -r candidate; do
    if [[ -n $candidate ]] && recent_python "$candidate" &&
      "$candidate" scripts/build/python_packages.py missing $python_only >/dev/null; then
      "$candidate" -c 'import sys; print(sys.executable)'
      return
    fi
  done < <(python_candidates)
  return 1
}

# Prints the first of the named commands that runs and is at least version $1.
choose_tool() {
  local least=$1 candidate found
  shift
  for candidate in "$@"; do
    found=$("$candidate" --version 2>/dev/null) || continue
    # Not piped into head, which may leave before everything is written and so fail the pipe.
    if [[ -n $found ]] && printf '%s\n' "$least" "${found%%$'\n'*}" | sort -V -C; then
      command -v "$candidate"
      return
    fi
  done
  return 1
}
choose_meson() { choose_tool 1.0.1 "${MESON:-${XCORR_MESON:-meson}}" meson "$XCORR_ROOT/.venv/bin/meson" /usr/bin/meson; }
choose_ninja() { choose_tool 1.8 "${NINJA:-ninja}" "$XCORR_ROOT/.venv/bin/ninja" ninja-build /usr/bin/ninja; }

compiles_cpp20() { ${CXX:-c++} -std=c++20 -x c++ -fsyntax-only - </dev/null 2>/dev/null; }

# One line for each thing missing that only the distribution has: package, then what it is.
missing_packages() {
  [[ -z $python_only ]] || return 0
  compiles_cpp20 || echo "g++ a C++20 compiler (${CXX:-c++})"
  command -v git >/dev/null || echo "git git"
  if ! command -v pkg-config >/dev/null; then
    echo "pkg-config pkg-config (the libraries below cannot be found without it)"
  fi
  if ! ${CXX:-c++} -x c++ -fsyntax-only - <<<'#include <boost/context/detail/fcontext.hpp>' 2>/dev/null; then
    echo "libboost-context-dev C++ library: Boost.Context"
  fi
  local package module
  while read -r package module; do
    pkg-config --exists "$module" 2>/dev/null || echo "$package C++ library: ${module/ >/>}"
  done <<'END'
libbenchmark-dev benchmark >= 1.6
libfftw3-dev fftw3f >= 3.3
nlohmann-json3-dev nlohmann_json >= 3.10
libcli11-dev CLI11 >= 2.1
libgtest-dev gtest >= 1.11
libgmock-dev gmock >= 1.11
END
}

# apt-get's status lines as one line that counts up (a line every quarter where there is no terminal).
apt_progress() {
  local line percent told=-1
  while read -r line; do
    [[ $line =~ ^(dl|pm)status:.*:([0-9]+)\.[0-9]+: ]] || continue
    percent=${BASH_REMATCH[2]}
    local what=installing
    if [[ ${BASH_REMATCH[1]} == dl ]]; then what=downloading; fi
    if [[ -t 1 ]]; then
      printf '\r[setup] %-11s %3d %%' "$what" "$percent"
    elif ((percent / 25 != told)); then
      told=$((percent / 25))
      echo "[setup] $what $percent %"
    fi
  done
  if [[ -t 1 ]]; then echo; fi
}

make_cache() {
  mkdir -p "$XCORR_ROOT/.cache" 2>/dev/null ||
    die "$XCORR_ROOT/.cache: cannot be made; put the tree into a folder that can be written"
}

apt_install() {
  local log=$XCORR_ROOT/.cache/apt.log
  make_cache
  echo "[setup] installing distribution packages: $*"
  export DEBIAN_FRONTEND=noninteractive
  local options=(-y --no-install-recommends -o APT::Status-Fd=3 -o DPkg::Lock::Timeout=300
    -o Acquire::Retries=3)
  {
    { [[ -n $listed_anew ]] || apt-get update -o Acquire::Retries=3 >"$log" 2>&1; } &&
      apt-get install "${options[@]}" "$@" 3>&1 >>"$log" 2>&1 | apt_progress
  } || die "apt-get failed: $(first_error '^E:' "$log"); full log: $log"
  listed_anew=yes
}

# With the packages of the interpreter that lacks fewest, unless it lacks one of those that are compiled against each other.
make_venv() {
  local candidate base='' lacks lacking=() with=()
  while read -r candidate; do
    if [[ -n $candidate ]] && recent_python "$candidate" &&
      "$candidate" -c 'import venv, ensurepip' 2>/dev/null; then
      # shellcheck disable=SC2086  # empty: no argument
      mapfile -t lacks < <("$candidate" scripts/build/python_packages.py missing $python_only)
      if [[ -n $base ]] && ((${#lacks[@]} >= ${#lacking[@]})); then continue; fi
      base=$candidate lacking=("${lacks[@]}")
    fi
  done < <(python_candidates)
  if [[ -z $base ]]; then return 1; fi
  if [[ ! " ${lacking[*]}" =~ ' '(numpy|pandas|matplotlib|scipy|scikit-image)'>=' ]]; then with=(--system-site-packages); fi
  local log=$XCORR_ROOT/.cache/venv.log requirements
  echo "[setup] making .venv with $(command -v "$base") and pip: a minute or more (log: $log)"
  make_cache
  # shellcheck disable=SC2086  # one requirement a word; no option: no word
  { requirements=$("$base" scripts/build/python_packages.py list $python_only 2>"$log") &&
    "$base" -m venv "${with[@]}" .venv >"$log" 2>&1 &&
    .venv/bin/python -m pip install --disable-pip-version-check --progress-bar off "$@" $requirements >>"$log" 2>&1; } ||
    die "pip failed: $(first_error '^ERROR' "$log"); full log: $log"
}

# What is there: sets python, meson, ninja (empty: not found) and the list packages.
look() {
  mapfile -t packages < <(missing_packages)
  python=$(choose_python) || python=''
  if [[ -n $python_only ]]; then return; fi
  meson=$(choose_meson) || meson=''
  ninja=$(choose_ninja) || ninja=''
}
complete() {
  [[ ${#packages[@]} == 0 && -n $python ]] && [[ -n $python_only || (-n $meson && -n $ninja) ]]
}

from_distribution() {
  local wanted=("${packages[@]%% *}") listed
  if [[ -z $python_only ]]; then
    if [[ -z $meson ]]; then wanted+=(meson); fi
    if [[ -z $ninja ]]; then wanted+=(ninja-build); fi
    # Never required. The first is loaded at run time by one CPU variant, which is not_supported without it; Meson calls
    # the second where it is found.
    wanted+=(libopenblas0-pthread ccache)
  fi
  if [[ -z $python ]]; then wanted+=(python3 python3-pip python3-venv ca-certificates fonts-dejavu-core); fi
  if ! recent_python /usr/bin/python3; then # it reads the list of Python packages
    apt_install "${wanted[@]}"
    wanted=()
  fi
  if [[ -z $python ]]; then
    # shellcheck disable=SC2086  # empty: no argument
    listed=$(/usr/bin/python3 scripts/build/python_packages.py debian $python_only) ||
      die "Python packages: pyproject.toml cannot be read; restore it with git checkout pyproject.toml"
    mapfile -t -O "${#wanted[@]}" wanted <<<"$listed"
  fi
  if ((${#wanted[@]})); then apt_install "${wanted[@]}"; fi
  look
  # Where the distribution's Meson is older than the lower bound, it comes from pip.
  if [[ -z $python_only && -z $meson ]]; then apt_install python3-venv; fi
}

# Without these the tests of the report are skipped, but where a browser is required.
browser() {
  local wanted=()
  command -v chromium >/dev/null || wanted+=(chromium)
  command -v node >/dev/null || wanted+=(nodejs)
  if ((${#wanted[@]})); then apt_install "${wanted[@]}"; fi
}

meson=${XCORR_MESON:-} ninja=${NINJA:-} no_venv=''
look
if ! complete && [[ -n $use_apt ]]; then from_distribution; fi
if [[ ${XCORR_REQUIRE_BROWSER:-} == 1 && -z $python_only && -n $use_apt ]]; then browser; fi
if ! complete; then
  from_pip=()
  if [[ -z $python_only && -z $meson ]]; then from_pip+=('meson>=1.0.1'); fi
  if [[ -z $python_only && -z $ninja ]]; then from_pip+=(ninja); fi
  if [[ -z $python ]] || ((${#from_pip[@]})); then make_venv "${from_pip[@]}" || no_venv=yes; fi
  look
fi
if ! complete; then
  if [[ -z $python ]]; then
    needs=$(/usr/bin/python3 scripts/build/python_packages.py missing $python_only 2>/dev/null | paste -sd ' ') || true
    packages+=("python3-venv Python >= 3.10 with venv and ensurepip, to install ${needs:-its packages}")
  fi
  if [[ -z $python_only && -z $meson ]]; then
    packages+=("meson Meson >= 1.0.1${no_venv:+, or a Python with venv and ensurepip to install it}")
  fi
  if [[ -z $python_only && -z $ninja ]]; then packages+=("ninja-build Ninja"); fi
  printf '%s\n' "${packages[@]}" |
    sed -E 's/^([^ ]+) (.*)/missing: \2 (Debian and Ubuntu package: \1)/' >&2
  die "set-up is not complete; as root: apt-get install --no-install-recommends" \
    "$(printf '%s\n' "${packages[@]%% *}" | paste -sd ' ')"
fi

{
  echo "XCORR_PYTHON='$python'"
  if [[ -n $meson ]]; then echo "XCORR_MESON='$meson'"; fi
  if [[ -n $ninja ]]; then echo "export NINJA='$ninja'"; fi
} 2>/dev/null >.xcorr-env || die "$XCORR_ROOT/.xcorr-env: cannot be written; put the tree into a folder that can be"
echo "[setup] ready: $python"
