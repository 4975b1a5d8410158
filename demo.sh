#!/usr/bin/env bash
# From nothing to a comparison of strategies: installs what is missing, builds, fetches a small BERT and
# movie-review sentences, fine-tunes for 60 steps, and from there on trains with each strategy for 60
# steps more. Prints where the report is. Run it again: nothing is fetched twice.
set -euo pipefail
cd "$(dirname "$0")"

output=build/demo

tools/install-packages.sh build fetch
make --silent -j"$(nproc)"
model=$(tools/fetch.py model)
reviews=$(tools/fetch.py rt-polarity)
data=(--train "$reviews/train.tsv" --validation "$reviews/validation.tsv" --test "$reviews/test.tsv")

# What an earlier demonstration left.
rm -rf "$output"
echo "fine-tuning, 60 steps"
build/lockstep train --model "$model" "${data[@]}" --max-steps 60 --learning-rate 5e-5 --output "$output/start"

echo
echo "comparing strategies from there, 60 steps each"
build/lockstep compare --model "$output/start" "${data[@]}" --devices 2 --strategies single,ddp,zero1,zero2,zero3,zero3+offload \
    --max-steps 60 --learning-rate 2e-5 --timing-rounds 3 --timing-steps 5 --output "$output/comparison"

cat <<END

Open $output/comparison/report.html in a browser: it needs no network.
The classifier is in $output/start. Try it:
  echo 'a warm, funny and clever film' | build/lockstep predict --model $output/start
END
