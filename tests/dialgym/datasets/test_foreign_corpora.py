"""Real corpora imported by one command each; skipped where they are not at hand."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from agents import BC, ILQL
from dialgym import sb3_vec_env
from dialgym.datasets import load_dataset
from dialgym.registry import entry_of
from tests.support.commands import succeed

TINY = {"preset": "nano", "n_layer": 1, "n_head": 1, "n_embd": 16}


def imported(folder, *arguments):
    printed = succeed("import", *map(str, arguments), "--out", str(folder))
    return load_dataset(folder), printed


def learns(algorithm, dataset):
    """Two gradient steps on some short dialogues, in an env made of what is stored with them."""
    some = dataset.select(dataset.lengths.argsort(kind="stable")[:64])
    env_id, settings = some.environment()
    env = sb3_vec_env(entry_of(env_id), 1, seed=0, **settings)
    model = algorithm(
        "GPTPolicy", env, some, batch_size=4, policy_kwargs=TINY, seed=0, device="cpu"
    )
    model.learn(2)
    assert model._n_updates == 2
    env.close()


@pytest.mark.slow
def test_multiwoz(data, tmp_path):
    dataset, printed = imported(tmp_path / "out", data / "multiwoz21_convlab" / "val.json.zip")
    assert "who speaks second" in printed
    assert len(dataset) == 999
    assert dataset[0]["turns"][0]["party"] == "user"
    learns(ILQL, dataset)


@pytest.mark.slow
def test_craigslist_bargain(data, tmp_path):
    dataset, printed = imported(
        tmp_path / "out", data / "craigslist_bargain" / "dev.json", "--system", "0"
    )
    assert "outcome.reward, at the end" in printed
    assert "rows without utterances" in printed  # offers that nobody talked about
    assert {*dataset.returns.tolist()} == {0.0, 1.0}
    learns(ILQL, dataset)


@pytest.mark.slow
def test_persuasion_for_good(data, tmp_path):
    folder = data / "persuasion_for_good"
    dataset, printed = imported(
        tmp_path / "out", folder / "full_dialog.csv", "--system", "0",
        "--outcomes", folder / "donation.csv", "--reward", "B6", "--where", "B4=1",
    )  # fmt: skip
    assert "text from 'Unit', speaker from 'B4', dialogue from 'B2'" in printed
    assert len(dataset) == 1017
    assert dataset.returns.max() > 1
    learns(ILQL, dataset)


def test_deal_or_no_deal(data, tmp_path):
    """The figures of people, over the 1,052 perspectives of the test split."""
    zipped = data / "deal_or_no_deal" / "deal_or_not.zip"
    dataset, printed = imported(tmp_path / "out", zipped, "--split", "test")
    assert "reward, at the end" in printed
    assert len(dataset) == 1052
    assert dataset["success"].sum() == 804  # 76.4 % agreed
    assert round(float(dataset.returns.mean()), 2) == 5.63
    assert round(float(dataset.returns[dataset["success"]].mean()), 2) == 7.37


@pytest.mark.slow
def test_chitchat_with_the_ratings_of_people(tmp_path):
    found = find_spec("chitchat_dataset")
    if found is None or found.origin is None:
        pytest.skip("the package chitchat-dataset is not installed")
    file = Path(found.origin).with_name("dataset.json")
    dataset, printed = imported(tmp_path / "out", file)
    assert "the mean of ratings, at the end" in printed
    assert len(dataset) == 3704  # of 7,168: the others are not rated, or only one speaks
    assert (dataset.returns.min(), dataset.returns.max()) == (1, 10)
    learns(ILQL, dataset)
    learns(BC, dataset)
