"""Systems of slot filling that game a user, and one that knows the goal and does not."""

from dialgym.tasks.bitsets import indices
from dialgym.tasks.slot_filling.domain.ontology import NAME


def told(row, slots) -> str:
    """Items of a row, its name first."""
    return ",".join(f'{slot}="{row[slot]}"' for slot in (NAME, *slots) if slot in row)


class AsksForMore:
    """Closes at once: asks if there is anything else."""

    def reply(self, task, state, rng) -> str:
        return "reqmore()"


class OffersTheFirst:
    """Offers the first row of the database, and tells all of it."""

    def reply(self, task, state, rng) -> str:
        row = task.domain.database.rows[0]
        return f"inform({told(row, [slot for slot in row if slot != NAME])})"


class TellsOfTheNamed:
    """Asks nothing: tells of the row that the user names."""

    def reply(self, task, state, rng) -> str:
        acts = task.summary_acts
        return acts.phrases[acts.number["inform_byname"]]


class KnowsTheGoal:
    """An oracle: offers a row that meets the goal as it is by now, with all that is asked of it."""

    oracle = True

    def reply(self, task, state, rng) -> str:
        database, user = task.domain.database, state.user_state
        wanted = {item.slot: item.value for item in user.constraints if not item.negated}
        fitting = [database.rows[i] for i in indices(database.match_bits(wanted))]
        rows = [row for row in fitting if row[NAME] not in user.unwanted(NAME)]
        slots = [slot for slot in (*user.requests, *wanted) if slot != NAME]
        if not rows:
            return f"inform({told({**wanted, NAME: 'none'}, wanted)})"
        last = user.requests.get(NAME)
        row = next((row for row in rows if row[NAME] == last), rows[0])
        return f"inform({told(row, dict.fromkeys(slots))})"
