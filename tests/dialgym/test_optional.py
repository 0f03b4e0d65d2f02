"""Missing packages, and other packages of the same name."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dialgym
from dialgym.cli.common import require_agents
from dialgym.optional import require
from tests.support.commands import fail

ROOT = Path(__file__).parents[2]


def test_a_missing_package_says_what_needs_it_and_how_to_get_it():
    with pytest.raises(ImportError, match=r'colours needs no_such_package.*"dialgym\[ui\]"'):
        require("no_such_package.part", "ui", "colours")


@pytest.mark.parametrize(
    ("missing", "extra", "command"),
    [
        ("torch", "agents", ("benchmark", "tables")),
        ("sb3_contrib", "agents", ("benchmark", "tables")),
        ("httpx", "lm", ("evaluate", "openai:MODEL", "Wordle-20-v0", "-n", "1")),
        ("fastapi", "web", ("view", "--port", "0")),
        ("uvicorn", "web", ("view", "--port", "0")),
    ],
)
def test_a_command_names_the_extra_that_it_lacks_and_begins_nothing(
    missing, extra, command, monkeypatch
):
    monkeypatch.setitem(sys.modules, missing, None)
    assert re.search(rf'needs {missing},.* pip install "dialgym\[{extra}\]"$', fail(*command))


def test_our_own_agents_are_recognised():
    assert require_agents().__version__ == dialgym.__version__


ASK_TWICE = """
import dialgym
from dialgym.cli.common import require_agents
for call in (require_agents, lambda: dialgym.evaluate("model.zip", "dialgym/Wordle-20-v0", 1)):
    try:
        call()
    except Exception as error:
        print(error)
"""


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("agents/__init__.py", "Keep the two in separate virtual environments"),
        ("agents.py", "agents.py has the name of dialgym's package 'agents'.*Rename it"),
    ],
)
def test_another_module_of_that_name_is_one_clear_error(file, message, tmp_path):
    """As in a notebook's folder, or where the OpenAI Agents SDK is installed over ours."""
    other = tmp_path / file
    other.parent.mkdir(exist_ok=True)
    other.touch()
    (tmp_path / "model.zip").write_bytes(b"")
    run = in_a_process(["-c", ASK_TWICE], tmp_path, str(ROOT))
    errors = run.stdout.splitlines()
    assert len(errors) == 2, run.stderr
    for error in errors:
        assert re.search(message, error)
        assert str(other) in error


def test_two_versions_are_not_mixed(tmp_path):
    package = tmp_path / "agents"
    package.mkdir()
    for name in ("__init__.py", "registry.py"):
        shutil.copy(ROOT / "agents" / name, package)
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    mixed = in_a_process(["-c", "import agents"], tmp_path, path)
    assert mixed.returncode == 0
    assert f"two copies of dialgym are mixed: agents {dialgym.__version__} of {tmp_path} and" in (
        mixed.stderr
    )
    # of another length: Python compiles a file again if its size or its second has changed
    text = (package / "__init__.py").read_text("utf-8")
    older = re.sub("__version__ = .*", '__version__ = "0.0.10"', text)
    (package / "__init__.py").write_text(older, "utf-8")
    run = in_a_process(["-m", "dialgym", "train", "ppo", "Wordle-20-v0"], tmp_path, path)
    assert run.returncode == 2
    assert "both packages of one version; got agents 0.0.10 of" in run.stderr
    assert "Traceback" not in run.stderr


def in_a_process(arguments, folder, path):
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )


PROBE = """
import subprocess
import sys
sys.modules["torch"] = None  # as if it were not installed
import agents
try:
    agents.train
except ImportError as error:
    print(error)
"""


def test_agents_without_torch_is_one_clear_error():
    run = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    assert run.stdout == (
        "agents.train needs torch, which is not installed. "
        'Install it with: pip install "dialgym[agents]"\n'
    )
