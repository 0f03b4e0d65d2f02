"""The recipe of transfer: a policy of one domain is scored in another, as it is and learned on."""

import pytest

from benchmarks.recipes import transfer
from benchmarks.recipes.runs import perform
from benchmarks.recipes.tables import lines, markdown


@pytest.mark.slow
@pytest.mark.parametrize("method", transfer.METHODS, ids=lambda method: method.algo)
def test_each_method_is_carried_over(method, tmp_path, monkeypatch):
    monkeypatch.setattr(transfer, "METHODS", (method,))
    monkeypatch.setattr(transfer, "FIRST", 12)
    monkeypatch.setattr(transfer, "MORE_DIALOGUES", 6)
    scores = perform(transfer.runs(tmp_path, seeds=1), episodes=4)
    assert [score.run.env_id for score in scores] == [transfer.SOURCE, *[transfer.TARGET] * 3]
    text = markdown(lines(scores), transfer.COLUMNS, transfer.BASE)
    assert f"| {method.name}, from the first domain, 6 dialogues | 1 |" in text
    assert text.count(" % |") == 4


def test_runs_stand_after_what_they_build_on(tmp_path):
    runs = transfer.runs(tmp_path, seeds=2)
    assert len(runs) == 2 * len(transfer.METHODS) * 4
    made = set()
    for run in runs:
        assert run.settings.get("source") is None or run.settings["source"] in made
        made.add(run.model)
