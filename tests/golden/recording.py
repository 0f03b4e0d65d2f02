"""Golden transcripts: what was said, its token ids and rewards, one file for each id.

Fingerprints of the rules of some ids lie beside them. Record both again, after a change that is
meant, with ``python -m tests.golden.recording``: where dialogues have changed it asks for another
`Task.version`, so that rows of results tell by which rules they were played.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import gymnasium as gym
import numpy as np

from dialgym.experiments.rules import rules_of
from dialgym.io.objects import load
from dialgym.registry import entries, entry_of
from dialgym.tasks import ExactPosterior, entropy
from dialgym.testing.views import spell

FOLDER = Path(__file__).parent / "transcripts"
RULES = "fingerprints.json"
"""Beside the folder."""
FINGERPRINTS = (
    "dialgym/Wordle-20-v0", "dialgym/SlotFilling-act-v0", "dialgym/SlotFilling-v0",
    "dialgym/SlotFilling-Domains-act-v0",
    "dialgym/DailyDialog-v0", "dialgym/Comments-v0", "dialgym/Logged-v0", "dialgym/MultiWOZ-act-v0",
    "dialgym/TwentyQuestions-8-v0", "dialgym/VisualDialogue-100-v0",
    "dialgym/Bargain-v0", "dialgym/Bargain-act-v0",
    "dialgym/CarDealer-v0", "dialgym/CarDealer-act-v0",
    "dialgym/Endgames-Queen-v0", "dialgym/Endgames-Queen-act-v0",
    "dialgym/ServiceDesk-v0", "dialgym/ServiceDesk-act-v0", "dialgym/ServiceDesk-Phone-act-v0",
    "dialgym/Maze-v0", "dialgym/Maze-Partial-act-v0",
    "dialgym/TextNav-v0", "dialgym/TextNav-Partial-act-v0",
)  # fmt: skip
"""An id of each task, at least."""
GAMES = 4
SPEAKER = "random-mixture"
SETTINGS = {"DailyDialog": {"rewards": {"meteor": 1.0}}}
"""By task, where the default differs a little between machines, as a classifier that is fitted."""
CHOOSERS = {
    "SlotFilling": ("handcrafted", "random"),
    "SlotFillingDomains": ("handcrafted", "random"),
    "MultiWOZ": ("rule", "random"),
    "TwentyQuestions": ("greedy", "random"),
    "Bargain": ("conceding", "random"),
    "CarDealer": ("dealer", "optimal"),
    "Endgames": ("optimal", "greedy"),
    "ServiceDesk": ("careful", "random"),
    "Maze": ("optimal", "random"),
    "TextNav": ("optimal", "random"),
}
"""By task, who plays its act views, in turns."""


def recorded_ids() -> list[str]:
    """All ids, but for the texts of what is recorded as acts and as tokens."""
    found = entries().values()
    return [e.id for e in found if e.view != "utterance" or "act" not in e.row.views]


def path_of(env_id: str) -> Path:
    """The file of an id."""
    return FOLDER / f"{env_id.removeprefix('dialgym/')}.txt"


def record(env_id: str) -> str:
    """Some games of a fixed policy with fixed seeds, a line for each thing said."""
    task = load(entry_of(env_id).row.task)
    env = gym.make(env_id, **SETTINGS.get(task.name, {})).unwrapped
    if hasattr(env, "act_names"):
        return record_acts(env, env_id)
    known = env.task.speakers["system"]
    names = [SPEAKER] if SPEAKER in known else [next(iter(known)), "random"]
    lines = [f"# {env_id}, {', '.join(names)}, seeds 0-{GAMES - 1}; written by "
             "tests/golden/recording.py"]  # fmt: skip
    for seed in range(GAMES):
        speaker = env.task.speaker_named("system", names[seed % len(names)])
        lines += [f"game {seed}", *play(env, speaker, seed)]
    return "\n".join(lines) + "\n"


def play(env, speaker, seed: int) -> list[str]:
    """One game through the env's own view."""
    env.reset(seed=seed)
    words = np.random.default_rng([seed, 1])
    lines, over = [], False
    while not over:
        text = speaker.reply(env.task, env.dialogue.state, words)
        observation, reward, terminated, truncated, info = say(env, text)
        lines.append(f"  {text} -> {info['reply']} | reward {reward:g} turn {info['turn']}")
        over = terminated or truncated
    lines.append(f"  success {info['is_success']} terminated {terminated}")
    if not isinstance(observation, str):
        lines.append("  tokens " + " ".join(map(str, observation[observation > 0])))
    return lines


def record_acts(env, env_id: str) -> str:
    """The same of an act view, with what is believed and what may be chosen."""
    choosers = CHOOSERS[env.task.name]
    lines = [f"# {env_id}, {', '.join(choosers)}, seeds 0-{GAMES - 1}; written by "
             "tests/golden/recording.py", f"# {', '.join(env.act_names)}"]  # fmt: skip
    for seed in range(GAMES):
        name = choosers[seed % len(choosers)]
        lines += [f"game {seed}, {name}", *play_acts(env, name, seed)]
    return "\n".join(lines) + "\n"


def play_acts(env, name: str, seed: int) -> list[str]:
    """One dialogue of a scripted policy."""
    env.reset(seed=seed)
    policy, rng = env.acts.policy_named(name), np.random.default_rng([seed, 1])
    heard = env.task.transcript(env.dialogue.state, "system")
    lines, over = [f"  {line.text}" for line in heard[-1:]], False
    while not over:
        lines += believed(env)
        chosen = policy.act(env.task, env.dialogue.state, rng)
        _, reward, terminated, truncated, info = env.step(chosen)
        over = terminated or truncated
        said = f"{named(env, chosen)} {info['utterance']} -> {info['reply']}"
        lines.append(f"  {said} | reward {reward:g} turn {info['turn']}")
    goal = env.task.transcript(env.dialogue.state, "user")[0].text
    return [*lines, f"  success {info['is_success']} goal {goal}"]


def named(env, chosen) -> str:
    """The name of an act, or the numbers of several."""
    if env.acts.multiple:
        return f"{np.flatnonzero(chosen).tolist()}"
    return env.act_names[chosen]


def believed(env) -> list[str]:
    """The best values, the method, what is asked for, and the mask; of others, what is seen.

    Where the posterior is known, its entropy and what is likeliest.
    """
    if isinstance(env.task, ExactPosterior):
        belief = env.task.posterior(env.dialogue.state)
        places = np.argsort(-belief, kind="stable")[:3]
        likely = [f"{place} {belief[place]:.3f}" for place in places]
        allowed = int(env.action_masks().sum())
        return [f"    {entropy(belief):.3f} bits; {', '.join(likely)}; allowed {allowed}"]
    if not hasattr(env.dialogue.state, "summary"):
        seen = np.flatnonzero(env.acts.observe(env.dialogue.state)).tolist()
        return [f"    seen {seen}; allowed {int(env.action_masks().sum())}"]
    summary = env.dialogue.state.summary
    best = [f"{slot} {b.value} {b.p:.2f}" for slot, b in summary.best.items() if b.p > 0]
    asked = f"asked {' '.join(summary.requested) or '-'}"
    mask = "".join("01"[int(free)] for free in env.action_masks())
    return [f"    {', '.join(best) or '-'}; {summary.method}; {asked}; mask {mask}"]


def say(env, text: str):
    """An utterance, token by token where the env wants tokens."""
    if isinstance(env.action_space, gym.spaces.Text):
        return env.step(text)
    for token in spell(env, env.learner, text):
        result = env.step(token)
    return result


def fingerprint(env_id: str) -> dict[str, int | str]:
    """The rules of an id, in settings that are alike on all machines."""
    task = load(entry_of(env_id).row.task)
    return rules_of(env_id, SETTINGS.get(task.name))._asdict()


def save(folder: Path, env_ids: Sequence[str]) -> None:
    """Write transcripts, and the fingerprints beside their folder.

    Raises:
        ValueError: dialogues have changed, and the version of their task has not.
    """
    file = folder.parent / RULES
    before = json.loads(file.read_text()) if file.exists() else {}
    rules = {env_id: fingerprint(env_id) for env_id in FINGERPRINTS}
    texts = {folder / path_of(env_id).name: record(env_id) for env_id in env_ids}
    moved = [
        i for i, path in zip(env_ids, texts) if path.exists() and path.read_text() != texts[path]
    ]
    moved += [i for i in before if i in rules and before[i]["dialogues"] != rules[i]["dialogues"]]
    if same := unversioned(moved, before):
        raise ValueError(
            f"the dialogues of {', '.join(same)} have changed: raise `version` of the task's class "
            "and say in its docstring what has changed. Where only the form of recordings has, "
            f"remove {RULES} first."
        )
    for path, text in texts.items():
        path.write_text(text)
    file.write_text(json.dumps(rules, indent=1) + "\n")


def unversioned(moved: Sequence[str], before: Mapping[str, Mapping[str, int | str]]) -> list[str]:
    """The ids whose task has the version that it had before."""
    had = {entry_of(env_id).row.task: rules["task_version"] for env_id, rules in before.items()}
    return [
        i
        for i in dict.fromkeys(moved)
        if had.get(task := entry_of(i).row.task) == load(task).version
    ]


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    save(FOLDER, recorded_ids())
