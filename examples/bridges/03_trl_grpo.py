"""Rollouts of TRL's GRPOTrainer on our tasks: needs the extra `trl`.

A trainer takes `prompts` and `rollout_func` as they are (README, "Train a language model"); here the
function is called by hand, with words in the place of what a model samples, to show what it gives.
"""

from types import SimpleNamespace

import tokenizers
from transformers import PreTrainedTokenizerFast

from dialgym.bridges import trl as door

ID = "Wordle-20-v0"
characters = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
trainer = tokenizers.trainers.BpeTrainer(
    special_tokens=["<unk>", "<start>", "<end>"], initial_alphabet=alphabet, show_progress=False
)
characters.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
characters.decoder = tokenizers.decoders.ByteLevel()
characters.train_from_iterator([], trainer)
tokenizer = PreTrainedTokenizerFast(tokenizer_object=characters, eos_token="<end>")
tokenizer.chat_template = (
    "{% for m in messages %}<start>{{ m.role }}: {{ m.content }}<end>{% endfor %}"
    "{% if add_generation_prompt %}<start>assistant: {% endif %}"
)
words = iter([["quiet", "level"], ["heard", "crisp"]])  # of two dialogues, two rounds


def generate(trainer, prefixes, longest):
    """What a model would sample after the prefixes, and its log-probabilities."""
    ids = [[*tokenizer(word)["input_ids"], tokenizer.eos_token_id] for word in next(words)]
    return ids, [[-0.1] * len(turn) for turn in ids]


group = [door.prompts(ID, 1, seed=3)[0]["prompt"]] * 2  # TRL repeats a prompt for its group
args = SimpleNamespace(max_completion_length=80)
columns = door.rollout_func(ID, max_new_tokens=10, generate=generate, turns=2)
