#!/usr/bin/env bash
# Proves reproduce.sh and test.sh on a bare Debian 12: makes a root with debootstrap, clones HEAD into it, runs
# ./scripts/reproduce.sh twice (the second time must measure nothing) and ./scripts/test.sh, prints the times.
# Needs root and debootstrap. The package sources, proxy and certificates of this machine are used inside.
#
# usage: scripts/test_debootstrap.sh [--base FILE.tar] [--only reproduce|test] [--keep]
#   --base FILE.tar   the bare root is kept there and taken from there the next time
#   --only            one of the two
#   --keep            leave the root in place and name it
# example: scripts/test_debootstrap.sh --base .cache/debian-12.tar
set -euo pipefail
# shellcheck source=scripts/env.sh
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

base='' only='' keep=''
while (($#)); do
  case $1 in
    --help | -h) show_help "$0"; exit 0 ;;
    --keep) keep=yes ;;
    --base | --only)
      if (($# < 2)); then refuse "$1: a value is missing; see scripts/test_debootstrap.sh --help"; fi
      if [[ $1 == --base ]]; then base=$(absolute "$1" "$2") || exit; else only=$2; fi
      shift ;;
    *) refuse "$1: unknown option; see scripts/test_debootstrap.sh --help" ;;
  esac
  shift
done
if [[ ! $only =~ ^(|reproduce|test)$ ]]; then refuse "--only $only: unknown; use reproduce or test"; fi
[[ $(id -u) == 0 ]] || refuse "root: needed to make and enter the new root; run it as root"
command -v debootstrap >/dev/null || refuse "debootstrap: not found; apt-get install debootstrap"

debian=$(mktemp -d "${TMPDIR:-/tmp}/xcorr-debian.XXXXXX" 2>/dev/null) ||
  die "${TMPDIR:-/tmp}: no folder can be made in it; set TMPDIR to one where that works"
# shellcheck disable=SC2317  # called by the trap
leave() {
  umount --lazy "$debian/proc" "$debian/sys" "$debian/dev/shm" 2>/dev/null || true
  if [[ -n $keep ]]; then echo "kept: $debian"; else rm -rf --one-file-system "$debian" || true; fi
}
trap leave EXIT
trap 'exit 130' INT TERM

on_debian() { grep -qs '^ID=debian$' /etc/os-release; }
# Files that say where packages come from; a machine may have the one, the other or none.
sources=()
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do
  if [[ -f $file ]]; then sources+=("$file"); fi
done
if [[ -n $base && -f $base ]]; then
  tar -C "$debian" -xf "$base" || die "$base: cannot be unpacked; delete it, then it is made again"
else
  mirror=''
  if on_debian && ((${#sources[@]})); then
    mirror=$(sed -nE 's/^(URIs:|deb( \[[^]]*\])?) +([^ ]+).*/\3/p' "${sources[@]}")
    mirror=${mirror%%$'\n'*} # the first; none where no line names one, then debootstrap takes its own
  fi
  debootstrap --variant=minbase bookworm "$debian" ${mirror:+"$mirror"} >"$debian.log" 2>&1 ||
    die "debootstrap failed: $(first_error '^E:' "$debian.log"); full log: $debian.log"
  rm -f "$debian.log"
  if [[ -n $base ]]; then
    { mkdir -p "$(dirname "$base")" && tar -C "$debian" -cf "$base" .; } ||
      die "$base: cannot be written; name another file with --base, or leave --base out"
  fi
fi

# This machine's way to the network.
if on_debian && ((${#sources[@]})); then
  rm -rf "$debian"/etc/apt/sources.list*
  for file in /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/apt.conf.d; do
    if [[ -e $file ]]; then cp -a "$file" "$debian/etc/apt/"; fi
  done
fi
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf; do
  if [[ -f $file ]]; then cp -L "$file" "$debian$file"; fi
done
variables=(PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8)
while IFS= read -r variable; do
  variables+=("$variable")
done < <(env | grep -iE '^(https?_proxy|no_proxy|pip_index_url|pip_extra_index_url)=' || true)
if [[ -f /etc/ssl/certs/ca-certificates.crt ]]; then
  mkdir -p "$debian/etc/ssl"
  cp -L /etc/ssl/certs/ca-certificates.crt "$debian/etc/ssl/host.crt"
  for name in SSL_CERT_FILE PIP_CERT REQUESTS_CA_BUNDLE GIT_SSL_CAINFO; do
    variables+=("$name=/etc/ssl/host.crt")
  done
fi

mkdir -p "$debian/dev/shm"
{ mount -t proc proc "$debian/proc" && mount -t sysfs -o ro sysfs "$debian/sys" &&
  mount -t tmpfs tmpfs "$debian/dev/shm"; } ||
  die "$debian: proc, sysfs or tmpfs cannot be mounted in it; run as root outside a container, or in a privileged one"
git clone --quiet "$XCORR_ROOT" "$debian/xcorr-bench" ||
  die "$XCORR_ROOT: cannot be cloned; call this in a clone of the repository"
git -C "$debian/xcorr-bench" log -1 --format='commit %h %s'

times=()
inside() {
  local started=$SECONDS status=0
  echo "== $*"
  chroot "$debian" /usr/bin/env -i "${variables[@]}" bash -c 'cd /xcorr-bench && exec "$@"' - "$@" || status=$?
  times+=("$(printf '%4d s  exit %d  %s' $((SECONDS - started)) $status "$*")")
  return $status
}
# Nothing where nothing was measured, which is told below.
measured() {
  local local_sets=$debian/xcorr-bench/results/local
  if [[ -d $local_sets ]]; then find "$local_sets" -name "*.csv.gz" -exec sha256sum {} + | sort; fi
}

status=0
if [[ $only != test ]]; then
  inside ./scripts/reproduce.sh || status=1
  before=$(measured)
  inside ./scripts/reproduce.sh || status=1
  if [[ -z $before || $before != "$(measured)" ]]; then
    echo "error: results: the second run measured again, or nothing was measured" >&2
    status=1
  fi
fi
if [[ $only != reproduce ]]; then inside ./scripts/test.sh || status=1; fi
echo
printf '%s\n' "${times[@]}"
exit $status
