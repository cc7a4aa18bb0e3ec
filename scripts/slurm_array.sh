#!/usr/bin/env bash
# Measures on a Slurm cluster: a job array of shards, and a job after it that draws what all of them measured.
# Tree, build and results must lie where every node sees them; then the rows of all shards lie in one folder, and
# nothing needs to be copied. A shard that is killed and queued again resumes; so does the same command afterwards.
#
# usage: scripts/slurm_array.sh [options]
#   --preset NAME                how long and how often to measure: smoke (the default), quick, evaluation, extended, and
#                                paper after quick
#   --shards N                   how many jobs share the work (default: 4)
#   --partition NAME             of the cluster (default: its own default)
#   --device cpu|cuda|cuda:N     what a shard measures on (default: the first GPU of its job, else the CPU)
#   --experiments, --variants, --sizes, --forms LIST   as of scripts/reproduce.sh
#   --results DIR                where rows and logs go (default: results); logs: DIR/slurm
#   --sbatch ARG                 one more argument of sbatch for both jobs; may be repeated
#   --sbatch-shards ARG          the same for the shards only, such as --gpus=1 or --exclusive
#   --no-build                   set-up and build were done before
#   --dry-run                    print the two sbatch commands, submit nothing
# Shards that share a node slow each other down: on CPUs give --sbatch-shards --exclusive.
# example: scripts/slurm_array.sh --preset quick --shards 8 --partition gpu --device cuda --sbatch-shards --gpus=1
set -euo pipefail
scripts=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=scripts/env.sh
source "$scripts/env.sh"

step=submit preset=smoke shards=4 partition='' device=auto results=$XCORR_ROOT/results
selection=() both=() only_shards=() build=yes dry_run=
while (($#)); do
  case $1 in
    --help | -h) show_help "$0"; exit 0 ;;
    --no-build) build='' ;;
    --dry-run) dry_run=yes ;;
    --step | --preset | --shards | --partition | --device | --results | --sbatch | --sbatch-shards | \
      --experiments | --variants | --sizes | --forms)
      if (($# < 2)); then refuse "$1: a value is missing; see scripts/slurm_array.sh --help"; fi
      case $1 in
        --step) step=$2 ;; # what the submitted jobs call: shard or draw
        --preset) preset=$2 ;;
        --shards) shards=$2 ;;
        --partition) partition=$2 ;;
        --device) device=$2 ;;
        --results) results=$(absolute "$1" "$2") || exit ;;
        --sbatch) both+=("$2") ;;
        --sbatch-shards) only_shards+=("$2") ;;
        *) selection+=("$1" "$2") ;;
      esac
      shift ;;
    *) refuse "$1: unknown option; see scripts/slurm_array.sh --help" ;;
  esac
  shift
done
if [[ ! $shards =~ ^[1-9][0-9]{0,3}$ ]]; then refuse "--shards $shards: not a number of jobs; use 1 to 9999"; fi
grid=() # every compile-time point, for these presets
case $preset in evaluation | extended) grid=(--grid paper) ;; esac
logs=$results/slurm

make_folder() {
  mkdir -p "$1" 2>/dev/null || die "$1: cannot be made; give --results a folder that every node can write to"
}

# A job of the array: one shard. It notes where its rows are, and at the end that it has finished.
shard() {
  local number=${SLURM_ARRAY_TASK_ID:-} job=${SLURM_ARRAY_JOB_ID:-} state status=0 facts key
  if [[ -z $number || -z $job ]]; then
    refuse "--step shard: not in a job array of Slurm; leave --step out, then the array is submitted"
  fi
  state=$logs/$job
  make_folder "$state"
  rm -f "$state/$number.finished" # of an earlier start
  facts=$(run_python -m experiments.driver.run --machine-facts --device "$device") || exit
  key=$(fact machine_key "$facts") || exit
  echo "$key" >"$state/$number.key"
  echo "shard $number/$shards on $key, $HOSTNAME, start ${SLURM_RESTART_COUNT:-0}"
  run_python -m experiments.driver.run --preset "$preset" --device "$device" --results "$results" \
    --shard "$number/$shards" "${selection[@]}" || status=$?
  # 1: some point is incorrect or failed. All of them have rows; the report names those.
  if ((status <= 1)); then echo "$status" >"$state/$number.finished"; fi
  exit "$status"
}

# The job after the array: draws every set that a shard wrote to.
draw() {
  local state=$logs/$1 finished=() keys=() key status=0
  shopt -s nullglob
  finished=("$state"/*.finished)
  echo "${#finished[@]} of $shards shards have finished"
  mapfile -t keys < <(cat "$state"/*.key </dev/null | sort -u)
  if ((${#keys[@]} == 0)); then die "$state: no shard has started; the logs in $logs say why"; fi
  for key in "${keys[@]}"; do
    run_python -m plots.render --local "$key" --results "$results" || status=1
  done
  if ((${#finished[@]} < shards)); then die "$state: not every shard has finished; submit the same command again"; fi
  exit "$status"
}

submit() {
  local common self array after job drawing
  if [[ -z $dry_run ]] && ! command -v sbatch >/dev/null; then
    refuse "sbatch: not found; call this where jobs of the cluster are submitted"
  fi
  if [[ -n $build && -z $dry_run ]]; then
    "$scripts/setup.sh" || exit
    "$scripts/build.sh" "${grid[@]}" || exit
  fi
  common=(--parsable --chdir "$XCORR_ROOT" --open-mode append)
  if [[ -n $partition ]]; then common+=(--partition "$partition"); fi
  common+=("${both[@]}")
  self=("$XCORR_ROOT/scripts/slurm_array.sh" --preset "$preset" --shards "$shards" --device "$device"
    --results "$results")
  array=(sbatch "${common[@]}" --array "1-$shards" --requeue --job-name "xcorr-$preset" --output "$logs/%A_%a.log"
    "${only_shards[@]}" --wrap "exec $(printf '%q ' "${self[@]}" "${selection[@]}" --step shard)")
  # afterany: what some shards measured is drawn even where another failed; the exit code says so.
  after=(sbatch "${common[@]}" --job-name "xcorr-$preset-draw" --output "$logs/%A_draw.log")
  if [[ -n $dry_run ]]; then
    printf '%q ' "${array[@]}"; echo
    printf '%q ' "${after[@]}" --dependency afterany:JOB \
      --wrap "exec $(printf '%q ' "${self[@]}" --step draw:JOB)"; echo
    return
  fi
  make_folder "$logs"
  job=$("${array[@]}") || die "sbatch: refused the job array; its message is above"
  job=${job%%;*}
  drawing=$("${after[@]}" --dependency "afterany:$job" --wrap "exec $(printf '%q ' "${self[@]}" --step "draw:$job")") ||
    die "sbatch: refused the job that draws; job array $job is queued and measures all the same"
  echo "submitted: job array $job ($shards shards), then ${drawing%%;*} draws"
  echo "watch:     squeue --me; logs: $logs/${job}_*.log"
  echo "rows:      $results/local/<machine-key>"
}

case $step in
  submit) submit ;;
  shard) shard ;;
  draw:*) draw "${step#draw:}" ;;
  *) refuse "--step $step: unknown; the jobs that this script submits use it" ;;
esac
