"""Parts of tasks by ``module:name``: all are there, a wrong name says so, objects do as well."""

import pytest

from dialgym.io.objects import load, resolve
from dialgym.registry import entries, make_task
from dialgym.tasks import Task
from dialgym.tasks.wordle import Wordle
from dialgym.tasks.wordle.policies import Expert, Host

FIRST = {entry.row.task: entry for entry in reversed([*entries().values()])}


@pytest.mark.parametrize("entry", FIRST.values(), ids=FIRST)
def test_every_name_in_the_tables_of_a_task_is_there(entry):
    task: Task = make_task(entry, {})
    parts = [part for named in task.speakers.values() for part in named.values()]
    assert all(callable(resolve(part, "part")) for part in (*parts, *task.generators.values()))
    assert not task.act_classes or set(task.acts) == set(task.act_classes)
    for party, (simulator, batch) in task.batches.items():
        assert party in task.parties
        assert load(simulator) in [resolve(part, "part") for part in parts]
        assert type(task.batch(2, party, load(simulator)())) is load(batch)


class Misnamed(Wordle):
    speakers = {
        "user": {"host": Host},
        "system": {
            "expert": "dialgym.tasks.wordle.policies:Exprt",
            "gone": "dialgym.tasks.wordle.polices:Expert",
            "bare": "Expert",
            "given": Expert,
        },
    }


def test_a_speaker_can_be_a_class():
    assert isinstance(Misnamed().speaker_named("system", "given"), Expert)
    assert Misnamed().batch(2, "system", Host()) is not None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("expert", r"speaker 'expert' of Wordle .*has no 'Exprt'\. Did you mean 'Expert'"),
        ("gone", r"speaker 'gone' of Wordle .*no module 'dialgym.tasks.wordle.polices' here"),
        ("bare", r"speaker 'bare' of Wordle 'Expert': expected module:Class"),
    ],
)
def test_a_wrong_name_says_what_and_where(name: str, said: str):
    with pytest.raises(ValueError, match=said):
        Misnamed().speaker_named("system", name)
