#!/usr/bin/env bash
# Prints the compute capabilities of this machine's GPUs, as "80 90"; nothing where there is none.
#
# usage: scripts/build/gpu_arch.sh
# example: meson setup build -Dgpu_arch=$(scripts/build/gpu_arch.sh)
set -euo pipefail
# shellcheck source=scripts/env.sh
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"
if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help "$0"; exit 0; fi
if (($#)); then refuse "$1: unknown option; see scripts/build/gpu_arch.sh --help"; fi
command -v nvidia-smi >/dev/null || exit 0
capabilities=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null) || exit 0
# A driver that does not know its GPU prints "[N/A]": then grep finds nothing, and nothing is right.
{ tr -d '.' <<<"$capabilities" | grep -E '^[0-9]+$' || true; } | sort -un | tr '\n' ' '
