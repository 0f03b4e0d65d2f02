"""Dialogues that were held in another environment are refused by all that learns from some."""

import pytest

import agents
import dialgym

TINY = {"n_layer": 1, "n_head": 1, "n_embd": 8}
WORDS = ("dialgym/Wordle-20-v0", "dialgym/Wordle-200-v0")
ACTS = ("dialgym/CamRestaurants-Env1-act-v0", "dialgym/CamRestaurants-Env3-act-v0")
OF_TOKENS = ("BC", "CHAI", "CQL", "DecisionTransformer", "ILQL", "PsiLearning", "SingleStepRL",
             "UtteranceILQL")  # fmt: skip
OF_ACTS = ("BC", "CQL", "GDPL", "ILQL", "MLE", "PsiLearning", "SingleStepRL")
CASES = [(name, "GPTPolicy", *WORDS) for name in OF_TOKENS]
CASES += [(name, "MlpPolicy", *ACTS) for name in OF_ACTS]


@pytest.fixture(scope="module")
def held():
    return {id: dialgym.collect(id, "random", 3, seed=0) for id in (*WORDS, *ACTS)}


def test_those_of_the_other_partys_learner_are_refused(held):
    user = dialgym.sb3_vec_env(WORDS[0], 1, learner="user")
    for dataset in (held[WORDS[0]], held[WORDS[0]].tokens()):
        with pytest.raises(
            ValueError, match=r"whose learner is the user, .* got those of the syste"
        ):
            agents.BC("GPTPolicy", user, dataset, policy_kwargs=TINY, device="cpu")


@pytest.mark.parametrize(("name", "policy", "own", "other"), CASES)
def test_they_are_refused(name, policy, own, other, held, tmp_path):
    algorithm, env = getattr(agents, name), dialgym.sb3_vec_env(own, 1)
    more = {"policy_kwargs": TINY} if policy == "GPTPolicy" else {}

    def made(dataset):
        return algorithm(policy, env, dataset=dataset, seed=0, device="cpu", **more)

    message = f"expected dialogues of {own}, got some of {other}; collect others, or learn in that"
    with pytest.raises(ValueError, match=message):
        made(held[other])
    made(held[own]).save(tmp_path / "model.zip")
    with pytest.raises(ValueError, match=message):  # the file knows where it learned
        agents.load(tmp_path / "model.zip", device="cpu", dataset=held[other])
