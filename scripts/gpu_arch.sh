#!/usr/bin/env bash
# Prints the compute capabilities of this machine's GPUs, as "80 90"; nothing where there is none.
# Example: scripts/gpu_arch.sh
set -euo pipefail
if [[ ${1:-} == --help ]]; then
  sed -n '2,3s/^# //p' "$0"
  exit 0
fi
command -v nvidia-smi >/dev/null || exit 0
capabilities=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null) || exit 0
tr -d '.' <<<"$capabilities" | grep -E '^[0-9]+$' | sort -un | tr '\n' ' '
