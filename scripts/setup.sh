#!/usr/bin/env bash
# Makes ready what xcorr-bench needs, and records the choice in .xcorr-env. Quick when nothing is missing.
#
# As root on Debian or Ubuntu it installs distribution packages. Otherwise it uses a Python that has the
# packages of pyproject.toml, or makes a virtual environment in .venv; what cannot be had like that is named.
# nvcc is used where it is found, never installed.
#
# usage: scripts/setup.sh [--python-only] [--no-apt]
#   --python-only   only what drawing needs: no compiler, no build tools, no test packages
#   --no-apt        install no distribution package, even as root
# environment: XCORR_PYTHON=/path/to/python3 is tried first
# example: scripts/setup.sh
set -euo pipefail
asked_python=${XCORR_PYTHON:-}
# shellcheck source=scripts/env.sh
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$XCORR_ROOT"

python_only='' use_apt=yes
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
      "$candidate" scripts/python_packages.py missing $python_only >/dev/null; then
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
    found=$("$candidate" --version 2>/dev/null | head -n 1) || continue
    if [[ -n $found && $(printf '%s\n' "$least" "$found" | sort -V | head -n 1) == "$least" ]]; then
      command -v "$candidate"
      return
    fi
  done
  return 1
}
choose_meson() { choose_tool 1.0.1 "${MESON:-meson}" "$XCORR_ROOT/.venv/bin/meson" /usr/bin/meson; }
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
  local package module
  while read -r package module; do
    pkg-config --exists $module 2>/dev/null || echo "$package C++ library: ${module/ >/>}"
  done <<'END'
libbenchmark-dev benchmark >= 1.6
libfftw3-dev fftw3f >= 3.3
nlohmann-json3-dev nlohmann_json >= 3.10
libcli11-dev CLI11 >= 2.1
libgtest-dev gtest >= 1.11
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

apt_install() {
  local log=$XCORR_ROOT/.cache/apt.log
  mkdir -p "$XCORR_ROOT/.cache"
  echo "[setup] installing distribution packages: $*"
  export DEBIAN_FRONTEND=noninteractive
  local options=(-y --no-install-recommends -o APT::Status-Fd=3 -o DPkg::Lock::Timeout=300
    -o Acquire::Retries=3)
  {
    apt-get update -o Acquire::Retries=3 >"$log" 2>&1 &&
      apt-get install "${options[@]}" "$@" 3>&1 >>"$log" 2>&1 | apt_progress
  } || die "apt-get failed: $(grep -m 1 '^E:' "$log" || tail -n 1 "$log"); full log: $log"
}

make_venv() {
  local candidate base=''
  while read -r candidate; do
    if [[ -n $candidate ]] && recent_python "$candidate" &&
      "$candidate" -c 'import venv, ensurepip' 2>/dev/null; then
      base=$candidate
      break
    fi
  done < <(python_candidates)
  if [[ -z $base ]]; then return 1; fi
  echo "[setup] making a virtual environment in .venv with $(command -v "$base")"
  local log=$XCORR_ROOT/.cache/venv.log
  mkdir -p "$XCORR_ROOT/.cache"
  # shellcheck disable=SC2046  # one requirement a word
  { "$base" -m venv .venv >"$log" 2>&1 &&
    .venv/bin/python -m pip install --disable-pip-version-check --progress-bar off "$@" \
      $(.venv/bin/python scripts/python_packages.py list $python_only) >>"$log" 2>&1; } ||
    die "pip failed: $(grep -m 1 '^ERROR' "$log" || tail -n 1 "$log"); full log: $log"
}

# 1. What the distribution can give.
packages=()
while read -r package _; do packages+=("$package"); done < <(missing_packages)
if [[ -n $use_apt ]]; then
  if [[ -z $python_only ]]; then
    choose_meson >/dev/null || packages+=(meson)
    choose_ninja >/dev/null || packages+=(ninja-build)
  fi
  if ! choose_python >/dev/null; then
    packages+=(python3 python3-pip ca-certificates fonts-dejavu-core)
    # Python may be missing still, so the names come from Debian 12's or from the list itself.
    if recent_python python3; then
      mapfile -t -O "${#packages[@]}" packages < <(python3 scripts/python_packages.py debian $python_only)
    fi
  fi
  if ((${#packages[@]})); then apt_install "${packages[@]}"; fi
  if ! choose_python >/dev/null && recent_python /usr/bin/python3; then
    mapfile -t packages < <(/usr/bin/python3 scripts/python_packages.py debian $python_only)
    apt_install "${packages[@]}"
  fi
  if ! choose_python >/dev/null || { [[ -z $python_only ]] && ! choose_meson >/dev/null; }; then
    apt_install python3-venv # this release's packages are older than the lower bounds
  fi
fi

# 2. What pip can give.
from_pip=()
if [[ -z $python_only ]]; then
  choose_meson >/dev/null || from_pip+=('meson>=1.0.1')
  choose_ninja >/dev/null || from_pip+=(ninja)
fi
if ! choose_python >/dev/null || ((${#from_pip[@]})); then
  make_venv "${from_pip[@]}" || no_venv=yes
fi

# 3. What is missing still.
missing=()
mapfile -t missing < <(missing_packages)
if ! python=$(choose_python); then
  needs=$(/usr/bin/python3 scripts/python_packages.py missing $python_only 2>/dev/null | paste -sd ' ')
  missing+=("python3-venv Python >= 3.10 with venv and ensurepip, to install ${needs:-its packages}")
fi
if [[ -z $python_only ]]; then
  meson=$(choose_meson) || missing+=("meson Meson >= 1.0.1${no_venv:+, which a Python with venv and ensurepip would give}")
  ninja=$(choose_ninja) || missing+=("ninja-build Ninja")
fi
if ((${#missing[@]})); then
  for line in "${missing[@]}"; do
    printf 'missing: %s (Debian and Ubuntu package: %s)\n' "${line#* }" "${line%% *}" >&2
  done
  names=$(printf '%s\n' "${missing[@]}" | cut -d ' ' -f 1 | paste -sd ' ')
  die "set-up is not complete; as root: apt-get install --no-install-recommends $names"
fi

{
  echo "XCORR_PYTHON='$python'"
  if [[ -z $python_only ]]; then
    echo "XCORR_MESON='$meson'"
    echo "export NINJA='$ninja'"
  fi
} >.xcorr-env
echo "[setup] ready: $python"
