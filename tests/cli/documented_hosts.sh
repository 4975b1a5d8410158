# Each command of docs/several-hosts.md for several hosts works as it stands: two network namespaces of this machine are called
# what the page calls its hosts. Commands of srun are run by tests/long/slurm.sh.
source "$SOURCE/tests/cli/common.bash"
source "$SOURCE/tests/support/documented.bash"
source "$SOURCE/tests/support/two_hosts.bash"
documented_start
two_hosts_start alpha beta || { echo "$two_hosts_reason" && exit 77; }
trap two_hosts_stop EXIT
export OMPI_MCA_plm_rsh_agent=$PWD/two_hosts_agent
export OMPI_MCA_oob_tcp_if_include=$two_hosts_network.0/24 OMPI_MCA_btl_tcp_if_include=$two_hosts_network.0/24

expect 0 lockstep train --model all-MiniLM-L6-v2 --train train.tsv --output alone --quiet
count=0
while IFS= read -r -d '' block; do
    if [[ $block == srun* ]]; then continue; fi
    # What stands below "$ cat FILE" is the file.
    python3 - "$block" >commands.sh <<'PYTHON'
import re, sys
parts = re.split(r"^\$ (.*)\n", sys.argv[1], flags=re.MULTILINE)
if len(parts) == 1:
    print(sys.argv[1])
for command, output in zip(parts[1::2], parts[2::2]):
    shown = re.fullmatch(r"cat (\w+)", command)
    if shown:
        open(shown.group(1), "w").write(output)
    else:
        print(command)
PYTHON
    rm -rf out
    expect 0 two_hosts_first bash -euo pipefail commands.sh
    says err.txt "4 processes on 2 hosts" "     0  alpha" "     3  beta"
    cmp alone/model.safetensors out/model.safetensors || fail "two hosts train another model: $block"
    count=$((count + 1))
done < <(documented_blocks "$SOURCE/docs/several-hosts.md" hosts)
[[ $count -eq 2 ]] || fail "$count commands instead of two"
