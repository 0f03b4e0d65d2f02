"""Tiny random sequence classifiers of several kinds, saved as folders."""

from pathlib import Path
from typing import Any

SPECIAL = ["<s>", "</s>", "<pad>", "<unk>", "[CLS]", "[SEP]", "[PAD]", "[UNK]"]
WORDS = [*SPECIAL, *"abcdefghij"]
WINDOWS = {"bert": 27, "roberta": 27, "gpt2": 24}
"""Room for 24 words of a pair; that it is even leaves nothing open where both sides are cut."""


def tokenizer(kind: str, window: int) -> Any:
    """A tokenizer of whole words, with the special tokens of its kind."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    vocabulary = {word: i for i, word in enumerate(WORDS)}
    bert = kind == "bert"
    unknown = "[UNK]" if bert else "<unk>"
    words = Tokenizer(models.WordLevel(vocabulary, unk_token=unknown))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    names = {"bert": ("[CLS]", "[SEP]"), "roberta": ("<s>", "</s>")}
    if kind in names:
        first, last = names[kind]
        words.post_processor = processors.TemplateProcessing(
            single=f"{first} $A {last}",
            pair=f"{first} $A {last} $B:1 {last}:1",
            special_tokens=[(first, vocabulary[first]), (last, vocabulary[last])],
        )
    inputs = ["input_ids", *(["token_type_ids"] if bert else []), "attention_mask"]
    special = {"bert": {"pad_token": "[PAD]"}, "roberta": {"pad_token": "<pad>"}}.get(kind, {})
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token=unknown, eos_token=None if bert else "</s>",
        model_max_length=window, model_input_names=inputs, **special,
    )  # fmt: skip


def save(
    folder: Path, kind: str = "bert", labels: tuple[str, ...] = ("LABEL_0",), multi: bool = False
) -> str:
    """A random model of a kind: ``bert``, ``roberta`` (positions from behind the padding) or
    ``gpt2`` (no padding token)."""
    import torch
    import transformers

    torch.manual_seed(0)
    window = WINDOWS[kind]
    made = tokenizer(kind, 10**6 if kind == "roberta" else window)
    shape = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    wide = {"intermediate_size": 32, "vocab_size": len(WORDS)}
    many = {"id2label": dict(enumerate(labels)), "label2id": {n: i for i, n in enumerate(labels)}}
    if multi:
        many["problem_type"] = "multi_label_classification"
    if kind == "bert":
        config = transformers.BertConfig(
            **shape, **wide, **many, pad_token_id=6, max_position_embeddings=64
        )
    elif kind == "roberta":
        config = transformers.RobertaConfig(
            **shape, **wide, **many, pad_token_id=2, max_position_embeddings=window + 3
        )
    else:
        config = transformers.GPT2Config(
            n_embd=16, n_layer=2, n_head=2, n_positions=window, vocab_size=len(WORDS), **many
        )
        config.pad_token_id = None
    model = transformers.AutoModelForSequenceClassification.from_config(config)
    for parameter in model.parameters():  # so that outputs differ by more than rounding
        parameter.data += 0.3 * torch.randn_like(parameter)
    model.save_pretrained(folder)
    made.save_pretrained(folder)
    return str(folder)
