"""Every example of a door runs, as a user would run it, where the library of its extra is."""

import re
import runpy
import subprocess
import sys
from importlib import util
from pathlib import Path

import pytest

from tests.doors.stand_ins import standing_in
from tests.support.waiting import HANG_GUARD

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "bridges").glob("*.py"))
PACKAGES = {"skyrl": "skyrl_gym", "tinker": "tinker_cookbook"}
"""Packages of extras that have another name."""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path, tmp_path: Path):
    extra = re.search(r"needs the extra `(\w+)`", path.read_text("utf-8").partition('"""\n')[0])
    if extra:
        pytest.importorskip(PACKAGES.get(extra[1], extra[1]), reason=extra[0])
    run = subprocess.run(
        [sys.executable, path], cwd=tmp_path, capture_output=True, text=True, timeout=HANG_GUARD
    )
    assert run.returncode == 0, run.stderr
    assert "system: " in run.stdout


@pytest.mark.parametrize(
    ("stem", "library", "heard"),
    [
        ("05_verl", "verl", "[-1.0, -1.0]"),
        ("07_nemo_gym", "resources_servers", "'turn_rewards': [-1.0, -1.0]"),
    ],
)
def test_example_plays_where_its_library_is_installed(
    stem, library, heard, tmp_path, monkeypatch, capsys
):
    """Each looks for its library itself, and would else end after its rows."""
    pytest.importorskip("transformers", reason="needs the extra `agents`")
    monkeypatch.chdir(tmp_path)
    (path,) = [each for each in EXAMPLES if each.stem == stem]
    find = util.find_spec
    with standing_in(library):
        monkeypatch.setattr(util, "find_spec", lambda name, *_: name == library or find(name, *_))
        runpy.run_path(str(path), run_name="__main__")
    assert heard in capsys.readouterr().out


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_what_an_example_lacks_is_said(path: Path, monkeypatch: pytest.MonkeyPatch):
    if "check_installed" not in path.read_text("utf-8"):
        pytest.skip("what it calls says so")
    monkeypatch.setattr("dialgym.optional.find_spec", lambda module: None)
    with pytest.raises(ImportError, match=r"this example needs .*pip install \"dialgym\["):
        runpy.run_path(str(path))
