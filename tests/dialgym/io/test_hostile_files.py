"""Files that want to run code or fill the memory: none does, and each is one clear error."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("resource")  # of POSIX
pytest.importorskip("datasets")
if not Path("/proc/self/statm").exists():
    pytest.skip("needs Linux's /proc", allow_module_level=True)
from tests.support.hostile_files import CASES, SECONDS

TELLING = {
    "yaml: tag": "expected YAML (could not determine a constructor",
    "yaml: laughs": "its aliases repeat more than 100,000 values",
    "yaml: deep": "more than 100 values within one another",
    "json: deep": "more than 100 values within one another",
    "parquet: rewards": "it names 'evil:Thing', which could run code",
    "parquet: simulator with settings": "it names 'subprocess:Popen', which could run code",
    "parquet: a stage without": "tracker of MultiWOZ 'evil': expected module:Class, or a",
    "parquet: environment": "it names 'evil:Thing",
    "parquet: a text of 10 GB": "it would be more than 536,870,912 bytes in memory",
    "parquet: dialogues of 10 GB": "it would be more than 536,870,912 bytes in memory",
    "database: computed columns": "got columns that are computed",
    "database: a view without end": "expected a table 'Bars'; got no table",
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    environment = {**os.environ, "DIALGYM_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.support.hostile_files", str(folder)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, cwd=Path(__file__).parents[3]
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_file(found, name):
    one = found[name]
    assert not one["ran"], one
    assert one["kind"] == "clear", one
    assert one["seconds"] < SECONDS
    assert one["MB"] < 1024
    for beginning, text in TELLING.items():
        if name.startswith(beginning) and not name.endswith("in a run"):
            assert text in one["text"]
