"""The recipe of corpora: what predictions are worth, and every step once, briefly."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.recipes import corpus
from benchmarks.recipes.runs import perform
from benchmarks.recipes.tables import lines, markdown
from tests.support.city_logs import convlab2


class Always:
    """Chooses the first two of four acts."""

    def predict(self, observations, deterministic, action_masks):
        assert deterministic
        assert action_masks.tolist() == [[True, True, True, True], [True, False, True, True]]
        return np.array([[1, 1, 0, 0]] * 2), None


def test_agreement_counts_acts_over_all_turns():
    wanted = np.array([[1, 0, 0, 1], [0, 0, 1, 0]])
    masks = np.array([[True, True, True, False], [True, False, True, True]])
    decisions = SimpleNamespace(actions=wanted, action_masks=masks, observations=np.zeros((2, 3)))
    found = corpus.agreement(Always(), SimpleNamespace(decisions=decisions))
    assert found == pytest.approx({"precision": 1 / 4, "recall": 1 / 3, "f1": 2 / 7})


def test_every_weight_is_trained_and_scored(tmp_path, monkeypatch):
    for name, value in {"STEPS": 2, "EPISODES": 4, "WEIGHTS": {"BC": 1.0}}.items():
        monkeypatch.setattr(corpus, name, value)
    data = tmp_path / "data"
    data.mkdir()
    for split in ("val", "test"):
        (data / f"{split}.json").write_text(json.dumps(convlab2()))
    runs = corpus.runs(tmp_path / "runs", 1, str(data))
    shown = markdown(lines(perform(runs, corpus.EPISODES)), corpus.COLUMNS, corpus.BASE)
    assert len(shown.splitlines()) == 3
    assert (runs[0].folder / corpus.PREDICTED).is_file()


def test_it_asks_for_a_corpus(tmp_path):
    with pytest.raises(SystemExit, match="--data"):
        corpus.runs(tmp_path, 1)
