#!/usr/bin/env bash
# Run commands of this project in an empty Debian 12 root that has git and nothing else, as a new user
# would: what demo.sh and test.sh forget to install fails here. Needs root, debootstrap and git. Works
# on the last commit, not on the working tree. The host's package sources, proxy, certificates and pip
# settings are taken along; everything is removed at the end.
#
# Usage: tools/try-fresh-machine.sh [--as-user] [--keep FOLDER] [COMMAND...]
#   COMMAND      one shell command each; default: ./demo.sh ./demo.sh ./test.sh
#   --as-user    as a user with sudo instead of as root
#   --keep       leave the root in FOLDER, and use it again if it is there
set -euo pipefail

source_folder=$(cd "$(dirname "$0")/.." && pwd)
suite=bookworm
account=root
home=/root
keep=
while [[ ${1:-} == --* ]]; do
    case $1 in
    --as-user) account=tester home=/home/tester ;;
    --keep) keep=$(realpath -m "$2") && shift ;;
    *) echo "try-fresh-machine.sh: no option '$1'" >&2 && exit 2 ;;
    esac
    shift
done
[[ $# -gt 0 ]] || set -- ./demo.sh ./demo.sh ./test.sh
if [[ $(id -u) -ne 0 ]] || ! command -v debootstrap >/dev/null; then
    echo "try-fresh-machine.sh: run as root, with debootstrap installed" >&2
    exit 2
fi

# Mounts made below end with this namespace, whatever happens.
if [[ -z ${FRESH_MACHINE_ROOT:-} ]]; then
    FRESH_MACHINE_ROOT=${keep:-$(mktemp -d)}
    export FRESH_MACHINE_ROOT
    [[ -n $keep ]] || trap 'rm -rf --one-file-system "$FRESH_MACHINE_ROOT"' EXIT
    options=()
    [[ $account == root ]] || options+=(--as-user)
    unshare --mount "$0" "${options[@]}" "$@"
    exit
fi
root=$FRESH_MACHINE_ROOT

debian_sources() {
    local file
    for file in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
        if [[ -s $file ]]; then echo "$file" && return; fi
    done
}

make_root() {
    local sources mirror=()
    sources=$(debian_sources)
    if [[ -n $sources ]]; then
        read -ra mirror < <(sed -nE -e 's/^URIs: *([^ ]+).*/\1/p' \
            -e 's/^deb +(\[[^]]*\] +)?([^ ]+) .*/\2/p' "$sources" | head -n 1)
    fi
    debootstrap --variant=minbase "$suite" "$root" "${mirror[@]}" >"$root.log" 2>&1 ||
        { tail -n 20 "$root.log" >&2 && return 1; }
    rm -f "$root.log"
    if [[ -n $sources ]]; then
        rm -f "$root/etc/apt/sources.list"
        cp "$sources" "$root$sources"
    fi
    cp /etc/resolv.conf /etc/hosts "$root/etc/"
    mkdir -p "$root/etc/ssl/certs" "$root/usr/local/share/ca-certificates"
    cp -r /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/"
    if [[ -e /etc/ssl/certs/ca-certificates.crt ]]; then
        cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    fi
    inside root 'apt-get -q update && apt-get -qy install --no-install-recommends git sudo' >/dev/null 2>&1
}

make_account() {
    [[ $account == root ]] || [[ -d $root$home ]] ||
        inside root "useradd --create-home $account && echo '$account ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/$account"
}

# pip's settings, and the folders of this machine that they point to: an index in a folder keeps its
# files beside it.
bring_pip_settings() {
    local path
    for path in /etc/pip.conf /etc/xdg/pip; do
        if [[ -e $path ]]; then mkdir -p "$(dirname "$root$path")" && cp -rT "$path" "$root$path"; fi
    done
    for path in .config/pip .pip; do
        if [[ -e $HOME/$path ]]; then
            mkdir -p "$(dirname "$root$home/$path")" && cp -rT "$HOME/$path" "$root$home/$path"
        fi
    done
    { python3 -m pip config list 2>/dev/null || true; } | grep -oE "(file://)?/[^ '\"\\]+" |
        sed -E 's|^file://(.+)/[^/]+/?$|\1|' | sort -u | while read -r path; do
        # What the root has of its own stays visible; an empty folder is left from an earlier run.
        if [[ -d $path && -z $(ls -A "$root$path" 2>/dev/null) ]]; then
            mkdir -p "$root$path" && mount --bind -o ro "$path" "$root$path"
        fi
    done
}

inside() {
    local who=$1 kept=() name
    for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY SSL_CERT_FILE \
        REQUESTS_CA_BUNDLE ${!PIP_@}; do
        [[ -z ${!name:-} ]] || kept+=("$name=${!name}")
    done
    local path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin shell=(bash -c "$2")
    [[ $who == root ]] || shell=(setpriv --reuid "$who" --regid "$who" --init-groups "${shell[@]}")
    env -i HOME="$([[ $who == root ]] && echo /root || echo "/home/$who")" USER="$who" PATH=$path \
        LANG=C.UTF-8 TERM="${TERM:-dumb}" "${kept[@]}" chroot "$root" "${shell[@]}"
}

mkdir -p "$root"
# Another account than root walks through it too, which mktemp does not think of.
chmod 755 "$root"
if [[ ! -x $root/usr/bin/sudo ]]; then
    echo "making a Debian root in $root"
    make_root
fi
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
make_account
bring_pip_settings

project=$home/lockstep
rm -rf "${root:?}$project"
git clone --quiet --no-hardlinks "$source_folder" "$root$project"
inside root "chown -R $account: $home"
status=0
for command in "$@"; do
    echo "=== as $account: $command"
    start=$SECONDS
    inside "$account" "cd $project && $command" || status=1
    echo "=== $command: $((SECONDS - start)) s"
done
exit $status
