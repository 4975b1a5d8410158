# Each command in a block marked "sh" of the pages that compare strategies works as it stands.
source "$SOURCE/tests/cli/common.bash"
source "$SOURCE/tests/support/documented.bash"
documented_start
for name in docs/choosing-a-strategy.md docs/comparing-strategies.md docs/fr/premiers-pas.md; do
    documented_run "$name"
done
[[ -s compared/report.html && -s sizes/compare.json && -s entraine/model.safetensors && -s graines/compare.csv ]] ||
    fail "what the pages promise is not there"
