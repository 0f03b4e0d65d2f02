"""Beams and ranked samples, said token by token."""

import numpy as np
import pytest
import torch
from stable_baselines3.common.evaluation import evaluate_policy

from agents import BC, ILQL
from agents.decoding.beams import beam_search
from agents.decoding.generation import read_prompts, sample_utterances
from agents.policies.speakers import BeamSpeaker, RankedSpeaker, summed_advantages
from agents.policies.utterance import numbers
from dialgym.language.tokenizers import END, FIRST_TEXT
from tests.support.toy_dialogues import dialogues, echo, randomised
from tests.support.toy_tokens import SYSTEM, USER, V

SMALL = {"n_layer": 2, "n_head": 2, "n_embd": 16}


def ilql(**policy) -> ILQL:
    kwargs = {**SMALL, "decoding": {"beta": 1.0}, **policy}
    model = randomised(ILQL("GPTPolicy", echo(said=2), None, policy_kwargs=kwargs))
    torch.nn.init.normal_(model.policy.backbone.wte.weight)
    return model


def prompts() -> list[list[int]]:
    return [[USER, letter, END, SYSTEM] for letter in range(FIRST_TEXT, V)]


def observations(rows) -> np.ndarray:
    obs = np.zeros((len(rows), 14), np.int32)
    for row, prompt in zip(obs, rows, strict=True):
        row[: len(prompt)] = prompt
    return obs


def say(speaker, rows) -> list[list[int]]:
    """Three tokens a row, as an env asks for them."""
    rows = [list(row) for row in rows]
    for _ in range(3):
        said = speaker.predict(observations(rows), deterministic=True)[0]
        rows = [[*row, int(token)] for row, token in zip(rows, said, strict=True)]
    return [row[-3:] for row in rows]


def test_a_beam_is_said_and_a_narrow_one_is_the_models_own_greed():
    model = ilql()
    read = read_prompts(model.policy, torch.as_tensor(observations(prompts())), None)
    found = beam_search(model.policy, read, 16)
    expected = found.tokens[:, 0].tolist()
    assert [row[:3] for row in expected] == say(BeamSpeaker(model, 16), prompts())
    alone = BeamSpeaker(model, 16)
    obs = observations(prompts())[0]
    assert alone.predict(obs)[0] == expected[0][0]
    assert say(BeamSpeaker(model, 1), prompts()) == say(model, prompts())


@pytest.mark.parametrize("weights", [(1.0, 0.0), (0.5, 2.0)])
def test_the_best_by_summed_advantages_and_log_probability_is_said(weights):
    model = ilql()
    policy = model.policy
    read = read_prompts(policy, torch.as_tensor(observations(prompts())))
    with torch.no_grad():
        drawn = sample_utterances(policy, read, 6, numbers(read, 6), keep_hidden=True)
        sums = summed_advantages(policy, read, drawn)
        best = []
        for row, prompt in enumerate(prompts()):
            ranks = []
            for j in range(6):
                said, total = drawn.tokens[row, j, : drawn.lengths[row, j]].tolist(), 0.0
                for i, token in enumerate(said):
                    hidden = policy.backbone(torch.tensor([[*prompt, *said[:i]]]))[0, -1]
                    lesser = min(head(hidden)[token].item() for head in policy.target_q_heads)
                    total += lesser - policy.value_head(hidden).item()
                assert sums[row, j].item() == pytest.approx(total, abs=1e-4)
                ranks.append(weights[0] * total + weights[1] * drawn.log_prob[row, j].item())
            best.append(drawn.tokens[row, int(np.argmax(ranks)), :3].tolist())
    assert say(RankedSpeaker(model, 6, *weights), prompts()) == best


def test_what_lies_beyond_an_utterance_counts_for_nothing():
    model = ilql()
    read = read_prompts(model.policy, torch.as_tensor(observations(prompts())))
    drawn = sample_utterances(model.policy, read, 4, keep_hidden=True)
    longer = drawn._replace(
        tokens=torch.nn.functional.pad(drawn.tokens, (0, 2), value=FIRST_TEXT),
        hidden=torch.nn.functional.pad(drawn.hidden, (0, 0, 0, 2), value=1.0),
    )
    sums = [summed_advantages(model.policy, read, said) for said in (drawn, longer)]
    torch.testing.assert_close(*sums)


def test_a_speaker_is_evaluated_like_a_model():
    model = BC("GPTPolicy", echo(said=2), dialogues(20, said=2), policy_kwargs=SMALL)
    mean, _ = evaluate_policy(BeamSpeaker(model, 3, 3), echo(said=2, rows=4), 8, warn=False)
    assert 0 <= mean <= 2


def test_an_agent_without_values_of_tokens_is_one_clear_error():
    model = BC("GPTPolicy", echo(), dialogues(20), policy_kwargs=SMALL)
    with pytest.raises(ValueError, match="RankedSpeaker: expected an agent with values of tokens"):
        RankedSpeaker(model)
    with pytest.raises(ValueError, match="on the policy's own trunk"):
        RankedSpeaker(ilql(share_features_extractor=False))
