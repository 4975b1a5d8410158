#!/usr/bin/env bash
# Install the Debian packages that are missing, as root or through sudo. Does nothing when all are
# there. The one list of what this project needs.
#
# Usage: tools/install-packages.sh GROUP...      groups: build, fetch, test, slurm
set -euo pipefail

packages_build="build-essential pkg-config libhwloc-dev libjansson-dev libjs-chart.js libxxhash-dev nettle-dev libopenmpi-dev openmpi-bin"
packages_fetch="ca-certificates python3 python3-pip"
packages_test="chromium clang clang-format cmake git iproute2 jq libclang-rt-14-dev libcmocka-dev llvm python3-venv"
packages_slurm="munge slurm-client slurmctld slurmd"

wanted=()
for group in "$@"; do
    list=packages_$group
    if [[ ! $group =~ ^[a-z]+$ || -z ${!list:-} ]]; then
        echo "install-packages.sh: no group '$group'; there are build, fetch, test and slurm" >&2
        exit 2
    fi
    read -ra names <<<"${!list}"
    wanted+=("${names[@]}")
done

missing=()
for package in "${wanted[@]}"; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [[ $state == installed ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
    if ! command -v sudo >/dev/null; then
        echo "install-packages.sh: missing: ${missing[*]}" >&2
        echo "install-packages.sh: run this as root, or install sudo" >&2
        exit 1
    fi
    as_root=(sudo)
fi

echo "installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# One unreachable source of several need not matter: the installation decides.
"${as_root[@]}" apt-get update >"$log" 2>&1 || true
if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${missing[@]}" >>"$log" 2>&1; then
    cat "$log" >&2
    echo "install-packages.sh: apt-get could not install ${missing[*]}" >&2
    exit 1
fi
