"""Stored dialogues of the toy token task, and what the tests of utterance-level agents share."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import torch
from stable_baselines3.common.env_util import make_vec_env

from dialgym.datasets import TokenData
from dialgym.language.tokenizers import END, FIRST_TEXT, TAGS
from tests.support.toy_tokens import TOKENIZER, Echo


def echo(turns: int = 2, said: int = 1, rows: int = 1):
    return make_vec_env(lambda: Echo(turns, said), rows)


def dialogues(count: int, turns: int = 2, said: int = 1, seed: int = 0) -> TokenData:
    """Random letters said in `Echo`, and what they earned; whole dialogues, ended by the rules."""
    rng, env = np.random.default_rng(seed), Echo(turns, said)
    rows, own, rewards = [], [], []
    for episode in range(count):
        env.reset(seed=seed + episode)
        acted, earned, done = {}, {}, False
        while not done:
            place = len(env.tokens)
            going_on = len(env.utterance) < said
            action = int(rng.integers(FIRST_TEXT, TOKENIZER.vocab_size)) if going_on else END
            _, reward, done, _, _ = env.step(action)
            acted[place], earned[place] = True, reward
        places = range(len(env.tokens))
        rows.append(env.tokens)
        own += [place in acted for place in places]
        rewards += [earned.get(place, 0.0) for place in places]
    layout = SimpleNamespace(
        window=env.observation_space.window,
        tokenizer=TOKENIZER,
        party="system",
        tag=TAGS["system"],
        limit=lambda party: said + 1,
        said_limit=said + 1,
    )
    return TokenData(
        layout,  # type: ignore[arg-type]
        np.concatenate(rows).astype(np.int32),
        np.array(own),
        np.array(rewards, np.float32),
        np.cumsum([0, *map(len, rows)]),
        np.ones(count, bool),
        np.zeros(count, bool),
    )


def mean_losses(model, dialogues, most_tokens=None):
    """Means of loss and metrics over stored dialogues; the gradient is that of all batches."""
    sequences = model.read(dialogues)
    count = int(sequences.columns[model.averaged_over].sum())
    return model.updater.backward(model.loss, model.batches(sequences, most_tokens), count)


def randomised(model):
    """Heads and targets that differ, so that no term of a loss vanishes."""
    torch.manual_seed(1)
    policy = model.policy
    for module in (policy.q_heads, policy.target_q_heads, policy.value_head):
        for weight in module.parameters():
            torch.nn.init.normal_(weight, std=0.3)
    if policy.target_backbone is not None:
        for network in (policy.target_backbone, policy.value_backbone):
            network.reset_parameters()
    return model
