"""The index of a zoo, where somebody has changed it."""

from dataclasses import asdict

import pytest

from dialgym.experiments.statistics import Estimate
from dialgym.experiments.zoo import FORM, ZooAgent, read_zoo
from dialgym.io.checksums import write_json_checked
from dialgym.io.saved_models import ZOO_INDEX

ONE = Estimate(1.0, 0.5, 1.5)
AGENT = ZooAgent("a", "dialgym/A-v0", "bc", "p", 1, "bc", 0, "drawn", {}, 9, ONE, ONE, None, 1.0,
                 "0", 9000, "c")  # fmt: skip


@pytest.mark.parametrize(
    "entry",
    [{"score": "high"}, {"score": ["a", "b", "c"]}, {"bytes": "9 kB"}, {"id": 3}, {"more": 1}],
    ids=str,
)
def test_an_entry_that_is_no_agent_is_one_clear_error(entry, tmp_path):
    agents = [asdict(AGENT)]
    write_json_checked(tmp_path / ZOO_INDEX, {"form": FORM, "agents": agents})
    assert read_zoo(tmp_path) == [AGENT]
    agents[0].update(entry)
    write_json_checked(tmp_path / ZOO_INDEX, {"form": FORM, "agents": agents})
    with pytest.raises(ValueError, match=r"zoo\.json'.*expected agents with name, id"):
        read_zoo(tmp_path)
