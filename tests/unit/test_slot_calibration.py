"""The handcrafted policy on PyDial's own domains scores what it scores in PyDial."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from dialgym import registry

SCRIPT = Path(__file__).parents[2] / "scripts" / "pydial_table.py"


def load_script():
    spec = importlib.util.spec_from_file_location("pydial_table", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PYDIAL = load_script()


@pytest.fixture(autouse=True)
def _other_tasks():
    """Tasks are shared by their settings; those made here are of other files than usual."""
    shared = registry._shared_task
    shared.cache_clear()
    yield
    shared.cache_clear()


@pytest.mark.parametrize(("domain", "env"), PYDIAL.ORIGINAL, ids=str)
def test_success_and_return_are_those_of_the_original(domain, env, data, monkeypatch):
    """400 dialogues, of which the interval counts too; the table itself takes 2,000."""
    monkeypatch.setenv("DIALGYM_PYDIAL", str(data / "pydial"))
    found = PYDIAL.measured(domain, env, 400, "pydial")
    for theirs, ours in zip(PYDIAL.ORIGINAL[domain, env], found):
        assert abs(theirs.mean - ours.mean) <= (theirs.half**2 + ours.half**2) ** 0.5


def test_the_built_in_domains_are_not_taken_for_the_originals(monkeypatch):
    monkeypatch.delenv("DIALGYM_PYDIAL", raising=False)
    with pytest.raises(SystemExit, match="expected PyDial's own files; got the built-in domain"):
        PYDIAL.measured("CamRestaurants", 1, 1, "pydial")


def test_the_script_prints_a_table_and_exits_by_it(data, monkeypatch):
    monkeypatch.setenv("DIALGYM_PYDIAL", str(data / "pydial"))
    command = [sys.executable, SCRIPT, "--episodes", "100", "--domains", "CamRestaurants"]
    ran = subprocess.run([*command, "--envs", "1"], capture_output=True, text=True, check=False)
    head, _, line = ran.stdout.splitlines()
    assert head == "| env | domain | success % | PyDial | return | PyDial | within |"
    assert line.startswith("| 1 | CamRestaurants | ")
    assert (ran.returncode == 0) == line.endswith("| both |")
