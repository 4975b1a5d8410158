#!/usr/bin/env python3
"""Write the two tiny random models of tests/data: a BERT without a head, a DistilBERT with one.

Usage: make_tiny_models.py [TESTS/DATA]

Both are complete Hugging Face folders (configuration, weights, tokenizer), small enough for the
source tree and awkward on purpose: head and feed-forward sizes that fill no vector register, layer
norms and biases that are random instead of one and zero, an integer tensor that a loader must skip.
"""

import json
import pathlib
import sys

import torch
import transformers
from safetensors.torch import save_file

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = (
    "the of and to in a is it that was for on with as be at by this have from or not are but "
    "film good bad story plot actor scene music time people world new old first last great poor "
    "funny dull boring bright dark long short well never always more less very too"
).split()
CASED_WORDS = (
    "The A It This Great Poor Paris Berlin the of and to in is that was for on with market team "
    "goal planet star price bank match cell player city country game science energy report"
).split()
PIECES = ["##s", "##ed", "##ing", "##ly", "##er", "##est", "##ness", "##able"]
PUNCTUATION = list(".,!?'\"-():;")


def unique(tokens):
    return list(dict.fromkeys(tokens))


def uncased_vocabulary():
    letters = list(LETTERS + "0123456789")
    continuations = ["##" + letter for letter in letters]
    return unique(SPECIAL + PUNCTUATION + letters + continuations + PIECES + WORDS + ["電", "影"])


def cased_vocabulary():
    letters = list(LETTERS + LETTERS.upper() + "é0123456789")
    continuations = ["##" + letter for letter in LETTERS + "é0123456789"]
    return unique(SPECIAL + PUNCTUATION + letters + continuations + PIECES + CASED_WORDS)


def write_tokenizer(folder, vocabulary, lower_case):
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    tokenizer = transformers.BertTokenizerFast(
        vocab={token: number for number, token in enumerate(vocabulary)},
        do_lower_case=lower_case,
        model_max_length=64,
    )
    tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    settings = {
        "cls_token": "[CLS]",
        "do_lower_case": lower_case,
        "mask_token": "[MASK]",
        "model_max_length": 64,
        "pad_token": "[PAD]",
        "sep_token": "[SEP]",
        "strip_accents": None,
        "tokenize_chinese_chars": True,
        "tokenizer_class": "BertTokenizer",
        "unk_token": "[UNK]",
    }
    write_json(folder / "tokenizer_config.json", settings)


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def random_weights(model, seed):
    """Spread wide enough that attention is far from uniform, so that no gradient is near zero."""
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    for name, value in sorted(model.state_dict().items()):
        noise = torch.randn(value.shape, generator=generator)
        if "embeddings" in name and value.dim() == 2:
            weights[name] = 0.5 * noise
        elif value.dim() == 2:
            weights[name] = noise * 1.4 / value.shape[1] ** 0.5
        elif name.endswith("norm.weight") or name.endswith("LayerNorm.weight"):
            weights[name] = 1 + 0.2 * noise
        else:
            weights[name] = 0.2 * noise
    return {name: value.contiguous() for name, value in weights.items()}


def make_bert():
    vocabulary = uncased_vocabulary()
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=36,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=52,
        max_position_embeddings=64,
        type_vocab_size=2,
        architectures=["BertModel"],
    )
    model = transformers.BertModel(config)
    weights = random_weights(model, 20240501)
    # Older checkpoints carry this integer tensor; it is no weight.
    weights["embeddings.position_ids"] = torch.arange(64).unsqueeze(0)
    return vocabulary, True, config, weights


def make_distilbert():
    vocabulary = cased_vocabulary()
    labels = ["business", "science", "sport", "world"]
    config = transformers.DistilBertConfig(
        vocab_size=len(vocabulary),
        dim=32,
        n_layers=2,
        n_heads=2,
        hidden_dim=64,
        max_position_embeddings=64,
        architectures=["DistilBertForSequenceClassification"],
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
    )
    model = transformers.DistilBertForSequenceClassification(config)
    return vocabulary, False, config, random_weights(model, 20240502)


def main():
    here = pathlib.Path(__file__).resolve().parent
    data = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here.parents[1] / "tests" / "data"
    for name, make in (("tiny-bert", make_bert), ("tiny-distilbert", make_distilbert)):
        folder = data / name
        folder.mkdir(parents=True, exist_ok=True)
        vocabulary, lower_case, config, weights = make()
        write_tokenizer(folder, vocabulary, lower_case)
        settings = {key: value for key, value in config.to_dict().items() if value is not None}
        if "classifier.weight" not in weights:
            del settings["id2label"], settings["label2id"]
        write_json(folder / "config.json", dict(sorted(settings.items())))
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        (folder / "model.safetensors").chmod(0o644)
        parameters = sum(value.numel() for value in weights.values() if value.is_floating_point())
        print(f"{folder}: {len(vocabulary)} tokens, {parameters} parameters")


if __name__ == "__main__":
    main()
