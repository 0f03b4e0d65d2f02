"""A group of dialogues for the Tinker cookbook: needs the extra `tinker`.

Words stand in the place of what Tinker samples, so no key is asked for.
"""

import asyncio

from dialgym.bridges import tinker
from dialgym.optional import check_installed

check_installed("tinker", "this example", "tinker_cookbook")
from tinker_cookbook.completers import TokenCompleter, TokensWithLogprobs
from tinker_cookbook.rl.data_processing import trajectory_to_data
from tinker_cookbook.rl.rollouts import do_group_rollout

WORDS = ("quiet", "crisp", "level", "habit", "usage", "power")


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


class Words(TokenCompleter):
    """Samples the same word for each turn of both members."""

    async def __call__(self, model_input, stop, *, max_tokens=None):
        turn = Characters().decode(model_input.to_ints()).count("assistant: ") - 1
        ids = Characters()(f"{WORDS[turn]}\0")["input_ids"]
        return TokensWithLogprobs(ids, [-0.1] * len(ids))


(group,) = tinker.groups("Wordle-20-v0", Characters(), count=1, size=2, seed=3)
rollout = asyncio.run(do_group_rollout(group, Words()))
for trajectory in rollout.trajectories_G:
    last = trajectory.transitions[-1]
    print(Characters().decode(last.ob.to_ints() + last.ac.tokens), last.logs["heard"])
    print([step.reward for step in trajectory.transitions], trajectory.stop_reason, last.metrics)
(datum,) = trajectory_to_data(rollout.trajectories_G[0], 1.0)
inputs = datum.loss_fn_inputs
own = inputs["target_tokens"].to_torch()[inputs["mask"].to_torch() > 0].tolist()
print("trained on:", Characters().decode(own))
