"""TRL's door against the real package: groups, masks, log-probabilities, and GRPO that learns."""

import random
import re
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dialgym.bridges import trl as door

trl = pytest.importorskip("trl", reason="needs the extra `trl`")
torch = pytest.importorskip("torch", reason="needs the extra `agents`")

from tests.doors.tiny_model import clone, games_of, model_of, tokenizer_of  # noqa: E402

ID = "Wordle-20-v0"


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="module")
def tokenizer():
    return tokenizer_of(ID)


def trainer_of(tokenizer, folder, reward=door.returns, steps=2, rows=16, **settings):
    """A trainer of dialogues whose turns are a token each: a word of the game, or a letter."""
    settings = {"num_generations": 4, "per_device_train_batch_size": 8, **settings}
    args = trl.GRPOConfig(
        str(folder),
        max_steps=steps,
        max_completion_length=128,
        report_to="none",
        save_strategy="no",
        logging_steps=1,
        disable_tqdm=True,
        use_cpu=True,
        bf16=False,
        seed=0,
        **settings,
    )
    return trl.GRPOTrainer(
        model_of(tokenizer),
        reward,
        args=args,
        train_dataset=door.prompts(ID, rows),
        processing_class=tokenizer,
        rollout_func=door.rollout_func(ID, max_new_tokens=1),
    )


def test_members_of_a_group_start_alike_and_groups_do_not(tokenizer, tmp_path):
    calls = []

    def noted(prompts, completions, returns, seed, success, turns, turn_rewards, **columns):
        starts = [(p[0]["seed"], s) for p, s in zip(prompts, seed)]
        assert all(told == row for told, row in starts)
        assert [sum(each) for each in turn_rewards] == returns
        assert [len(each) for each in turn_rewards] == turns
        assert len(returns) == len(completions) == 8  # one a prompt, which TRL has repeated
        calls.append([told for told, _ in starts])
        return returns

    trainer = trainer_of(tokenizer, tmp_path, noted)
    trainer.train()
    assert len(calls) == 2
    for seeds in calls:
        assert [len([*group]) for _, group in groupby(seeds)] == [4, 4]


def test_logprobs_are_those_of_the_model_after_what_it_has_read(tokenizer, tmp_path):
    trainer = trainer_of(tokenizer, tmp_path, temperature=0.7)
    rows = [row["prompt"] for row in door.prompts(ID, 4)]
    columns = door.rollout_func(ID, max_new_tokens=2)(rows, trainer)
    assert {len(values) for values in columns.values()} == {4}
    for row in range(4):
        prompt, completion = columns["prompt_ids"][row], columns["completion_ids"][row]
        mask, logprobs = columns["env_mask"][row], columns["logprobs"][row]
        assert len(completion) == len(mask) == len(logprobs)
        assert mask[0] == mask[-1] == 1
        assert 0 in mask
        with torch.no_grad():
            logits = trainer.model(torch.tensor([prompt + completion])).logits[0] / 0.7
        chances = logits.log_softmax(-1)[len(prompt) - 1 :]
        for at, token in enumerate(completion):
            expected = chances[at, token].item() if mask[at] else 0.0
            assert logprobs[at] == pytest.approx(expected, abs=1e-4)


def test_a_completion_ends_where_it_may_be_no_longer(tokenizer, tmp_path):
    trainer = trainer_of(tokenizer, tmp_path)
    rows = [row["prompt"] for row in door.prompts(ID, 4)]
    trainer.args.max_completion_length = 20
    columns = door.rollout_func(ID, max_new_tokens=3)(rows, trainer)
    assert max(map(len, columns["completion_ids"])) <= 20
    assert columns["truncated"] == [not ended for ended in columns["terminated"]]
    assert any(columns["truncated"])
    trainer.args.max_completion_length = None
    with pytest.raises(ValueError, match="max_new_tokens"):
        door.rollout_func(ID)(rows, trainer)


def test_prompts_of_others_and_of_other_settings_are_refused(tokenizer):
    trainer = SimpleNamespace(
        args=SimpleNamespace(max_completion_length=9), processing_class=tokenizer
    )
    rollout = door.rollout_func(ID)
    with pytest.raises(ValueError, match=r"seed of its dialogue; got .guess.*trl.prompts"):
        rollout(["guess"], trainer)
    row = door.prompts("Wordle-20-v0", 1, turns=3)[0]
    with pytest.raises(ValueError, match=r"begins otherwise.*same id and settings"):
        rollout([row["prompt"]], trainer)
    with pytest.raises(ValueError, match="Did you mean"):
        door.rollout_func("Wordle-21-v0")


def test_vllm_is_refused_with_what_to_do(tokenizer):
    with pytest.raises(ValueError, match="generate="):
        door.sampled(SimpleNamespace(use_vllm=True), [[1]], 1)


@pytest.fixture(scope="module")
def cloned(tokenizer):
    """A model that has seen games of the optimal player, half of whose words are random.

    From nothing it would take minutes to learn what the colours mean.
    """
    model = model_of(tokenizer)
    clone(model, tokenizer, [*games_of(ID, 300, "optimal", share=0.5)], steps=400)
    return model.state_dict()


def improvement(tokenizer, cloned, folder, shuffled):
    """Mean return of the last five of 30 steps of GRPO, less that of the first five."""
    rng, means = random.Random(0), []

    def reward(returns, **columns):
        means.append(np.mean(returns))
        return rng.sample(returns, len(returns)) if shuffled else returns

    settings = {"num_generations": 16, "per_device_train_batch_size": 128, "learning_rate": 1e-3}
    trainer = trainer_of(tokenizer, folder, reward, steps=30, rows=400, **settings)
    trainer.model.load_state_dict(cloned)
    trainer.train()
    return np.mean(means[-5:]) - np.mean(means[:5])


def test_grpo_learns_wordle_and_from_shuffled_rewards_it_does_not(tokenizer, cloned, tmp_path):
    gap = 0.75  # returns are means of 640 dialogues, whose standard error is below 0.1
    assert improvement(tokenizer, cloned, tmp_path, shuffled=False) > gap
    assert improvement(tokenizer, cloned, tmp_path, shuffled=True) < gap / 2


def test_the_lines_of_the_readme_train(tokenizer, tmp_path, monkeypatch):
    """As they are written, but for a local model in the place of the hub's, and one prompt."""
    text = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    (lines,) = re.findall(r"```py\n(from trl import .*?)```", text, re.S)
    name = re.search(r'GRPOTrainer\("(.*?)"', lines)[1]
    model_of(tokenizer).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    steps = []

    def counted(self, *arguments, **options):
        steps.append(1)
        return training_step(self, *arguments, **options)

    training_step = trl.GRPOTrainer.training_step
    monkeypatch.setattr(trl.GRPOTrainer, "training_step", counted)
    monkeypatch.setenv("ACCELERATE_USE_CPU", "1")  # its default, bfloat16, asks for a GPU
    monkeypatch.setattr("transformers.training_args.is_torch_bf16_gpu_available", lambda: True)
    monkeypatch.chdir(tmp_path)
    assert "1000" in lines
    exec(lines.replace(name, str(tmp_path / "model")).replace("1000", "1"), {})
    assert steps
