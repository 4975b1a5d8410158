#!/usr/bin/env bash
# What the built library exports, and which variables it could change while running.
#
# Usage: tools/check-symbols.sh [BUILD]
set -euo pipefail
build=${1:-build}

# Mutable globals that design.md allows: the hooks, their counters, and what formats/json.c keeps for
# jansson, whose allocation functions take no argument of ours.
allowed='^(allocation_hook|allocation_context|allocated_bytes|allocation_count|json_memory_once|parsing)$'

status=0
exported=$(nm -D --defined-only "$build/liblockstep.so" | awk '{ print $3 }' | grep -Ev '^(ls_|_init$|_fini$)' || true)
if [[ -n $exported ]]; then
    echo "exported without the ls_ prefix:" "$exported"
    status=1
fi
mutable=$(nm --format=sysv "$build/liblockstep.a" 2>/dev/null |
    awk -F'|' '$3 ~ /[bBdDC]/ && $7 ~ /^\.(bss|data|tbss|tdata)$|COM/ { gsub(/ /, "", $1); print $1 }' |
    sed 's/\.[0-9]*$//' | sort -u | grep -Ev "$allowed" || true)
if [[ -n $mutable ]]; then
    echo "mutable globals; pass state by argument, or allow them in tools/check-symbols.sh:" "$mutable"
    status=1
fi
exit $status
