"""The measurements for a GPU run small on the CPU, and go on where one fails."""

import json

import pytest
import torch

pytest.importorskip("stable_baselines3")
pytest.importorskip("transformers")
from agents.models.gpt import GPT
from agents.models.hugging_face import HuggingFaceBackbone
from benchmarks.gpu import __main__ as command
from benchmarks.gpu import measurements
from benchmarks.gpu.plans import TINY_QWEN, Plan, Shape
from benchmarks.gpu.report import JSON, MARKDOWN, Row, as_markdown
from benchmarks.training.workload import Reply

PLAN = Plan(
    "cpu",
    Shape("own", 60, {"n_layer": 1, "n_head": 2, "n_embd": 16}),
    Shape("theirs", 60, qwen={**TINY_QWEN, "num_hidden_layers": 1}),
    n_envs=4,
    n_epochs=1,
    repeats=1,
)


@pytest.mark.slow
def test_every_measurement_has_figures(tmp_path, monkeypatch):
    monkeypatch.setattr(Plan, "of_this_machine", classmethod(lambda cls: PLAN))
    monkeypatch.setattr(Plan, "name", "NVIDIA H100 80GB HBM3")
    monkeypatch.setattr(measurements, "GRADIENT_STEPS", 1)
    monkeypatch.setattr(measurements, "LONG", {"shortest": 4, "longest": 5})
    monkeypatch.setitem(PLAN.gpt.policy, "preset", "nano")
    command.main(["--out", str(tmp_path)])
    found = json.loads((tmp_path / JSON).read_text("utf-8"))
    assert [row["name"] for row in found["rows"]] == list(measurements.MEASUREMENTS)
    assert [row["error"] for row in found["rows"]] == [None] * 6
    for row in found["rows"]:
        numbers = [value for key, value in row["figures"].items() if key != "model"]
        assert min(numbers) > 0
    first = found["rows"][0]["figures"]
    assert first["vocabulary"] == 65
    updating = 1 / first["steps/s"] - 1 / first["rollout, tokens/s"]  # seconds a decision
    embeddings, core = 65 * 16, first["weights"] - 65 * 16
    operations = 6 * (core * first["update, tokens/s"] + embeddings / updating)
    assert first["share of the bf16 peak, %"] == pytest.approx(100 * operations / 989e12)
    assert found["rows"][2]["figures"]["steps/s of OpenRL, RTX 3090"] == 13.2
    text = (tmp_path / MARKDOWN).read_text("utf-8")
    assert text.count("| own |") == 5
    assert text.count("| theirs |") == 1


def test_a_measurement_that_fails_is_a_row_and_the_next_begins(tmp_path, monkeypatch):
    seen = []

    def too_large(plan, until):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to\nallocate 3 GiB")

    def good(plan, until):
        seen.append(json.loads((tmp_path / JSON).read_text("utf-8"))["rows"])
        return {"model": "own", "steps/s": 12.5}

    monkeypatch.setattr(command, "MEASUREMENTS", {"large": too_large, "good": good})
    rows = command.measure(PLAN, tmp_path, 1.0)
    assert seen[0][0]["name"] == "large"
    assert rows[0].error == "OutOfMemoryError: CUDA out of memory. Tried to allocate 3 GiB"
    assert rows[1].figures["steps/s"] == 12.5
    text = (tmp_path / MARKDOWN).read_text("utf-8")
    assert "| good | own | 12.5 |" in text
    assert "- large: OutOfMemoryError: CUDA out of memory" in text


def test_nothing_begins_once_the_time_is_over(tmp_path, monkeypatch):
    rows = command.measure(PLAN, tmp_path, 0.0)
    assert {row.error for row in rows} == {"not begun: the 0 minutes were over"}
    monkeypatch.setattr(Plan, "of_this_machine", classmethod(lambda cls: PLAN))
    with pytest.raises(SystemExit, match="nothing could be measured"):
        command.main(["--out", str(tmp_path), "--minutes", "0"])
    with pytest.raises(SystemExit, match="2"):
        command.main(["--minutes", "-1"])
    assert "not begun" in as_markdown({"device": "CPU"}, [Row("a", error="not begun")])


def test_iterations_end_with_the_time_but_one_is_always_measured():
    done = []
    works = (lambda: done.append("rollout"), lambda: done.append("update"))
    assert len(measurements._timed(PLAN, 0.0, works)) == 1
    assert done == ["rollout", "update"] * 2


def test_shapes_are_what_they_say():
    from agents.policies.gpt import GPTPolicy
    from benchmarks.training.workload import reply_env

    env = reply_env(1, words=60)
    for shape, kind in ((PLAN.gpt, GPT), (PLAN.qwen, HuggingFaceBackbone)):
        with shape.policy_kwargs() as kwargs:
            policy = GPTPolicy(env.observation_space, env.action_space, lambda _: 1e-3, **kwargs)
        assert isinstance(policy.backbone, kind)
        assert policy.policy_head.weight is policy.backbone.embedding
    env.close()


def test_a_large_vocabulary_has_as_many_words_as_it_says():
    task = Reply(words=40_000)
    assert len(set(task.alphabet)) == 40_000
    assert ord(max(task.alphabet)) < 0x110000
    assert not any(0xD800 <= ord(c) < 0xE000 for c in task.alphabet)
