"""ILQL of whole utterances: losses against slow versions, and utterances chosen and then said."""

import numpy as np
import pytest
import torch
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import Logger

import dialgym
from agents import UtteranceILQL
from agents.buffers.stored import utterances_of
from agents.decoding.generation import read_prompts, sample_utterances
from agents.policies.utterance import Plans, numbers
from dialgym.language.tokenizers import END, FIRST_TEXT, TAGS
from tests.support.by_day import by_day
from tests.support.resuming import assert_comes_back
from tests.support.toy_dialogues import dialogues, echo, mean_losses, randomised
from tests.support.toy_tokens import SYSTEM, USER, V
from tests.support.word_games import ID, SMALL, assert_two_parts_are_one_run, learner

OWN_TRUNK = {"share_features_extractor": False}


def made(games=None, policy=None, **settings):
    return learner(UtteranceILQL, games, policy, **settings)


def cut_batch(games):
    """Six dialogues with rewards at every token, of which two were cut off."""
    data = games.tokens().with_token_rewards(0.25)
    batch = data.batch(np.arange(6), trim=True)
    cut = np.array([False, True, False, True, False, False])
    return batch._replace(truncated=cut, terminated=~cut)


def spans(batch, row):
    """Of a dialogue, where each utterance of the learner begins and ends (exclusive)."""
    own = np.flatnonzero(batch.is_action[row])
    first = [p for p in own if p - 1 not in own]
    return [(p, next(q for q in range(p, 999) if q not in own)) for p in first]


def whole_row(batch, row):
    tokens = batch.tokens[row, : batch.lengths[row]].tolist()
    return [*tokens, TAGS["system"]] if batch.truncated[row] else tokens


def test_places_stand_before_tokens_and_after_utterances(games):
    batch = cut_batch(games)
    sequences = utterances_of(batch, torch.device("cpu"), TAGS["system"], 999)
    columns = {name: values.tolist() for name, values in sequences.columns.items()}
    found = list(zip(sequences.places.tolist(), *columns.values(), strict=True))
    expected = []
    for row in range(6):
        utterances = spans(batch, row)
        for i, (p, q) in enumerate(utterances):
            for place in range(p, q):
                expected.append(
                    (place - 1, batch.tokens[row, place], 0.0, True, place == p, False, True)
                )
            more = i + 1 < len(utterances) or bool(batch.truncated[row])
            expected.append((q - 1, 0, batch.reward[row, p:q].sum(), False, False, True, more))
        if batch.truncated[row]:
            expected.append((batch.lengths[row], 0, 0.0, False, True, False, False))
    assert list(columns) == ["actions", "rewards", "is_action", "begins", "ends", "not_done"]
    assert [e[:2] + e[3:] for e in found] == [e[:2] + e[3:] for e in expected]
    assert [e[2] for e in found] == pytest.approx([e[2] for e in expected])
    assert sequences.tokens.shape[1] == max(sequences.lengths)


def slow_losses(model, batch):
    """Means of the losses, utterance by utterance and token by token, each read from the start."""
    policy = model.policy
    q_loss, v_loss, policy_loss, qs, vs = [], [], [], [], []

    def read(tokens):
        tokens = torch.tensor([tokens], dtype=torch.int64)
        hidden = value_hidden = slow = policy.backbone(tokens)[0, -1]
        if policy.value_backbone is not None:
            value_hidden = policy.value_backbone(tokens)[0, -1]
            slow = policy.target_backbone(tokens)[0, -1]
        return hidden, value_hidden, slow

    for row in range(len(batch.tokens)):
        tokens, utterances = whole_row(batch, row), spans(batch, row)
        for i, (p, q) in enumerate(utterances):
            _, after, slow = read(tokens[:q])
            _, before, _ = read(tokens[:p])
            target = float(batch.reward[row, p:q].sum())
            if i + 1 < len(utterances):
                target += (
                    model.gamma * policy.value_head(read(tokens[: utterances[i + 1][0]])[1]).item()
                )
            elif batch.truncated[row]:
                target += model.gamma * policy.value_head(read(tokens)[1]).item()
            both = [head(after)[0] for head in policy.q_heads]
            q_loss.append(sum((value - target) ** 2 for value in both))
            value = policy.value_head(before)[0]
            error = min(head(slow).item() for head in policy.target_q_heads) - value
            v_loss.append((model.expectile if error > 0 else 1 - model.expectile) * error**2)
            qs.append(sum(both) / 2)
            vs.append(value)
            for place in range(p, q):
                logits = policy.policy_head(read(tokens[:place])[0])
                if policy.masker is not None:
                    automaton = policy.observation_space.automaton
                    allowed = automaton.allowed[automaton.walk(tokens[p:place])]
                    logits = logits.masked_fill(~torch.tensor(allowed), -torch.inf)
                policy_loss.append(-logits.log_softmax(-1)[tokens[place]])
    means = [torch.stack(list(x)).mean() for x in (q_loss, v_loss, policy_loss, qs, vs)]
    loss = model.q_weight * means[0] + model.v_weight * means[1] + model.policy_weight * means[2]
    names = ("loss", "q_loss", "v_loss", "policy_loss", "q", "v")
    return dict(zip(names, [loss, *means], strict=True))


@pytest.mark.parametrize("policy", [{}, {**OWN_TRUNK, "mask": False}])
def test_losses_and_gradients_are_those_of_a_slow_version(policy, games):
    settings = {"q_weight": 0.5, "v_weight": 2.0, "policy_weight": 0.7, "expectile": 0.9}
    model = randomised(made(games, policy, gamma=0.8, **settings))
    batch = cut_batch(games)
    expected = slow_losses(model, batch)
    expected["loss"].backward()
    wanted = {n: p.grad.clone() for n, p in model.policy.named_parameters() if p.grad is not None}
    model.policy.zero_grad()
    found = mean_losses(model, batch, most_tokens=100)
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value.item(), rel=1e-4), name
    for name, weight in model.policy.named_parameters():
        assert (weight.grad is not None) == (name in wanted), name
        if name in wanted:
            torch.testing.assert_close(weight.grad, wanted[name], atol=2e-5, rtol=1e-3)


# Speaking


def observations(*prompts):
    rows = np.zeros((len(prompts), 14), np.int32)
    for row, prompt in zip(rows, prompts, strict=True):
        row[: len(prompt)] = prompt
    return rows


@pytest.mark.parametrize("policy", [{}, OWN_TRUNK])
@pytest.mark.parametrize("weight", [0.0, 3.0])
def test_it_says_the_best_of_its_candidates(policy, weight):
    kwargs = {**SMALL, **policy, "decoding": {"candidates": 6, "log_prob_weight": weight}}
    model = randomised(UtteranceILQL("GPTPolicy", echo(said=2), None, policy_kwargs=kwargs, seed=0))
    torch.nn.init.normal_(model.policy.backbone.wte.weight)
    prompts = [[USER, letter, END, SYSTEM] for letter in range(FIRST_TEXT, V)]
    obs = torch.as_tensor(observations(*prompts))
    with torch.no_grad():
        read = read_prompts(model.policy, obs)
        drawn = sample_utterances(model.policy, read, 6, numbers(read, 6))
        for row, prompt in enumerate(prompts):
            worth = []
            for j in range(6):
                said = drawn.tokens[row, j, : drawn.lengths[row, j]].tolist()
                trunk = model.policy.target_backbone or model.policy.backbone
                hidden = trunk(torch.tensor([[*prompt, *said]]))[0, -1]
                q = min(head(hidden).item() for head in model.policy.target_q_heads)
                worth.append(q + weight * drawn.log_prob[row, j].item())
            best = drawn.tokens[row, int(np.argmax(worth))].tolist()
            assert say(model, prompt) == best[: best.index(END) + 1]


def test_what_masks_forbid_is_not_said_whatever_was_planned():
    kwargs = {**SMALL, "decoding": {"candidates": 4}}
    model = randomised(UtteranceILQL("GPTPolicy", echo(said=2), None, policy_kwargs=kwargs, seed=0))
    obs = observations(*[[USER, letter, END, SYSTEM] for letter in range(FIRST_TEXT, V)])
    free, _ = model.predict(obs, deterministic=True)
    masks = np.ones((len(obs), V), bool)
    masks[0, free[0]] = False
    found, _ = model.predict(obs, deterministic=True, action_masks=masks)
    assert found[0] != free[0]
    assert masks[np.arange(len(obs)), found].all()
    np.testing.assert_array_equal(found[1:], free[1:])


def say(model, prompt, deterministic=True):
    """An utterance token by token, as an env asks for it."""
    said = []
    while not said or said[-1] != END:
        obs = observations([*prompt, *said])
        said.append(int(model.predict(obs, deterministic=deterministic)[0][0]))
    return said


def test_the_same_observation_gives_the_same_utterance_in_any_batch():
    model = randomised(UtteranceILQL("GPTPolicy", echo(said=2), None, policy_kwargs=SMALL, seed=0))
    prompts = [[USER, letter, END, SYSTEM] for letter in range(FIRST_TEXT, V)]
    prompts[0] = [USER, FIRST_TEXT, FIRST_TEXT, END, SYSTEM]
    alone = [say(model, prompt) for prompt in prompts]
    rows = [list(prompt) for prompt in prompts]
    for _ in range(3):
        actions = model.predict(observations(*rows), deterministic=True)[0]
        rows = [[*row, int(action)] for row, action in zip(rows, actions, strict=True)]
    assert [row[len(p) :] for row, p in zip(rows, prompts, strict=True)] == alone
    assert [say(model, prompt) for prompt in prompts] == alone
    torch.manual_seed(0)
    assert len({tuple(say(model, prompts[0], deterministic=False)) for _ in range(20)}) > 1


def test_a_plan_is_made_once_and_again_where_observations_leave_it():
    asked, plans = [], Plans()

    def choose(tokens, rows):
        asked.append(rows.tolist())
        said = np.tile([5, 6, END], (len(rows), 1))
        return said, np.full(len(rows), 3)

    def step(*prompts):
        return plans.next_tokens(torch.as_tensor(observations(*prompts)), None, choose).tolist()

    a, b = [USER, 7, END, SYSTEM], [USER, 8, 8, END, SYSTEM]
    assert step(a, b) == [5, 5]
    assert step([*a, 5], [*b, 5]) == [6, 6]
    assert asked == [[0, 1]]
    assert step([*a, 5, 6], [*b, 7, 6]) == [END, 5]  # the second was told to have said another
    assert asked[1:] == [[1]]
    assert step([*a, 5, 6, END], b) == [5, 5]  # the first plan is over, the second row was reset
    assert asked[2:] == [[0, 1]]
    assert step([*a, 5, 6, END], [*b, 5]) == [5, 6]  # the first is asked once more
    assert asked[3:] == [[0]]
    assert plans.next_tokens(torch.as_tensor(observations(a, b)), 1, choose).tolist() == [5, 5]
    assert step([*a, 5, 6, END, 5], [*b, 5, 6]) == [6, END]  # other plans were left alone
    assert asked[4:] == [[0, 1]]


def choices_of(model):
    """Of how many prompts each later call of `best_of` chooses an utterance."""
    calls, best_of = [], model.policy.best_of
    model.policy.best_of = lambda prompts, *rest: (
        calls.append(len(prompts)) or best_of(prompts, *rest)
    )
    return calls


def test_only_rows_without_a_plan_are_thought_about():
    model = randomised(UtteranceILQL("GPTPolicy", echo(said=2), None, policy_kwargs=SMALL, seed=0))
    calls = choices_of(model)
    evaluate_policy(model, echo(turns=2, said=2, rows=3), 3)
    assert calls == [3, 3]


def test_learning_makes_plans_void(games):
    model = made(games)
    obs = dialgym.sb3_vec_env(ID, 2, seed=0).reset()
    calls = choices_of(model)
    for learn in (False, False, True):
        if learn:
            model.learn(1)
        said = model.predict(obs, deterministic=True)[0]
        obs[np.arange(2), (obs != 0).sum(1)] = said
    assert calls == [2, 2]


# In Stable-Baselines3's shape


@pytest.mark.parametrize("policy", by_day([{}, OWN_TRUNK], {}))
def test_a_run_in_two_parts_is_the_same_as_one(policy, games, tmp_path):
    assert_two_parts_are_one_run(lambda: made(games, policy), games, tmp_path)


def test_a_saved_agent_speaks_as_before(games, tmp_path):
    model = made(games)
    assert model.policy.decoding.max_tokens == games.tokens().layout.limit("system")
    model.learn(2)
    model.policy.decoding.candidates = 3
    assert "decoding" not in model.policy_kwargs
    loaded = assert_comes_back(model, tmp_path / "model.zip")
    assert loaded.policy.decoding == model.policy.decoding
    mean, _ = evaluate_policy(loaded, dialgym.sb3_vec_env(ID, 4, seed=1), 4)
    assert -6 <= mean <= 0


def test_targets_follow_slowly(games):
    model = made(games, tau=0.25)
    before = [w.clone() for w in model.policy.target_q_heads.parameters()]
    model.set_logger(Logger(None, []))
    model.gradient_step(model.sampler.rows(0))
    for old, slow, fast in zip(
        before,
        model.policy.target_q_heads.parameters(),
        model.policy.q_heads.parameters(),
        strict=True,
    ):
        torch.testing.assert_close(slow, 0.75 * old + 0.25 * fast)


def test_it_learns_from_random_utterances_to_say_good_ones():
    kwargs = {"n_layer": 1, "n_head": 2, "n_embd": 32, "decoding": {"candidates": 12}}
    settings = {"learning_rate": 3e-3, "batch_size": 32, "tau": 0.05, "policy_kwargs": kwargs}
    model = UtteranceILQL("GPTPolicy", echo(), dialogues(400), seed=0, **settings).learn(200)
    mean, _ = evaluate_policy(model, echo(rows=50), 100)
    assert mean > 1.6  # of 2; random letters earn 0.5
