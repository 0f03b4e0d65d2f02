"""Files that want to run code, or to fill the memory: each is read in its own process.

``python -m tests.support.hostile_files FOLDER`` writes and reads all of them there, and prints as
JSON, by name, what came of each: the error's kind and text, CPU seconds, and how many MB the peak
of memory rose. A process has 10 CPU-seconds and may map 1 GB more than it had.
"""

import json
import os
import pickle
import resource
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path

import datasets.io.parquet  # noqa: F401  here, and not in each process; scipy.io likewise
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.io  # noqa: F401

import dialgym
from dialgym.datasets.schema import schema
from dialgym.experiments.benchmark import load_results
from dialgym.experiments.curves import read_curve
from dialgym.experiments.result import Result
from dialgym.io.files import read_json, read_yaml
from dialgym.io.tables import read_rows
from dialgym.tasks.slot_filling.domain.domain import load_domain
from dialgym.tasks.wordle.game_pickle import read_game_pickle

MARK = "code-was-run"
SECONDS, MEMORY = 10, 2**30


class Bomb:
    """Its pickle writes a file when it is read."""

    def __reduce__(self) -> tuple:
        return open, (MARK, "w")


def wrote(name: str, content: str | bytes) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


TAG = f"!!python/object/apply:os.mknod [{MARK}]"
LAUGHS = "a0: &a0 {k: x}\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)
)
MERGES = "a0: &a0 {k: x}\n" + "".join(
    f"a{i}: &a{i}\n  <<: [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)
)

DEEP: list = []
for _ in range(40):
    DEEP = [DEEP, DEEP]
LAUGHING = {"state_actions": [{"state": DEEP, "actions": [DEEP]}]}


def stored(name: str = "dialogues.parquet", **columns: str) -> Path:
    """A dialogue whose columns say this."""
    row = {
        "turns": [{"party": "user", "text": "hello", "said": False, "reward": 0.0, "tokens": None}],
        **dict.fromkeys(("terminated", "truncated", "success"), True),
        "env": "dialgym/DailyDialog-v0",
        "settings": "{}",
        "options": "{}",
        "learner": "system",
        "policy": "random",
        "vocabulary": "",
        "acts": "",
        "kind": "",
        "seed": 0,
        "episode": 0,
        "source": -1,
        "branch": 0,
        **columns,
    }
    pq.write_table(pa.Table.from_pylist([row], schema=schema()), name)
    return Path(name)


def tokens(**columns: str) -> None:
    dialgym.load_dataset(stored(**columns)).tokens()


def repeated(name: str, rows: int, text: str, **more: pa.Array) -> Path:
    """A text that is there once, and counts `rows` times."""
    indices = pa.array(np.zeros(rows, np.int32))
    same = pa.DictionaryArray.from_arrays(indices, pa.array([text]))
    pq.write_table(pa.table({"comment": same, **more}), name, store_schema=False)
    return Path(name)


def footer(name: str, length: int) -> Path:
    """A Parquet file that says that its metadata is so long."""
    return wrote(name, b"PAR1" + b"\xff" * 64 + length.to_bytes(4, "little") + b"PAR1")


def database(sql: str) -> Path:
    """A domain with a database made by `sql`."""
    rules = {"type": "Bars", "requestable": ["name"], "system_requestable": ["area"]}
    rules |= {"type": "Bars", "informable": {"name": ["a"], "area": ["x"]}}
    wrote("Bars-rules.json", json.dumps(rules))
    Path("Bars-dbase.db").unlink(missing_ok=True)
    connection = sqlite3.connect("Bars-dbase.db")
    connection.executescript(sql)
    connection.close()
    return Path("Bars")


def result(policy: str) -> None:
    """A result that names code wherever it may name anything."""
    episodes = {"returns": [[0.0]], "solved": [[True]], "lengths": [[1]], "scores": None}
    content = {
        "policy": policy,
        "seeds": [0],
        "env_kwargs": {"simulator": policy, "rewards": {policy: {}}},
        "stand_ins": {policy: policy},
        "environments": {policy: episodes},
    }
    path = wrote("result.json", json.dumps(content))
    Result.from_json(path).to_markdown()
    load_results(wrote("results.json", json.dumps({"results": [content]})))
    raise ValueError("it was read, and names nothing but itself")


def curve(content: str) -> None:
    wrote("run/learning_curve.csv", "timesteps,mean_return\n1,2\n")
    wrote("run/config.yml", content)
    read_curve("run")
    raise ValueError("it was read, without references")


def loaded_array(content: bytes) -> None:
    from dialgym.tasks.visual_dialogue.image_features import read_features

    read_features(wrote("features.npy", content), [1])


EVIL = "evil:Thing"
CASES: dict[str, Callable[[], object]] = {
    "yaml: tag in a file": lambda: read_yaml(wrote("a.yml", f"a: {TAG}")),
    "yaml: tag in a domain": lambda: load_domain(wrote("a.yml", f"rows: {TAG}")),
    "yaml: tag in rewards": lambda: dialgym.make(
        "SlotFilling-v0", rewards=str(wrote("a.yml", f"turn: {TAG}"))
    ),
    "yaml: tag in a card": lambda: [
        wrote("data/README.md", f"---\nconfigs: {TAG}\n---\n"),
        dialgym.make("Comments-v0", data=str(wrote("data/a.jsonl", '{"comment": "x"}').parent)),
    ],
    "yaml: tag in a run": lambda: curve(TAG),
    "yaml: run of code": lambda: curve(f"env_id: {EVIL}"),
    "yaml: laughs": lambda: read_yaml(wrote("a.yml", LAUGHS)),
    "yaml: laughs by merges": lambda: read_yaml(wrote("a.yml", MERGES)),
    "yaml: laughs in a domain": lambda: load_domain(wrote("a.yml", LAUGHS)),
    "yaml: an alias of itself": lambda: read_yaml(wrote("a.yml", "&a [*a]")),
    "yaml: deep": lambda: read_yaml(wrote("a.yml", "[" * 1_000_000)),
    "yaml: deep by dashes": lambda: read_yaml(wrote("a.yml", "- " * 100_000)),
    "json: deep": lambda: read_json(wrote("a.json", "[" * 10_000_000)),
    "json: deep objects": lambda: read_json(wrote("a.json", '{"a":' * 1_000_000)),
    "json: deep rows": lambda: list(read_rows(wrote("a.jsonl", "[" * 10_000_000))),
    "json: a number of a million digits": lambda: read_json(wrote("a.json", "9" * 1_000_000)),
    "json: rows that are none": lambda: list(read_rows(wrote("a.jsonl", "1\n" * 1_000_000))),
    "json: a result of code": lambda: result(EVIL),
    "csv: an endless cell": lambda: list(read_rows(wrote("a.csv", 'a\n"' + "x" * 50_000_000))),
    "parquet: rewards": lambda: tokens(settings=json.dumps({"rewards": {EVIL: {"args": MARK}}})),
    "parquet: a reward by another name": lambda: tokens(
        settings=json.dumps({"rewards": {"kind": {"reward": EVIL}}})
    ),
    "parquet: simulator": lambda: tokens(settings=json.dumps({"simulator": EVIL})),
    "parquet: simulator with settings": lambda: tokens(
        settings=json.dumps({"simulator": {"name": "subprocess:Popen", "args": ["touch", MARK]}})
    ),
    "parquet: simulator to be trusted": lambda: tokens(
        settings=json.dumps({"simulator": {"name": "agents:ActAgent", "model": "m", "trust": True}})
    ),
    "parquet: simulator with a longer name": lambda: tokens(
        settings=json.dumps({"simulator": f"{EVIL}:x"})
    ),
    "parquet: a stage without a colon": lambda: tokens(
        env="dialgym/MultiWOZ-v0", settings=json.dumps({"tracker": "evil"})
    ),
    "parquet: environment": lambda: tokens(env=EVIL),
    "parquet: environment of a module": lambda: tokens(env="evil:Thing-v0"),
    "parquet: a server": lambda: tokens(
        env="dialgym/VisualDialogue-v0", settings=json.dumps({"guesser": "remote:http://a.b/"})
    ),
    "parquet: deep settings": lambda: tokens(settings="[" * 1_000_000),
    "parquet: a text of 10 GB": lambda: list(
        read_rows(repeated("a.parquet", 100_000, "x" * 100_000))
    ),
    "parquet: dialogues of 10 GB": lambda: dialgym.load_dataset(
        repeated("a.parquet", 100_000, "x" * 100_000)
    ),
    "parquet: rows without end": lambda: list(read_rows(repeated("a.parquet", 9_000_000, ""))),
    "parquet: a long footer": lambda: list(read_rows(footer("a.parquet", 2**31 - 1))),
    "parquet: a short footer": lambda: dialgym.load_dataset(footer("a.parquet", 60)),
    "games: a pickle": lambda: read_game_pickle(wrote("a.pkl", pickle.dumps(Bomb()))),
    "games: laughs": lambda: read_game_pickle(wrote("a.pkl", pickle.dumps(LAUGHING))),
    "array: a pickle": lambda: loaded_array(pickle.dumps(Bomb())),
    "array: objects": lambda: [
        np.save("a.npy", np.array([Bomb()], object), allow_pickle=True),
        loaded_array(Path("a.npy").read_bytes()),
    ],
    "database: computed columns": lambda: load_domain(
        database("CREATE TABLE Bars(name, area AS (hex(zeroblob(100000000)))); "
                 "INSERT INTO Bars(name) VALUES (1);")
    ),
    "database: a view without end": lambda: load_domain(
        database("CREATE VIEW Bars AS WITH RECURSIVE n(name) AS "
                 "(SELECT 1 UNION ALL SELECT name + 1 FROM n) SELECT * FROM n;")
    ),
    "database: none": lambda: [
        database(""), wrote("Bars-dbase.db", pickle.dumps(Bomb())), load_domain(Path("Bars"))
    ],
}  # fmt: skip


def attempt(read: Callable[[], object]) -> dict[str, object]:
    """Result of reading in this process."""
    base, begun = _mapped(), time.process_time()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS + int(begun) + 1, SECONDS + int(begun) + 1))
    resource.setrlimit(resource.RLIMIT_AS, (base + MEMORY, base + MEMORY))
    try:
        read()
        kind, text = "none", ""
    except Exception as error:
        kind, text = type(error).__name__, str(error)
        expected = isinstance(error, (ValueError, OSError)) and not isinstance(error, MemoryError)
        kind = "clear" if expected else kind
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return {"kind": kind, "text": text[:300], "seconds": time.process_time() - begun, "MB": grown}


def _mapped() -> int:
    return int(Path("/proc/self/statm").read_text("utf-8").split()[0]) * resource.getpagesize()


def apart(name: str, folder: Path) -> dict[str, object]:
    """Result of one case, in its own process and folder."""
    place = folder / name.replace(":", "").replace(" ", "-")
    place.mkdir()
    ends, starts = os.pipe()
    child = os.fork()
    if not child:
        os.chdir(place)
        wrote("evil.py", f"open({MARK!r}, 'w')\nclass Thing: pass\n")
        sys.path.insert(0, str(place))
        os.write(starts, json.dumps(attempt(CASES[name])).encode())
        os._exit(0)
    os.close(starts)
    _, status = os.waitpid(child, 0)
    with os.fdopen(ends) as answers:
        text = answers.read()
    found = json.loads(text) if text else {"kind": f"ended with {status}", "text": ""}
    return {**found, "ran": (place / MARK).exists()}


if __name__ == "__main__":
    print(json.dumps({name: apart(name, Path(sys.argv[1])) for name in CASES}))
