# Sourced by tests of comparisons.

# is FOLDER FILTER: the jq filter is true of its compare.json.
is() {
    jq -e "$2" "$1/compare.json" >parsed.txt || fail "not true of $1/compare.json: $2"
}
