"""Reward models: they learn what is better, end as if never killed, and load anywhere."""

import json
import math
import re
from shutil import copytree

import numpy as np
import pytest
import torch
import transformers
from scipy.stats import pearsonr, spearmanr
from torch.nn.functional import logsigmoid

from agents import train_reward_model
from agents.reward_model.agreement import pairwise_accuracy, pearson, spearman
from agents.reward_model.fit import RewardModelTraining, SplitExamples, schedule
from agents.reward_model.network import make_network
from agents.reward_model.pairs import read_examples
from agents.reward_model.reward_model_config import RewardModelConfig
from dialgym.rewards import Reply
from dialgym.rewards.compose import make_rewards
from dialgym.tasks.comments import Comments
from tests.agents.models.test_pretrained import save_model
from tests.support.by_day import by_day
from tests.support.close import assert_close
from tests.support.commands import fail, succeed
from tests.support.toy_rewards import FAST, preferences, scored, write_lines

TINY = {**FAST, "width": 16, "layers": 1, "heads": 2, "batch_size": 16}


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A model of preferences, learned in seconds."""
    folder = tmp_path_factory.mktemp("learned")
    data = write_lines(folder / "pairs.jsonl", preferences(1000))
    return train_reward_model(data, folder / "model", epochs=6, **{**FAST, "layers": 1})


def test_what_is_better_is_learned(learned):
    figures = learned.metrics
    assert figures["accuracy"] > 0.8  # 0.5 by chance
    assert figures["loss"] < 0.5 < math.log(2)
    assert (figures["kind"], figures["seed"], figures["examples"]) == ("preferences", 0, 893)
    assert figures["loss"] == min(epoch["loss"] for epoch in figures["history"])
    assert json.loads((learned.folder / "metrics.json").read_text()) == figures


@pytest.mark.slow
def test_upvotes_are_learned_as_labels_and_paid_as_signs(tmp_path):
    """Scores up or down, told apart by cross-entropy: a reward of comments of 1 or -1."""
    limit = 103.0  # at least one polite word, as 71 % have
    data = write_lines(tmp_path / "votes.jsonl", scored(1000))
    settings = {**FAST, "layers": 1, "epochs": 8, "threshold": limit}
    trained = train_reward_model(data, tmp_path / "model", **settings)
    assert trained.metrics["kind"] == "labels"
    assert trained.metrics["accuracy"] > 0.85
    model = {"model": str(trained.folder), "values": [-1, 1]}
    new = scored(200, seed=5)
    replies = [Reply(line["reply"], tuple(line["context"])) for line in new]
    paid = make_rewards({"learned": {"weight": 1, **model}}).score(replies)["learned"]
    assert set(paid.tolist()) == {-1.0, 1.0}
    assert np.mean((paid > 0) == np.array([line["score"] > limit for line in new])) > 0.85
    task = Comments(reward="model", model=model)
    assert task.rewards.bounds == (-1.0, 1.0)


@pytest.mark.parametrize(
    ("lines", "threshold", "message"),
    [
        (scored(20), 1e9, "expected scores on both sides of threshold=1e.09, got all 20 at or be"),
        (preferences(20), 0.0, "threshold is for scores, got preferences"),
        (scored(20), math.nan, "threshold must be a finite number"),
    ],
)
def test_a_threshold_that_parts_nothing_is_one_clear_error(lines, threshold, message, tmp_path):
    data = write_lines(tmp_path / "lines.jsonl", lines)
    with pytest.raises(ValueError, match=message):
        train_reward_model(data, tmp_path / "model", **TINY, threshold=threshold)


def test_the_reward_ranks_as_the_model_does(learned):
    """New pairs through `make_rewards`, and through plain transformers."""
    composite = make_rewards({"learned": {"weight": 1, "model": str(learned.folder)}})
    lines = preferences(200, seed=9)
    better, worse = (
        composite.score([Reply(line[name], tuple(line["context"])) for line in lines])["learned"]
        for name in ("chosen", "rejected")
    )
    assert np.mean(better > worse) > 0.8
    tokenizer = transformers.AutoTokenizer.from_pretrained(learned.folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(learned.folder).eval()
    contexts = ["\n".join(line["context"]) for line in lines[:5]]
    inputs = tokenizer(contexts, [line["chosen"] for line in lines[:5]], padding=True)
    with torch.no_grad():
        logits = model(**inputs.convert_to_tensors("pt")).logits
    assert logits.shape == (5, 1)
    assert_close(logits[:, 0], better[:5])


def test_the_folder_is_one_of_transformers(learned):
    names = {path.name for path in learned.folder.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "metrics.json"} <= names
    assert not list(learned.folder.parent.glob(".*"))  # neither checkpoint nor parts
    tokenizer = transformers.AutoTokenizer.from_pretrained(learned.folder)
    assert (tokenizer.model_max_length, tokenizer.truncation_side) == (256, "left")
    pair = tokenizer.convert_ids_to_tokens(tokenizer("hi", "yes").input_ids)
    assert pair[0] == "<cls>"
    assert pair.count("<sep>") == 2


def test_a_flipped_bit_of_a_reward_model_is_found(learned, tmp_path):
    folder = copytree(learned.folder, tmp_path / "model")
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-3] ^= 1  # in a weight, where nothing else would show
    (folder / "model.safetensors").write_bytes(content)
    composite = make_rewards({"learned": {"weight": 1, "model": str(folder)}})
    with pytest.raises(ValueError, match=r"model\.safetensors' is damaged"):
        composite.score([Reply("a")])


@pytest.mark.slow
def test_scores_are_learned_in_their_own_units(tmp_path):
    data = write_lines(tmp_path / "scores.csv", scored(500))
    trained = train_reward_model(data, tmp_path / "model", epochs=6, **FAST)
    assert trained.metrics["pearson"] > 0.9
    assert trained.metrics["spearman"] > 0.8
    composite = make_rewards({"learned": {"model": str(trained.folder)}})
    lines = scored(100, seed=5)
    found = composite.score([Reply(line["reply"], (line["context"],)) for line in lines])["learned"]
    expected = np.array([line["score"] for line in lines])
    spread = np.abs(expected - expected.mean()).mean()  # how far off a constant is
    assert np.abs(found - expected).mean() < spread / 2


@pytest.mark.parametrize("every", by_day([None, 3], 3))
def test_a_killed_run_ends_as_if_it_had_not_been(every, tmp_path, monkeypatch):
    data = write_lines(tmp_path / "pairs.jsonl", preferences(100))
    settings = {**TINY, "epochs": 3, "dropout": 0.1, "held_out": 0.2}
    whole = train_reward_model(data, tmp_path / "whole", **settings)
    steps, learn = [0], RewardModelTraining._learn_from

    def killed(self, rows):
        if self.step == 8:
            raise KeyboardInterrupt
        steps[0] += 1
        learn(self, rows)

    monkeypatch.setattr(RewardModelTraining, "_learn_from", killed)
    with pytest.raises(KeyboardInterrupt):
        train_reward_model(data, tmp_path / "killed", checkpoint_every=every, **settings)
    assert not (tmp_path / "killed").exists()
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"cannot resume .*\(seed: 0 -> 1\)"):
        train_reward_model(data, tmp_path / "killed", resume=True, seed=1, **settings)

    def counted(self, rows):
        steps[0] += 1
        learn(self, rows)

    monkeypatch.setattr(RewardModelTraining, "_learn_from", counted)
    again = train_reward_model(data, tmp_path / "killed", resume=True, **settings)
    lost = 3 if every is None else 2  # epochs have five steps
    assert steps[0] == 15 + lost
    assert again.metrics == whole.metrics
    for name in ("model.safetensors", "config.json", "tokenizer.json"):
        assert (again.folder / name).read_bytes() == (whole.folder / name).read_bytes()


def test_the_seed_decides_and_nothing_else_is_touched(tmp_path):
    data = write_lines(tmp_path / "pairs.jsonl", preferences(60))
    torch.manual_seed(3)
    before = torch.get_rng_state()
    same = [train_reward_model(data, tmp_path / "a", **TINY, epochs=1, seed=s) for s in (4, 4, 5)]
    assert torch.equal(torch.get_rng_state(), before)
    losses = [trained.metrics["history"][0]["train_loss"] for trained in same]
    assert losses[0] == losses[1] != losses[2]


def test_losses_are_those_of_the_papers(tmp_path):
    cases = (("p.jsonl", preferences(40), None), ("s.jsonl", scored(40), None))
    threshold = float(np.median([line["score"] for line in scored(40)]))
    for name, lines, limit in (*cases, ("l.jsonl", scored(40), threshold)):
        examples = read_examples(write_lines(tmp_path / name, lines))
        settings = RewardModelConfig(width=16, layers=1, heads=2, batch_size=5, threshold=limit)
        network = make_network(None, "bpe", settings, 0)
        run = RewardModelTraining(network, examples, settings, 1e-3, 0, False)
        learned, held_out = examples.split(settings.held_out, 0)
        torch.nn.init.normal_(network.head.weight)
        measured = run._measure()["loss"]
        losses = []
        for item in held_out.items:
            with torch.no_grad():
                contexts = [item.context] * len(item.replies)
                f = network.rewards(network.encode(contexts, item.replies))
            if limit is not None:
                sign = 1 if item.score > limit else -1
                losses.append(-float(logsigmoid(sign * f[0])))
            elif len(f) == 2:
                losses.append(-float(logsigmoid(f[0] - f[1])))
            else:
                known = learned.scores
                losses.append((float(f[0]) - (item.score - np.mean(known)) / np.std(known)) ** 2)
        assert measured == pytest.approx(np.mean(losses), rel=1e-4)


def test_training_stops_where_nothing_is_gained(tmp_path):
    rng = np.random.default_rng(0)
    lines = [{**line, "score": rng.random()} for line in scored(60)]
    data = write_lines(tmp_path / "noise.jsonl", lines)
    settings = {**TINY, "patience": 2, "epochs": 60, "learning_rate": 5e-3}
    history = train_reward_model(data, tmp_path / "m", **settings).metrics["history"]
    best = int(np.argmin([epoch["loss"] for epoch in history]))
    assert len(history) == best + 1 + 2 < 60


@pytest.mark.parametrize("model_type", by_day(["gpt2", "llama"], "gpt2"))
def test_a_checkpoint_is_gone_on_from(model_type, tmp_path):
    save_model(tmp_path / "base", model_type)
    lines = [
        {"context": c, "chosen": "ab", "rejected": "long"} for c in ("a", "b", "c", "d", "a b") * 8
    ]
    data = write_lines(tmp_path / "pairs.jsonl", lines)
    settings = {"epochs": 8, "learning_rate": 1e-2, "patience": 0, "max_length": 12}
    trained = train_reward_model(
        data, tmp_path / "model", tmp_path / "base", progress_bar=False, bf16=True, **settings
    )
    assert trained.metrics["accuracy"] == 1
    tokenizer = transformers.AutoTokenizer.from_pretrained(trained.folder)
    pair = tokenizer.convert_ids_to_tokens(tokenizer("a", "b").input_ids)
    assert pair == ["a", "<|eos|>", "b"]  # its own tokenizer puts nothing between the two
    composite = make_rewards({"learned": {"model": str(trained.folder)}})
    good, bad = composite.score([Reply("ab", ("c",)), Reply("long", ("c",))])["learned"]
    assert good > bad


def test_the_schedule_rises_and_falls():
    factors = schedule(10, 0.2)
    expected = [0.5, 1, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]
    np.testing.assert_allclose(factors, expected)
    assert schedule(3, 0.0).tolist() == [1, 2 / 3, 1 / 3]
    assert (schedule(1, 0.1) == 1).all()


def test_correlations_are_those_of_scipy():
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = rng.integers(0, 5, 12).astype(float), rng.normal(size=12)
        assert pearson(a, b) == pytest.approx(pearsonr(a, b).statistic)
        assert spearman(a, b) == pytest.approx(spearmanr(a, b).statistic)
    assert pearson(np.ones(3), np.arange(3.0)) == 0
    assert pairwise_accuracy(np.array([[1, 0], [0, 1], [2, 2], [5, 1.0]])) == 2.5 / 4


# Bad arguments


def test_a_folder_with_other_things_is_left_alone(tmp_path):
    data = write_lines(tmp_path / "pairs.jsonl", preferences(20))
    with pytest.raises(ValueError, match="exists and is no reward model; expected a new folder"):
        train_reward_model(data, tmp_path, **TINY)
    assert data.is_file()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epoch": 3}, "unknown hyperparameter 'epoch' in the reward model. Did you mean 'epochs'"),
        ({"epochs": 0}, "epochs must be 1 or more, got 0"),
        ({"held_out": 1.0}, "held_out must be between 0 and 1, got 1.0"),
        ({"width": 30, "heads": 4}, "width must be a multiple of heads=4, got 30"),
        ({"learning_rate": -1.0}, "learning_rate must be above 0, got -1.0"),
        ({"learning_rate": "high"}, "learning_rate must be a finite number; got 'high'"),
        ({"epochs": None}, "epochs must be a finite number; got None"),
        ({"layers": 1.5}, "layers must be a whole number, got 1.5"),
        ({"tokenizer": "words"}, "tokenizer must be 'bpe', 'bpe:PATH' or 'hf:NAME'"),
        ({"tokenizer": "bpe:none.json"}, "tokenizer 'bpe:none.json': expected a tokenizer.json"),
        ({"base": "./none"}, "reward model: there is no file or folder './none'. Check the path"),
        ({"checkpoint_every": -1}, "checkpoint_every: expected 0 .never. or more, got -1"),
    ],
)
def test_bad_settings_are_one_clear_error(settings, message, tmp_path):
    data = write_lines(tmp_path / "pairs.jsonl", preferences(20))
    with pytest.raises(ValueError, match=message):
        train_reward_model(data, tmp_path / "m", **settings)
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.jsonl"]


def test_a_reply_is_read_whole_where_the_context_can_make_room():
    network = make_network(None, "bpe", RewardModelConfig(max_length=24), 0)
    mark, ends = network.tokenizer.sep_token_id, network.tokenizer.num_special_tokens_to_add(True)
    contexts = ["who said so " * 9, "who said so " * 9, "hi", ""]
    replies = ["No, never. " + "we met again " * 2, "we met again " * 9, "yes", ""]
    alone = [network.tokenizer(text, add_special_tokens=False).input_ids for text in replies]
    assert len(alone[0]) + ends < 24 < len(alone[1])
    for number, row in enumerate(network.encode(contexts, replies)):
        ids = row["input_ids"]
        reply = ids[ids.index(mark) + 1 : -1]
        assert reply == alone[number][-len(reply) :] if reply else not alone[number]
        assert len(reply) == (11 if number == 1 else len(alone[number]))  # half of the room
        assert len(ids) == (24 if number < 2 else len(ids))
        assert {len(column) for column in row.values()} == {len(ids)}


def test_pairs_of_the_same_tokens_are_told(tmp_path):
    lines = preferences(20)
    lines[3] |= {"chosen": "yes " + "so " * 40, "rejected": "no " + "so " * 40}
    examples = read_examples(write_lines(tmp_path / "pairs.jsonl", lines))
    network = make_network(None, "bpe", RewardModelConfig(max_length=24), 0)
    with pytest.warns(
        UserWarning, match="two replies of 1 of 20 pairs are the same tokens within "
    ):
        SplitExamples(network, examples)


def test_a_window_too_long_and_another_vocabulary(tmp_path):
    data = write_lines(tmp_path / "pairs.jsonl", preferences(20))
    save_model(tmp_path / "base", n_positions=24)
    with pytest.raises(ValueError, match=r"max_length must be at most 24, what .* reads, got 25"):
        train_reward_model(data, tmp_path / "m", tmp_path / "base", max_length=25)
    save_model(tmp_path / "small", vocab_size=6)
    with pytest.raises(ValueError, match="got one with 11 tokens for a model that knows 6"):
        train_reward_model(data, tmp_path / "m", tmp_path / "small")


def test_a_loss_that_is_not_finite_leaves_no_folder(tmp_path, monkeypatch):
    data = write_lines(tmp_path / "pairs.jsonl", preferences(20))
    monkeypatch.setattr(RewardModelTraining, "_losses", lambda *_: torch.tensor([math.nan]))
    with pytest.raises(ValueError, match="the loss is nan at step 0; lower learning_rate"):
        train_reward_model(data, tmp_path / "m", **TINY)
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.jsonl"]


def test_the_command(tmp_path):
    data = write_lines(tmp_path / "pairs.jsonl", preferences(60))
    sizes = ["-p", "width=16", "-p", "heads=2", "-p", "layers=1", "-p", "epochs=1"]
    out = str(tmp_path / "m")
    text = succeed("train", "reward-model", "--data", str(data), "--out", out, *sizes)
    assert re.search(r"\d held out of 60:", text)
    assert "accuracy " in text
    assert "Writing" not in text
    assert (tmp_path / "m" / "model.safetensors").is_file()
    error = fail("train", "reward-model", "--data", str(tmp_path / "no.jsonl"), "--out", out)
    assert "no data at" in error
    assert "unknown algorithm 'reward-modle'" in fail("train", "reward-modle", "Wordle-20-v0")
