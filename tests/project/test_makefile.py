"""The Makefile's own work: when the virtual environment is installed into, and from where."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READS = ("docs", "lint", "type", "test", "bench")
PROGRAMS = ("python", "ruff", "lint-imports", "mypy", "mkdocs", "mike", "pytest", "dialgym")
PROGRAM = """#!/bin/sh
echo "$PWD: $* with $PYTHONPATH and $PATH" >> "{log}"
"""


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A virtual environment of which every program only writes down what it is asked for."""
    return with_programs(tmp_path / "env", tmp_path / "log")


def with_programs(folder: Path, log: Path) -> Path:
    """The folder of an environment whose programs write into `log`."""
    (folder / "bin").mkdir(parents=True)
    for name in PROGRAMS:
        (folder / "bin" / name).write_text(PROGRAM.format(log=log), encoding="utf-8")
        (folder / "bin" / name).chmod(0o755)
    return folder


def checkout(folder: Path) -> Path:
    """A folder with what make reads of a checkout."""
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    return folder


def make(folder: Path, environment: Path, *goals: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("make") is None:
        pytest.skip("no make here")
    command = ["make", *goals, f"VENV={environment}", f"PYTHON={environment}/bin/python"]
    free = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(command, cwd=folder, env=free, capture_output=True, text=True)


def installed_from(environment: Path) -> list[str]:
    """The folders from which dialgym has been installed since the last look, in their order."""
    log = environment.parent / "log"
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return [line.partition(":")[0] for line in lines if " -e ." in line]


def test_targets_that_read_install_nothing_while_the_pins_say_the_same(
    environment: Path, tmp_path: Path
):
    here = checkout(tmp_path / "here")
    assert make(here, environment, "docs").returncode == 0
    assert installed_from(environment) == [str(here)]
    for name in ("pyproject.toml", "constraints.txt"):
        (here / name).touch()  # as a checkout of another branch and back leaves them
    assert make(here, environment, *READS).returncode == 0
    assert installed_from(environment) == []


def test_a_changed_pin_is_installed(environment: Path, tmp_path: Path):
    here = checkout(tmp_path / "here")
    make(here, environment, "docs")
    with (here / "constraints.txt").open("a", encoding="utf-8") as pins:
        pins.write("another==1.0\n")
    for _ in range(2):
        make(here, environment, "lint")
    assert installed_from(environment) == [str(here)] * 2


def test_a_second_checkout_moves_the_install_by_setup_alone(environment: Path, tmp_path: Path):
    first, second = checkout(tmp_path / "first"), checkout(tmp_path / "second")
    make(first, environment, "setup")
    assert make(second, environment, "docs").returncode == 0
    assert installed_from(environment) == [str(first)]
    with (second / "constraints.txt").open("a", encoding="utf-8") as pins:
        pins.write("another==1.0\n")
    refused = make(second, environment, "docs")
    assert refused.returncode != 0
    assert f"was set up in {first}, with other pins" in refused.stdout
    assert installed_from(environment) == []
    make(second, environment, "setup")
    assert installed_from(environment) == [str(second)]
    shutil.rmtree(second)
    make(first, environment, "docs")
    assert installed_from(environment) == [str(first)]


def test_targets_run_the_code_of_their_own_checkout(environment: Path, tmp_path: Path):
    first, second = checkout(tmp_path / "first"), checkout(tmp_path / "second")
    make(first, environment, "setup")
    log = environment.parent / "log"
    log.unlink()
    make(second, environment, *READS, "run")
    lines = log.read_text("utf-8").splitlines()
    assert len(lines) > len(READS)
    assert [line for line in lines if f" with {second}" not in line] == []


def test_publishing_finds_the_mkdocs_of_the_environment(environment: Path, tmp_path: Path):
    make(checkout(tmp_path / "here"), environment, "publish-docs")
    log = (environment.parent / "log").read_text("utf-8").splitlines()
    deploying = next(line for line in log if ": deploy " in line)
    assert f" and {environment}/bin:" in deploying


FREED = ("pillow", "tomlkit", "transformers")


def test_doors_have_three_environments_each_free_of_pins(environment: Path, tmp_path: Path):
    here, log = checkout(tmp_path / "here"), tmp_path / "log"
    names = (".doors-venv", ".verifiers-venv", ".tinker-venv")
    venvs = [with_programs(here / name, log) for name in names]
    made = make(here, environment, "doors")
    assert made.returncode == 0, made.stderr
    said = log.read_text("utf-8")
    assert "-e .[agents,data,lm,rewards,web,dev,openenv,skyrl,trl,textarena] with" in said
    assert "-e .[agents,data,lm,rewards,web,dev,verifiers] with" in said
    assert "-e .[agents,data,lm,rewards,web,dev,tinker] with" in said
    assert said.count(": tests/doors with") == 3
    held = [(venv / "constraints.txt").read_text("utf-8") for venv in venvs]
    free = [[name for name in FREED if f"\n{name}==" not in text] for text in held]
    assert free == [["tomlkit"], ["pillow"], ["transformers"]]
    assert not (environment / "constraints.txt").exists()
