"""Settings of speech for saved models, by every command; each result keeps them."""

import json

import numpy as np
import pytest
import torch
from stable_baselines3 import DQN, PPO

import agents
import dialgym
from agents import BC, ILQL, ActAgent, BeamSpeaker, RankedSpeaker, UtteranceILQL, with_decoding
from agents.decoding.sampling import Sampling
from agents.policies.value import Decoding
from dialgym.experiments import Result, benchmark
from tests.support.by_day import by_day
from tests.support.commands import fail, succeed
from tests.support.toy_dialogues import randomised

ID, ACTS = "dialgym/Wordle-20-v0", "dialgym/TwentyQuestions-8-act-v0"
SMALL = {"n_layer": 1, "n_head": 2, "n_embd": 16}


def untrained(kind, env_id=ID, **policy):
    """A model of random weights, whose dialogues depend on every setting."""
    name, size = ("GPTPolicy", SMALL) if env_id == ID else ("MlpPolicy", {})
    torch.manual_seed(0)
    return kind(name, dialgym.sb3_vec_env(env_id, 2), None, policy_kwargs={**size, **policy})


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Paths of saved models by name."""
    folder = tmp_path_factory.mktemp("models")
    models = {
        "ilql": randomised(untrained(ILQL)),
        "bc": untrained(BC, avoid_repeats=None),
        "utterances": randomised(untrained(UtteranceILQL)),
        "acts": untrained(BC, ACTS),
    }
    torch.nn.init.normal_(models["ilql"].policy.backbone.wte.weight)
    torch.nn.init.normal_(models["bc"].policy.backbone.wte.weight)
    for name, model in models.items():
        model.save(folder / name)
    return {name: str(folder / name) for name in models}


def said(policy, env_id=ID, **more):
    """The utterances of twelve dialogues, and the result."""
    result = dialgym.evaluate(policy, env_id, 12, (0,), record=True, **more)
    return [text for part in result[env_id].dialogues for text in part.turns.text], result


def by_hand(model, **settings):
    model.policy.decoding = Decoding(**settings)
    return model


def cautious(model):
    model.policy.config["avoid_repeats"] = 1e-6
    return model


CASES = {
    "beta": ({"beta": 4.0}, lambda m: by_hand(m, beta=4.0)),
    "tokens": ({"beta": 1, "policy_top_k": 2}, lambda m: by_hand(m, beta=1, policy_top_k=2)),
    "repeats": ({"avoid_repeats": 1e-6}, cautious),
    "beam": ({"beam": 3, "beta": 2.0}, lambda m: BeamSpeaker(by_hand(m, beta=2.0), 3)),
    "ranked": (
        {"candidates": 4, "log_prob_weight": 2.0},
        lambda m: RankedSpeaker(m, 4, log_prob_weight=2.0),
    ),
}


@pytest.mark.parametrize("case", by_day(CASES, "tokens", "repeats", "beam"))
def test_settings_are_those_set_by_hand(saved, case):
    settings, change = CASES[case]
    found, result = said(saved["ilql"], policy_kwargs=settings)
    expected, _ = said(change(agents.load(saved["ilql"], "cpu")), deterministic=True)
    plain, _ = said(saved["ilql"])
    assert found == expected != plain
    assert result.policy_kwargs == settings


def test_edges_are_what_is_known():
    model = randomised(untrained(ILQL, decoding={"beta": 3.0}, avoid_repeats=None))
    greedy, _ = said(model)
    assert said(with_decoding(model, beam=1))[0] == greedy
    clone, _ = said(by_hand(model))
    assert said(with_decoding(model, beta=0))[0] == clone != greedy


def test_what_is_of_drawing_is_drawn(saved):
    """Of a clone too, which takes its likeliest tokens else; a nucleus of one token is the same."""
    greedy, likeliest = said(saved["bc"])
    narrow, drawn = said(saved["bc"], policy_kwargs={"top_p": 1e-6})
    hot, _ = said(saved["bc"], policy_kwargs={"temperature": 1.0})
    assert narrow == greedy != hot
    assert (likeliest.name, drawn.name) == ("bc", "bc (drawn, top_p=1e-06)")
    cold, _ = said(saved["bc"], policy_kwargs={"temperature": 50.0}, deterministic=True)
    assert cold == greedy


def test_acts_take_settings_too(saved):
    greedy, _ = said(saved["acts"], ACTS)
    narrow, _ = said(saved["acts"], ACTS, policy_kwargs={"top_k": 1})
    hot, _ = said(saved["acts"], ACTS, policy_kwargs={"temperature": 5.0})
    assert narrow == greedy != hot
    agent = agents.load_speaker(saved["acts"], top_k=1)
    assert isinstance(agent, ActAgent)
    assert said(agent, ACTS)[0] == greedy
    values = randomised_acts()
    assert said(with_decoding(values, beta=9.0), ACTS)[0] != greedy
    assert values.policy.decoding.beta == 9


def randomised_acts():
    model = untrained(ILQL, ACTS)
    for weight in model.policy.q_heads.parameters():
        torch.nn.init.normal_(weight)
    return model


@pytest.mark.parametrize("kind", [BC, PPO])
def test_settings_add_up_and_a_file_keeps_them(kind, tmp_path):
    env = dialgym.sb3_vec_env(ID, 2)
    model = kind(agents.GPTPolicy, env, policy_kwargs=SMALL, device="cpu")
    with_decoding(with_decoding(model, temperature=0.5, avoid_repeats=None), top_p=0.9)
    agents.save(model, tmp_path / "model.zip")
    for policy in (model.policy, agents.load(tmp_path / "model.zip", "cpu").policy):
        assert policy.sampling == Sampling(temperature=0.5, top_p=0.9)
        assert policy.config["avoid_repeats"] is None


def test_values_and_acts_keep_them_too(tmp_path):
    for model, name in ((untrained(ILQL), "decoding"), (untrained(BC, ACTS), "sampling")):
        with_decoding(with_decoding(model, temperature=0.5), top_k=2).save(tmp_path / "model.zip")
        kept = getattr(agents.load(tmp_path / "model.zip", "cpu").policy, name)
        assert (kept.temperature, kept.top_k) == (0.5, 2)
    with pytest.raises(ValueError, match="by which a policy with values draws, got sampling="):
        untrained(ILQL, sampling={"top_k": 2})


def test_an_update_computes_what_a_rollout_drew_by():
    model = with_decoding(untrained(BC, init_std=0.5), temperature=0.3, top_k=2)
    seen, masks = torch.as_tensor(model.env.reset()), np.ones((2, model.action_space.n), bool)
    with torch.no_grad():
        actions, _, drawn = model.policy(seen, action_masks=masks)
        _, computed, _ = model.policy.evaluate_actions(seen, actions, masks)
    torch.testing.assert_close(drawn, computed, rtol=1e-4, atol=1e-6)


def test_whole_utterances_keep_their_own_candidates(saved):
    model = with_decoding(agents.load(saved["utterances"], "cpu"), candidates=3, temperature=0.5)
    assert (model.policy.decoding.candidates, model.policy.decoding.temperature) == (3, 0.5)
    with pytest.raises(ValueError, match="unknown setting 'beam' in the decoding of Utterance"):
        with_decoding(model, beam=2)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("ilql", {"betas": 1}, "unknown setting 'betas' .* Did you mean 'beta'"),
        ("ilql", {"temperature": 0}, "temperature must be above 0, got 0"),
        ("ilql", {"beta": "much"}, "beta .*a finite number.* got 'much'"),
        ("ilql", {"beam": 0}, "width of BeamSpeaker must be a whole number from 1; got 0"),
        ("ilql", {"beam": 2, "candidates": 3}, "expected beam, .* or candidates"),
        ("ilql", {"max_tokens": 3}, "expected beam, .* or candidates"),
        ("ilql", {"avoid_repeats": 2}, "avoid_repeats: expected a probability"),
        ("ilql", {"temperature": float("nan")}, "temperature of decoding must be a finite number"),
        ("bc", {"top_k": 2.5}, "top_k of sampling must be a whole number from 1; got 2.5"),
        ("bc", {"beta": 1}, "unknown setting 'beta' .*Known: .*temperature"),
        ("bc", {"candidates": 3}, "unknown setting 'candidates'"),
        ("acts", {"beam": 3}, "unknown setting 'beam'"),
    ],
)
def test_what_a_model_cannot_do(saved, name, settings, message):
    with pytest.raises(ValueError, match=message):
        said(saved[name], ACTS if name == "acts" else ID, policy_kwargs=settings)


def test_objects_and_foreign_policies_are_refused(saved):
    with pytest.raises(ValueError, match="policy_kwargs are for registered names and saved models"):
        said(agents.load(saved["bc"], "cpu"), policy_kwargs={"beam": 2})
    with pytest.raises(ValueError, match="expected a model with a policy of ours"):
        with_decoding(DQN("MlpPolicy", dialgym.sb3_vec_env(ACTS, 1), buffer_size=9), beta=1)


# Commands


def test_evaluate_keeps_them_with_the_result(saved, tmp_path):
    file = tmp_path / "r.json"
    options = ["-n", "4", "--seeds", "0", "--json", str(file)]
    text = succeed("evaluate", saved["ilql"], "-p", "beta=4", "-p", "beam=2", *options)
    assert "(beta=4, beam=2)" in "".join(text.split("\n"))
    kept = Result.from_json(file)
    assert kept.policy_kwargs == {"beta": 4, "beam": 2}
    older = {k: v for k, v in kept.as_dict().items() if k != "policy_kwargs"}
    assert Result.from_dict(older).name == "ilql"
    assert "unknown setting 'smrt'" in fail("evaluate", "expert", ID, "-p", "smrt=1")


def test_a_registered_policy_takes_settings_in_evaluate():
    found, result = said("random-mixture", policy_kwargs={"smart": 1.0})
    assert found != said("random-mixture")[0]
    assert result.name == "random-mixture (smart=1.0)"


def test_collect_keeps_them_in_the_recipe(saved, tmp_path):
    command = ["collect", ID, "--policy", saved["ilql"], "--out", str(tmp_path / "d"), "-n", "4"]
    succeed(*command, "--deterministic", "-p", "beta=4")
    recipe = json.loads((tmp_path / "d" / "collection.json").read_text())
    assert recipe["policy_kwargs"] == {"beta": 4}
    assert "policy_kwargs" in fail(*command, "--deterministic", "-p", "beta=2")
    stored = [d["turns"] for d in dialgym.load_dataset(tmp_path / "d")]
    again = dialgym.collect(ID, saved["ilql"], 4, policy_kwargs={"beta": 4.0}, deterministic=True)
    assert stored == [d["turns"] for d in again]


def test_play_takes_them_for_either_party(saved):
    watched = ["play", ID, "--seed", "1"]
    texts = {
        succeed(*watched, "--policy", saved["ilql"], *more)
        for more in ([], ["-p", "beam=3"], ["-p", "beta=9"])
    }
    assert len(texts) > 1
    against = ["play", ID, "--as", "user", "--seed", "1", "--against", saved["ilql"]]
    assert "unknown setting 'bate'" in fail(*against, "-p", "bate=1")
    keys = ".....\n" * 6
    played = {succeed(*against, *more, keys=keys) for more in ([], ["-p", "beam=3"])}
    assert len(played) == 2


def test_a_benchmark_puts_settings_side_by_side(saved, tmp_path):
    low, high = (f"{name}={saved['ilql']}" for name in ("low", "high"))
    given = ["-p", "beta=1", "-p", "high.beta=9", "--out", str(tmp_path), "-n", "3", "--games", "1"]
    succeed("benchmark", "--policies", f"random,{low},{high}", "--ids", ID, "--seeds", "0", *given)
    results = json.loads((tmp_path / "results.json").read_text())["results"]
    kept = {result["policy"]: result["policy_kwargs"] for result in results}
    assert kept == {"random": {}, "low": {"beta": 1}, "high": {"beta": 9}}
    with pytest.raises(ValueError, match="unknown saved model 'random'"):
        benchmark({"random": "random"}, [ID], 2, policy_kwargs={"random": {"beta": 1}})


def test_chat_takes_them(saved):
    ask = {"keys": "crane\nlogic\nabout\n/quit\n"}
    command = ["chat", "-m", saved["ilql"], "--seed", "0", "--temperature", "50"]
    plain, beamed, again = (
        succeed(*command, *more, **ask) for more in ([], ["-p", "beam=2"], ["-p", "beam=2"])
    )
    assert beamed == again != plain
    assert succeed(*command, "-p", "candidates=2", **ask).endswith("Goodbye.\n")
    assert "unknown setting 'beem'" in fail(*command, "-p", "beem=2")
    calm = ["-p", "deterministic=true"]
    assert succeed(*command, *calm, **ask) == succeed(*command, "--deterministic", **ask)
