# A model folder that cannot be used is refused by file, key or tensor; nothing is written.
source "$SOURCE/tests/cli/common.bash"
write_reviews train.tsv 40 1

# bad PART STATEMENTS TEXT [STATUS]: the tiny model, changed, is refused with the text, by training and by
# inspection or evaluation alike.
bad() {
    fresh_model
    python3 "$SOURCE/tests/cli/damage.py" model "$1" "$2"
    refused "${4:-1}" "$3" --train train.tsv
}

# --- folders ---------------------------------------------------------------------------------------
refused 1 "model: there is no such folder: --model takes a Hugging Face model folder" --train train.tsv
touch model
refused 1 "model: there is no such folder" --train train.tsv
rm model && mkdir model
refused 1 "model/config.json: cannot open: No such file" --train train.tsv
fresh_model && rm model/model.safetensors
refused 1 "has neither model.safetensors nor model.safetensors.index.json" --train train.tsv
touch model/pytorch_model.bin
refused 1 "has pytorch_model.bin only, which is not read; convert the model" --train train.tsv
fresh_model && rm model/tokenizer.json model/vocab.txt
refused 1 "has neither tokenizer.json nor vocab.txt" --train train.tsv
fresh_model && chmod 000 model/config.json
if [[ $(id -u) -ne 0 ]]; then
    refused 1 "model/config.json: cannot open: Permission denied" --train train.tsv
elif can_be_other; then
    expect 1 as_other "$LOCKSTEP" train --model model --train train.tsv --output out
    says err.txt "model/config.json: cannot open: Permission denied"
fi

# --- config.json -------------------------------------------------------------------------------------
bad config 'config["model_type"] = "gpt2"' \
    "model/config.json: key 'model_type': 'gpt2' is not supported; supported are: bert, distilbert"
bad config 'config["model_type"] = "roberta"' "'roberta' is not supported"
for key in model_type vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size \
    max_position_embeddings; do
    bad config "del config['$key']" "model/config.json: key '$key': is missing, but it is needed"
done
bad config 'config["vocab_size"] = "many"' "key 'vocab_size': is text, an integer is needed"
bad config 'config["vocab_size"] = 63' "the tokenizer has 151 tokens, but config.json's vocab_size is 63"
bad config 'config["num_attention_heads"] = 7' "7 heads do not divide hidden_size 36 evenly"
bad config 'config["hidden_size"] = 10**30' "model/config.json: byte"
bad config 'config["num_hidden_layers"] = 10**9' "key 'num_hidden_layers': is 1000000000, must be from 1 to 1000"
bad config 'config["hidden_act"] = "swish"' "key 'hidden_act': 'swish' is not supported; supported are"
bad config 'config["id2label"] = {"0": "a", "2": "b"}' "key 'id2label.2': the ids of 2 labels must be 0 to 1"
fresh_model && head -c 4000 /dev/zero >model/config.json
refused 1 "model/config.json: byte 1: a NUL byte" --train train.tsv
fresh_model && echo '{"model_type": "bert", ' >model/config.json
refused 1 "model/config.json: " --train train.tsv
fresh_model && ln -sf /dev/zero model/config.json
refused 1 "model/config.json: larger than the limit" --train train.tsv

# Sizes that would take terabytes are seen from the headers, before memory is taken.
absurd() {
    fresh_model
    python3 "$SOURCE/tests/cli/damage.py" model config "$1"
    is_sanitized || ulimit -Sv 2000000
    refused 1 "$2" --train train.tsv
    expect 0 "$LOCKSTEP" plan --model model --strategy single
    ulimit -Sv unlimited
}
absurd 'config.update(vocab_size=10**7, hidden_size=10**6, num_attention_heads=1)' \
    "tensor embeddings.word_embeddings.weight has shape [151, 36], config.json asks for [10000000, 1000000]"
absurd 'config["intermediate_size"] = 10**7' "has shape [52, 36], config.json asks for [10000000, 36]"
absurd 'config["max_position_embeddings"] = 10**7' "has shape [64, 36], config.json asks for [10000000, 36]"
absurd 'config["num_hidden_layers"] = 1000' "tensor bert.encoder.layer.2.attention.self.query.weight is missing"

# --- model.safetensors -------------------------------------------------------------------------------
bad weights 'announced = 10**6' "a header of 1000000 bytes is announced, the file has"
bad weights 'announced = 101 * 2**20' "a header of 105906176 bytes is announced, the limit is 100000000"
bad weights 'announced = 2**63 + 5' "the limit is 100000000"
bad weights 'announced = 0' "model/model.safetensors: "
bad weights 'body = body[:-4]' "the file is cut short or damaged"
bad weights 'body += bytes(4)' "4 bytes after 'pooler.dense.weight' belong to no tensor"
bad weights 'body = b""' "the file is cut short or damaged"
bad weights 'header.clear()' "bytes after 'the header' belong to no tensor"
bad weights 'word["data_offsets"][1] += 4' "hold 21748 bytes, but F32 of shape [151, 36] takes 21744"
bad weights 'word["data_offsets"] = [end - 4 for end in word["data_offsets"]]' \
    "tensor 'embeddings.word_embeddings.weight' overlaps 'embeddings.token_type_embeddings.weight'"
bad weights 'word["data_offsets"] = [2**62, 2**62 + 21744]' "does not lie in the file's"
bad weights 'word["data_offsets"] = [21744, 0]' "'embeddings.word_embeddings.weight.data_offsets'"
bad weights 'word["data_offsets"] = [-1, 21743]' "number 0 is negative"
bad weights 'word["shape"] = [36, 151]' "has shape [36, 151], config.json asks for [151, 36]"
bad weights 'word["shape"] = [151 * 36]' "has shape [5436], config.json asks for [151, 36]"
bad weights 'word["shape"] = [2**40, 2**40]' "has more elements than can be counted"
bad weights 'word["dtype"] = "I32"' "tensor 'embeddings.word_embeddings.weight' is I32; F32, F16, BF16 or F64 is needed"
bad weights 'word["dtype"] = "F8"' "'F8' is no dtype that is known here"
bad weights 'header["x"] = header.pop("embeddings.word_embeddings.weight")' \
    "tensor bert.embeddings.word_embeddings.weight is missing"
for value in nan inf -inf; do
    bad weights "put_float(body, word, 10, float('$value'))" \
        "model/model.safetensors: tensor embeddings.word_embeddings.weight, element 10 is not a finite number" 5
done
for size in 0 5; do
    fresh_model && truncate -s $size model/model.safetensors
    refused 1 "$size bytes; a safetensors file has at least 8" --train train.tsv
    expect 1 "$LOCKSTEP" inspect model
    says err.txt "$size bytes; a safetensors file has at least 8"
done

# --- tokenizer ---------------------------------------------------------------------------------------
for token in CLS SEP UNK; do
    fresh_model && rm model/tokenizer.json && sed -i "/\[$token\]/d" model/vocab.txt
    refused 1 "model/vocab.txt: the vocabulary has no special token \"[$token]\"" --train train.tsv
done
fresh_model && python3 -c '
import json
tokenizer = json.load(open("model/tokenizer.json"))
del tokenizer["model"]["vocab"]["[UNK]"]
json.dump(tokenizer, open("model/tokenizer.json", "w"))'
refused 1 'model/tokenizer.json: the vocabulary has no special token "[UNK]"' --train train.tsv
fresh_model && echo '[1, 2' >model/tokenizer.json
refused 1 "model/tokenizer.json: " --train train.tsv

# A model without a head answers no questions.
fresh_model
expect 1 "$LOCKSTEP" evaluate --model model --data train.tsv
says err.txt "this model has no classification head" "fine-tune it first"
expect 1 "$LOCKSTEP" predict --model model --data train.tsv
says err.txt "this model has no classification head"
