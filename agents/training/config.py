"""Configuration of a training run, from Python, the command line, YAML or the run's folder.

Each field says once what it is: the command makes its options of the metadata, the documentation
its table. See `agents.train` for what a run does with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypedDict

import yaml

from agents.registry import find, named
from agents.training.plain import as_plain, object_in
from dialgym.errors import unknown, whole_number
from dialgym.io.files import parse_yaml, read_json
from dialgym.registry import Environment, check_id, entry_of
from dialgym.trust import check_names, distrusted, is_allowed

if TYPE_CHECKING:
    from agents.buffers.stream import DialogueStream
    from agents.training.rollout_metrics import MetricSelection
    from dialgym.datasets import Dataset

    Data = DialogueStream | Dataset | str | Path | Sequence[Dataset | str | Path]
else:
    MetricSelection = Data = Any

RECORD = "run.json"
"""The file of a run's folder that says what was asked for, and what came of it."""
CONFIG = "config.yml"
"""The file of a run's folder by which `dialgym train --config` repeats it."""
PAIRS = "KEY=VALUE"
LARGEST_SEED = 2**32 - 1
NEVER_IN_A_FILE = ("trust", "resume", "force")
MAPPINGS = ("env_kwargs", "hyperparameters")
TYPES: Mapping[Any, tuple[Any, str]] = {
    str: (str, "a text"),
    Path: (str | Path, "a path"),
    tuple: (Sequence, "a list of whole numbers"),
    bool: (bool, "true or false"),
}
"""Types of fields, by what their options take; the others are checked where they are used."""
MORE_TYPES = {"env_id": object, "device": object, "verbose": int, "wandb": Mapping}


def option(
    default: Any,
    help: str,
    flag: str | None = None,
    takes: Any = None,
    least: int | None = None,
    identity: bool = False,
    recorded: bool = True,
    command_default: Any = None,
) -> Any:
    """A field of `TrainConfig`, with its help in the command and the documentation.

    Args:
        default: of the field.
        help: the text of the command and of the documentation.
        flag: names at the command line, separated by commas; None for none.
        takes: the type of the option's value, where it is not that of the default: `PAIRS` for a
            mapping, `list` for several texts.
        least: the smallest whole number that it may be.
        identity: a resumed run must have the same.
        recorded: it stands in `run.json`.
        command_default: of the option, where it is another than the field's.
    """
    metadata = {
        "help": help,
        "flag": flag,
        "takes": type(default) if takes is None else takes,
        "least": least,
        "identity": identity,
        "recorded": recorded,
        "command_default": command_default,
    }
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """The fields of a training run.

    Raises:
        ValueError: a number out of range, or fields that exclude each other.
    """

    env_id: Environment = option(
        "dialgym/Wordle-20-v0",
        "An id of a token or act view, a task, or module:Class.",
        identity=True,
    )
    algorithm: str = option(
        "ppo", "A name in the table of algorithms, or module:Class of your own.", identity=True
    )
    total_timesteps: int | None = option(
        None,
        "Tokens or acts to learn from, or gradient steps where dialogues are stored; by "
        "default as configured.",
        "--timesteps",
        takes=int,
        least=1,
    )
    dialogues: int | None = option(
        None,
        "Dialogues to learn from, in place of timesteps; schedules fall over them.",
        "--dialogues",
        takes=int,
        least=1,
        identity=True,
    )
    keep_dialogues: Sequence[int] = option(
        (), "After how many dialogues to keep the model, as checkpoints/model_N_dialogues.zip."
    )
    n_envs: int | None = option(
        None, "Dialogues at a time; by default as configured.", "--n-envs", takes=int, least=1
    )
    workers: int = option(
        0, "Processes for the dialogues; 0 keeps them in this one.", "--workers", least=0
    )
    seed: int = option(
        0, "Seed of weights, dialogues and minibatches.", "--seed", least=0, identity=True
    )
    env_kwargs: Mapping[str, Any] | None = option(
        None,
        "Settings of the environment; those of stored dialogues need not be given again.",
        "--set,-s",
        takes=PAIRS,
        identity=True,
    )
    hyperparameters: Mapping[str, Any] | None = option(
        None,
        "Hyperparameters that replace those of the configuration.",
        "--param,-p",
        takes=PAIRS,
        identity=True,
    )
    hyperparameters_file: str | Path | None = option(
        None,
        "A YAML file in rl-zoo3's form, in place of the algorithm's own.",
        "--hyperparameters",
        takes=Path,
    )
    data: Data | None = option(
        None,
        "Stored dialogues to learn from, a path or hf:NAME; may be several. Or play:POLICY, whose "
        "dialogues are played while they are learned from.",
        "--data,-d",
        takes=list,
        identity=True,
    )
    init_from: str | Path | None = option(
        None,
        "A saved model, or zoo:NAME, whose weights to begin with, such as a clone.",
        "--init-from",
        takes=Path,
        identity=True,
    )
    log_dir: str | Path | None = option(
        None, "Folder of the run; by default runs/ALGORITHM-ID-seedN.", "--out", takes=Path
    )
    device: str = option("auto", "cpu, cuda or auto.", "--device")
    threads: int | None = option(
        1,
        "PyTorch threads while training; one is the fastest for small models.",
        "--threads",
        least=1,
    )
    log_interval: int | None = option(
        None,
        "Rollouts (dialogues off-policy, gradient steps offline) from one line of the log "
        "to the next; by default the algorithm's own.",
        "--log-interval",
        takes=int,
        least=1,
    )
    eval_freq: int = option(
        0, "Timesteps from one evaluation to the next; 0 is never.", "--eval-freq", least=0
    )
    eval_episodes: int = option(200, "Dialogues of one evaluation.", "--eval-episodes", least=1)
    samples: int | None = option(
        None,
        "Dialogues to write down at each evaluation; 3 by default.",
        "--samples",
        takes=int,
        least=0,
    )
    save_freq: int = option(
        0, "Timesteps after which the model is kept each time; 0 is never.", "--save-freq", least=0
    )
    checkpoint_every: int = option(
        10,
        "Rollouts, or intervals of the log, from one checkpoint to the next; thousands of "
        "timesteps of stock algorithms. 0 is never.",
        "--checkpoint-every",
        least=0,
    )
    metrics: MetricSelection | None = option(
        None, "Classes that measure each rollout, as module:Class; see `make_metrics`."
    )
    final_episodes: int = option(
        0,
        "Dialogues that the model plays at the end, for the summary; 0 for none.",
        "--final-episodes",
        least=0,
        command_default=100,
    )
    wandb: bool | Mapping[str, Any] = option(
        False, "Log to Weights & Biases too; in Python also arguments of `wandb.init`.", "--wandb"
    )
    progress_bar: bool = option(
        True,
        "Say what the run is about, how far it is and what came of it.",
        recorded=False,
    )
    verbose: int = option(0, "Print the log table.", "--verbose,-v", takes=bool)
    resume: bool = option(
        False,
        "Go on from the folder's checkpoint, exactly as if the run had not been interrupted.",
        recorded=False,
    )
    force: bool = option(
        False, "Remove the run that is in the folder, and begin again.", "--force", recorded=False
    )
    trust: bool = option(
        False,
        "Read pickled models, import what files name: both can run others' code.",
        "--trust",
        recorded=False,
    )

    def __post_init__(self) -> None:
        for one in fields(self):
            least, value = one.metadata["least"], getattr(self, one.name)
            if value is None and "None" in str(one.type):
                continue
            expected, words = TYPES.get(one.metadata["takes"], (object, ""))
            if not isinstance(value, expected | MORE_TYPES.get(one.name, expected)):
                raise ValueError(f"train: expected {one.name} to be {words}, got {value!r}")
            if least is not None:
                most = LARGEST_SEED if one.name == "seed" else None
                whole_number(one.name, value, "train", least, most)
        if self.samples and not self.eval_freq:
            raise ValueError(
                "samples: expected 0 without evaluations, after which dialogues are played, "
                f"got {self.samples}; set eval_freq too"
            )
        if self.resume and self.force:
            raise ValueError("force: expected either resume or force (begin again), got both")
        for name in MAPPINGS:
            _check_mapping(name, getattr(self, name), "train")
        self._check_kept()

    def _check_kept(self) -> None:
        numbers = (whole_number("keep_dialogues", n, "train") for n in self.keep_dialogues)
        kept = tuple(sorted(numbers))
        if kept and self.dialogues is None:
            raise ValueError(f"keep_dialogues: expected dialogues too, got {[*kept]} alone")
        wrong = [number for number in kept if not 1 <= number <= (self.dialogues or 0)]
        if wrong:
            raise ValueError(
                f"keep_dialogues: expected numbers from 1 to {self.dialogues}, the dialogues of "
                f"the run, got {wrong[0]}"
            )
        object.__setattr__(self, "keep_dialogues", kept)

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        if self.log_dir is not None:
            return Path(self.log_dir)
        env_id = entry_of(self.env_id).id.rpartition("/")[2]
        name = f"{find(self.algorithm).name}-{env_id}-seed{self.seed}"
        return Path("runs") / name.replace(":", ".")  # Windows has no colons in names

    def as_dict(self) -> dict[str, Any]:
        """The recorded fields as JSON has them; objects without a form there by their `repr`."""
        kept = [one.name for one in fields(self) if one.metadata["recorded"]]
        return {name: as_plain(getattr(self, name)) for name in kept}

    def as_yaml(self) -> str:
        """The recorded fields that are not at their defaults, as `from_yaml` reads them.

        Without `log_dir`, so that whoever repeats a run says where.
        """
        unsaid = {one.name: as_plain(one.default) for one in fields(self)}
        for name in ("env_id", "algorithm", "seed", "final_episodes"):  # the command has another
            del unsaid[name]
        kept = {k: v for k, v in self.as_dict().items() if k not in unsaid or v != unsaid[k]}
        kept.pop("log_dir", None)
        return str(yaml.safe_dump(kept, sort_keys=False))

    @classmethod
    def from_yaml(
        cls, path: str | Path, defaults: Mapping[str, Any] | None = None, **changes: Any
    ) -> Self:
        """The configuration in a YAML file, whose keys are fields; `changes` replace some, and
        `defaults` are for those that neither has.

        Raises:
            ValueError: an unknown key, with the nearest field; one that no file may decide
                (`trust`, `resume`, `force`); or a name of code that nobody trusts.
        """
        given = parse_yaml(Path(path).read_bytes(), str(path)) or {}
        if not isinstance(given, Mapping):
            raise ValueError(f"{path}: expected fields such as seed: 0, got {given!r}")
        unsaid = {k: v for k, v in (defaults or {}).items() if k not in given}
        return cls._from_file(given, str(path), {**unsaid, **changes})

    @classmethod
    def from_run(cls, folder: str | Path, **changes: Any) -> Self:
        """The configuration of the run in a folder; `changes` replace some fields, and
        entries of `env_kwargs` and `hyperparameters`.

        It is what `run.json` says, the folder being where it lies now.

        Raises:
            FileNotFoundError: there is no run.
            ValueError: a field was given as an object, which a file cannot hold; or a name of code
                that nobody trusts.
        """
        file = Path(folder) / RECORD
        given = read_json(file, "a run")
        config = given.get("config") if isinstance(given, Mapping) else None
        if not isinstance(config, Mapping):
            raise ValueError(f"{file}: expected the configuration of a run, got {config!r}")
        return cls._from_file(config, str(file), {"log_dir": folder, **changes})

    @classmethod
    def _from_file(cls, given: Mapping[str, Any], where: str, changes: Mapping[str, Any]) -> Self:
        known = [one.name for one in fields(cls)]
        for name in given:
            if name not in known:
                raise unknown("field", name, known, where)
            if name in NEVER_IN_A_FILE:
                raise ValueError(f"{where}: {name} is for whoever starts the run to say")
        kept = {name: value for name, value in given.items() if name not in changes}
        merged: dict[str, Any] = {}
        for name in MAPPINGS:
            before, mine = given.get(name), changes.get(name)
            _check_mapping(name, before, where)
            if before and mine:
                kept[name] = {key: value for key, value in before.items() if key not in mine}
                merged[name] = {**before, **mine}
        for name, value in kept.items():
            if what := object_in(value):
                raise ValueError(
                    f"{where}: {name} was {what}, which a file does not hold; give it again, as "
                    f"{name}=..."
                )
        _check_code(kept, where, bool(changes.get("trust")))
        return cls(**{**kept, **changes, **merged})


class TrainFields(TypedDict, total=False):
    """The keyword arguments of `agents.train`: fields of `TrainConfig`."""

    total_timesteps: int | None
    dialogues: int | None
    keep_dialogues: Sequence[int]
    n_envs: int | None
    workers: int
    seed: int
    env_kwargs: Mapping[str, Any] | None
    hyperparameters: Mapping[str, Any] | None
    hyperparameters_file: str | Path | None
    data: Data | None
    init_from: str | Path | None
    log_dir: str | Path | None
    device: str
    threads: int | None
    log_interval: int | None
    eval_freq: int
    eval_episodes: int
    samples: int | None
    save_freq: int
    checkpoint_every: int
    metrics: MetricSelection | None
    final_episodes: int
    wandb: bool | Mapping[str, Any]
    progress_bar: bool
    verbose: int
    resume: bool
    force: bool
    trust: bool


def _check_mapping(name: str, value: Any, where: str) -> None:
    if not isinstance(value, Mapping | None) or not all(isinstance(k, str) for k in value or ()):
        raise ValueError(f"{where}: expected {name} to be a mapping of names, got {value!r}")


def _check_code(given: Mapping[str, Any], where: str, trust: bool) -> None:
    """Raises ValueError for code that an untrusted file names and the caller does not."""
    from agents.training.hyperparameters import check_classes  # which loads PyTorch

    check_names(given.get("env_kwargs"), where, trust)
    check_classes(given.get("hyperparameters") or {}, where, trust)
    check_names((given.get("hyperparameters") or {}).get("stream"), where, trust)
    check_classes({"metrics": given.get("metrics")}, where, trust)
    env_id, algorithm = str(given.get("env_id", "")), str(given.get("algorithm", ""))
    if env_id and not trust:
        check_id(env_id, where)
    if ":" in algorithm and not (trust or named(algorithm) or is_allowed(algorithm)):
        raise distrusted(algorithm, where)
