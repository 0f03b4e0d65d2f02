"""The wheel and the editable install, each in an environment that holds nothing else of dialgym."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


USE_IT = """
import dialgym, gymnasium
assert gymnasium.spec("dialgym/Wordle-v0").id == "dialgym/Wordle-v0"
print(dialgym.__file__)
"""


def output_of(command: list[str | Path], **options) -> str:
    """What a command prints, without the user's paths; a failure shows all that it said."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    result = subprocess.run(command, capture_output=True, text=True, env=env, **options)
    assert result.returncode == 0, f"{command} failed:\n{result.stdout}{result.stderr}"
    return result.stdout.strip()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    output_of([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT)
    return next(folder.glob("*.whl"))


@pytest.fixture
def install(tmp_path: Path) -> Callable[..., Path]:
    """A function that installs into a new virtual environment and returns its interpreter.

    The environment sees our dependencies, but not our own editable install: a plain line in a
    .pth file adds a folder without obeying the .pth files that lie in it.
    """
    pytest.importorskip("pip")
    folder = tmp_path / "venv"
    venv.create(folder, with_pip=False)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = Path(output_of([python, "-c", ask]))
    (own / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")

    def install(*what: str | Path) -> Path:
        pip: list[str | Path] = [
            sys.executable,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "--python",
            python,
        ]
        output_of([*pip, "install", "--no-index", "--no-deps", "--force-reinstall", *what])
        return python

    return install


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_the_registry(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        packed = archive.read("dialgym/envs_registry.yaml")
    assert packed == (ROOT / "envs_registry.yaml").read_bytes()


@pytest.mark.parametrize(
    "pattern",
    [
        "dialgym/tasks/slot_filling/domain/builtin/*.json",
        "dialgym/tasks/multiwoz/builtin/*.json.gz",
        "dialgym/tasks/twenty_questions/tables/*.csv",
        "dialgym/tasks/wordle/words/*.txt",
        "dialgym/tasks/*/*.jsonl.gz",
        "dialgym/language/*.json",
        "dialgym/viewer/static/*",
        "agents/configs/*.yml",
        "agents/py.typed",
        "dialgym/py.typed",
        "dialgym/experiments/report.css",
        "dialgym/**/*.py",
        "agents/**/*.py",
    ],
)
def test_the_wheel_holds_each_file(wheel: Path, pattern: str):
    files = {path.relative_to(ROOT).as_posix() for path in ROOT.glob(pattern)}
    assert files, f"the repository has no {pattern}"
    assert not files - names_in(wheel)


def test_the_zoo_is_in_no_wheel(wheel: Path):
    assert (ROOT / "zoo" / "zoo.json").is_file()
    assert not [name for name in names_in(wheel) if "model.zip" in name or "zoo.json" in name]


def test_the_wheel_carries_both_notices(wheel: Path):
    names = {Path(name).name for name in names_in(wheel) if ".dist-info/" in name}
    assert {"LICENSE", "NOTICE"} <= names


def test_the_sdist_holds_what_the_wheel_does_and_no_other_folder(wheel: Path):
    builder = pytest.importorskip("hatchling.builders.sdist").SdistBuilder(str(ROOT))
    sdist = {file.distribution_path for file in builder.recurse_included_files()}
    packed = {name for name in names_in(wheel) if ".dist-info/" not in name}
    assert packed - sdist == {"dialgym/envs_registry.yaml"}  # which lies at the root
    assert {name.partition("/")[0] for name in sdist if "/" in name} == {"agents", "dialgym"}


@pytest.mark.slow
def test_the_wheel_works_away_from_the_repository(wheel: Path, install, tmp_path: Path):
    python = install(wheel)
    found = output_of([python, "-c", USE_IT], cwd=tmp_path)
    assert tmp_path in Path(found).parents


@pytest.mark.slow
def test_an_editable_install_reads_the_top_level_registry(install, tmp_path: Path):
    python = install("--no-build-isolation", "--editable", ROOT)
    for copy in python.parents[1].rglob("envs_registry.yaml"):
        copy.write_text("an old copy, not to be read", encoding="utf-8")
    found = output_of([python, "-c", USE_IT], cwd=tmp_path)
    assert Path(found) == ROOT / "dialgym" / "__init__.py"
