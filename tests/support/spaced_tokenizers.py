"""Small Hugging Face tokenizers that write a space before each text, each in another way."""

import string

import tokenizers
import transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

SPACE = "\u2581"
LETTERS = [SPACE, *string.ascii_letters, *string.punctuation, *string.digits]


def byte_level():
    """As of RoBERTa: what it decodes begins with the space."""
    core = tokenizers.Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return core, trainers.BpeTrainer(initial_alphabet=alphabet, **OPTIONS)


def sentence_piece():
    """As of Llama 2: a normalizer puts the space there, the decoder takes it away."""
    core = tokenizers.Tokenizer(models.BPE(unk_token="<unk>"))
    space = normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)
    core.normalizer = normalizers.Sequence([*space])
    core.pre_tokenizer = pre_tokenizers.Split(SPACE, "merged_with_next")
    parts = decoders.Replace(SPACE, " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)
    core.decoder = decoders.Sequence([*parts])
    return core, trainers.BpeTrainer(initial_alphabet=LETTERS, **OPTIONS)


def unigram():
    """As of T5: the space is a token of its own where no piece begins with it."""
    core = tokenizers.Tokenizer(models.Unigram())
    core.pre_tokenizer, core.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    return core, trainers.UnigramTrainer(unk_token="<unk>", initial_alphabet=LETTERS, **OPTIONS)


OPTIONS = {"special_tokens": ["<unk>", "</s>"], "vocab_size": 320, "show_progress": False}
KINDS = {"byte level": byte_level, "sentence piece": sentence_piece, "unigram": unigram}
TEXTS = ["is it alive?", "crane slate quiet", "there is a metal lamp", "user assistant"] * 9


def spaced(kind):
    """A tokenizer of one of `KINDS`."""
    core, trainer = KINDS[kind]()
    core.train_from_iterator(TEXTS, trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="<unk>", eos_token="</s>"
    )
