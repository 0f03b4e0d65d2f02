"""A dialogue as an agent loop of verl, whose rows need no library: the loop needs `verl`.

verl is in no extra, as it does not install on every Python. Words stand in the place of what its
server samples.
"""

import asyncio
import sys
from importlib.util import find_spec
from types import SimpleNamespace

from dialgym.bridges import verl


class Characters:
    """A tokenizer of characters, in the form of Hugging Face's."""

    all_special_tokens, all_special_ids = ["\0"], [0]

    def __call__(self, text, **options):
        return {"input_ids": [ord(letter) for letter in text]}

    def decode(self, ids, skip_special_tokens=True):
        return "".join([chr(i) for i in ids if i or not skip_special_tokens])

    def apply_chat_template(self, messages, add_generation_prompt=False, **options):
        lines = [f"{message['role']}: {message['content']}\0\n" for message in messages]
        return "".join(lines) + "assistant: " * add_generation_prompt


class Server:
    """Samples a word after the other, in the form of verl's client of its servers."""

    def __init__(self):
        self.words = iter(["quiet", "crisp", "stock"])

    async def generate(self, request_id, *, prompt_ids, sampling_params, **others):
        ids = Characters()(next(self.words))["input_ids"]
        told = {"log_probs": [-0.1] * len(ids), "stop_reason": "completed", "extra_fields": {}}
        return SimpleNamespace(token_ids=ids, **told)


(row,) = verl.rows("Wordle-20-v0", 1, seed=3)  # for a parquet file: Dataset.from_list(rows)
for message in row["prompt"]:
    print(f"{message['role']}: {message['content']}")
print({name: value for name, value in row.items() if name != "prompt"})

if find_spec("verl") is None:
    print("verl is not installed: no agent loop is run.")
    sys.exit()

lengths = SimpleNamespace(prompt_length=2000, response_length=52)
config = SimpleNamespace(actor_rollout_ref=SimpleNamespace(rollout=lengths))
loop = verl.DialogueLoop(
    SimpleNamespace(config=config), Server(), Characters(), SimpleNamespace(config={})
)
output = asyncio.run(loop.run({"temperature": 1.0, "logprobs": True}, **row))
letters = zip(Characters().decode(output.response_ids, False), output.response_mask)
print("".join([f"[{letter}]" if own else letter for letter, own in letters]))
print(output.reward_score, output.extra_fields["turn_scores"])
