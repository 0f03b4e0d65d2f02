"""GRPO of TRL on dialogues: needs the extra `trl`. Give the name of a chat model to train it.

Without one, words stand in the place of what a model samples, to show what the trainer gets.
"""

import sys
from types import SimpleNamespace

from dialgym.bridges import trl as door
from dialgym.optional import check_installed

check_installed("trl", "this example", "trl")
import tokenizers
from transformers import PreTrainedTokenizerFast
from trl import GRPOTrainer

ID = "Wordle-20-v0"


def train(name):
    """Train a chat model of the Hugging Face hub, or of a folder."""
    trainer = GRPOTrainer(
        name, door.returns, train_dataset=door.prompts(ID, 1000), rollout_func=door.rollout_func(ID)
    )
    trainer.train()


def characters():
    """A tokenizer of characters with a chat template."""
    letters = {chr(code): code for code in range(128)}
    core = tokenizers.Tokenizer(tokenizers.models.BPE({**letters, "<s>": 128, "<e>": 129}, []))
    core.decoder = tokenizers.decoders.Fuse()
    core.add_special_tokens(["<s>", "<e>"])
    made = PreTrainedTokenizerFast(tokenizer_object=core, bos_token="<s>", eos_token="<e>")
    made.chat_template = (
        "{% for m in messages %}<s>{{ m.role }}: {{ m.content }}<e>\n{% endfor %}"
        "{% if add_generation_prompt %}<s>assistant: {% endif %}"
    )
    return made


def show():
    """Print the rollouts of a group of two: what the model has said stands between brackets."""
    tokenizer, rounds = characters(), iter([["quiet", "level"], ["crisp", "stock"]])

    def generate(trainer, prefixes, longest):
        turns = [tokenizer(word)["input_ids"] for word in next(rounds)[: len(prefixes)]]
        return turns, [[-0.1] * len(turn) for turn in turns]

    trainer = SimpleNamespace(
        args=SimpleNamespace(max_completion_length=52),
        processing_class=tokenizer,
        chat_template_kwargs={},
    )
    group = [door.prompts(ID, 1, seed=3)[0]["prompt"]] * 2  # TRL repeats a prompt for its group
    rollout = door.rollout_func(ID, max_new_tokens=5, generate=generate)
    columns = rollout(group, trainer)
    print(tokenizer.decode(columns["prompt_ids"][0], skip_special_tokens=True))
    for ids, mask in zip(columns["completion_ids"], columns["env_mask"]):
        texts = [tokenizer.decode(token) for token in ids]
        print("".join([f"[{text}]" if own else text for text, own in zip(texts, mask)]))
    print(columns["returns"], columns["turn_rewards"])


if len(sys.argv) > 1:
    train(sys.argv[1])
else:
    show()
