#!/usr/bin/env bash
# From nothing to a fine-tuned classifier: installs what is missing, builds, fetches a small BERT and
# movie-review sentences, trains one epoch on all cores and evaluates. Run it again: nothing is fetched twice.
set -euo pipefail
cd "$(dirname "$0")"

output=build/demo

tools/install-packages.sh build fetch
make --silent -j"$(nproc)"
model=$(tools/fetch.py model)
reviews=$(tools/fetch.py rt-polarity)

# What an earlier demonstration left.
rm -rf "$output"
build/lockstep train --model "$model" --train "$reviews/train.tsv" \
    --validation "$reviews/validation.tsv" --test "$reviews/test.tsv" \
    --epochs 1 --batch-size 32 --learning-rate 5e-5 --output "$output"

cat <<END

The classifier is in $output. Try it:
  echo 'a warm, funny and clever film' | build/lockstep predict --model $output
END
