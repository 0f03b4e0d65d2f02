"""``dialgym evaluate``, ``report``, ``leaderboard add``: score one policy."""

from collections.abc import Sequence
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

from dialgym.cli.benchmark import (
    ROWS,
    RUNS,
    PanelName,
    default_policies,
    newest_run,
    panel_environments,
    readable_curves,
)
from dialgym.cli.common import (
    Episodes,
    OwnEnv,
    Param,
    Seeds,
    Set,
    Trust,
    add_own,
    check_places,
    complete_ids,
    complete_policies,
    complete_runs,
    console,
    numbers,
    parse_seeds,
    print_results,
    print_tables,
    progress,
    resumable,
    settings,
)
from dialgym.cli.options import set_parameters
from dialgym.cli.over import OPTIONS, over_values
from dialgym.errors import one_of
from dialgym.experiments.panel import Panel, PanelEnvironment, panel_named
from dialgym.io.files import read_json
from dialgym.io.saved_models import ZOO, find_checkpoint

FACTS = (
    *("env_id", "stand_in", "env_kwargs", "algorithm", "policy", "parameters", "device"),
    *("total_timesteps", "dialogues", "seed", "data", "learned", "seconds", "command"),
)
"""Entries of `run.json`, and of the configuration in it, that are shown of a run."""


def evaluate(
    policy: Annotated[
        str,
        typer.Argument(
            help="A registered name, a run or checkpoint, zoo:NAME, a language model's folder or "
            "hf:NAME.",
            autocompletion=complete_policies,
        ),
    ],
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID...]",
            help="The environments; by default where the policy was trained, as it was then.",
            show_default=False,
            autocompletion=complete_ids,
        ),
    ] = None,
    episodes: Episodes = 100,
    seeds: Seeds = "0,1,2",
    num_envs: Annotated[int, typer.Option(min=1, help="Parallel dialogues, for an agent.")] = 128,
    actions: Annotated[
        str | None,
        typer.Option(
            metavar="drawn|greedy",
            help="How an agent chooses its actions; by default as it learned, and where that is by "
            "drawing them, both ways.",
            show_default=False,
        ),
    ] = None,
    measures: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="Of replies, in tasks of replies: rouge1,rougeL,meteor,sacrebleu,intent,words or "
            "any reward.",
            show_default=False,
        ),
    ] = "",
    json: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            help="Where to write the result too, the first of two; all with --over.",
        ),
    ] = None,
    trust: Trust = False,
    set_: Set = None,
    param: Param = None,
    **curve: Any,
) -> None:
    """Score one policy: returns, success, normalised score, 95 % intervals."""
    from dialgym.experiments import evaluate as run
    from dialgym.experiments.over import over_as_table, write_over
    from dialgym.experiments.result import DRAWN, GREEDY
    from dialgym.experiments.shortfall import best_response, describe_shortfalls

    if actions is not None:
        one_of("--actions", actions, (DRAWN, GREEDY), "dialgym evaluate")
    setting, values = over_values(curve["over"], curve["plot"])
    check_places(json, curve["plot"])
    chosen = numbers(seeds)
    each = [settings(set_) | ({setting: value} if setting else {}) for value in values]
    for env_id, env_kwargs in product(ids or () if curve["best"] else (), each):
        best_response(env_id, env_kwargs)

    def score(likeliest: bool | None, env_kwargs: dict[str, Any]) -> Any:
        with progress(policy, len(ids or [policy]) * len(chosen) * episodes) as report:
            return run(
                policy,
                ids or None,
                episodes,
                chosen,
                env_kwargs,
                num_envs=num_envs,
                deterministic=likeliest,
                trust=trust,
                report=report,
                policy_kwargs=settings(param, "--param"),
                measures=[name for name in measures.split(",") if name],
            )

    results = []
    for env_kwargs in each:
        results.append(score(None if actions is None else actions == GREEDY, env_kwargs))
        if actions is None and results[-1].actions == DRAWN:
            results.append(score(True, env_kwargs))
    if setting:
        console.print(over_as_table(results, setting, console.width))
        write_over(results, setting, json, curve["plot"])
    else:
        print_results(results)
        if json:
            results[0].to_json(json)
    for text in describe_shortfalls(results) if curve["best"] else ():
        console.print(text, soft_wrap=True)


set_parameters(evaluate, OPTIONS)


def report(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RUN...]",
            help="Folders of runs in one environment, zoo:NAME, or one of stored dialogues; by "
            f"default the newest run in {RUNS}/.",
            show_default=False,
            autocompletion=complete_runs,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The HTML file; by default report.html in the first run.")
    ] = None,
    episodes: Episodes = 100,
    seeds: Seeds = "0",
    games: Annotated[int, typer.Option(min=0, help="Dialogues to show.")] = 3,
    env: OwnEnv = None,
    trust: Trust = False,
) -> None:
    """Write a page about a run: settings, learning curve, scores, dialogues beside other policies'.

    It is one file, which needs no network. The run's model plays beside a random policy and the
    best scripted one. Of stored dialogues, and of a run in a task with goals by domain, it has an
    analysis: success by domain, unanswered requests, misheard acts, loops, and the most frequent
    failures with links to dialogues.
    """
    add_own(env)
    folders = [_folder_of(run) for run in runs or [_newest()]]
    if len(folders) == 1 and _are_dialogues(folders[0]):
        _analyze(folders[0], out, trust)
        return
    from dialgym.experiments import benchmark
    from dialgym.experiments.pages import plain_facts, write_report

    entry, settings, models = _where_trained(folders, trust)
    target = out or (Path() if _is_of_zoo(runs) else folders[0]) / "report.html"
    check_places(target)
    names = _names(folders)
    policies: dict[str, Any] = {name: name for name in default_policies([entry.id])}
    policies |= dict(zip(names, models))
    chosen = numbers(seeds)
    with progress("episodes", len(policies) * len(chosen) * episodes) as advance:
        outcome = benchmark(
            policies, [entry], episodes, chosen, settings,
            games=games, curves=readable_curves(folders), trust=trust, report=advance,
        )  # fmt: skip
    record = _record(folders[0]) if len(folders) == 1 else {}
    title = f"{', '.join(names)} in {entry.id.rpartition('/')[2]}"
    chosen_before = record.get("hyperparameters") or {}
    facts, parameters = plain_facts(record, FACTS), plain_facts(chosen_before, chosen_before)
    analysis = _analysis(entry, settings, models[0], episodes, chosen[0], trust)
    write_report(target, outcome, title, facts, parameters, analysis)
    console.print(f"open {target}", soft_wrap=True)


def _is_of_zoo(runs: list[Path] | None) -> bool:
    """Return True where the first run is an agent of the zoo, whose folder is left as it is."""
    return bool(runs) and str(runs[0]).startswith(ZOO)  # type: ignore[index]


def _folder_of(run: Path) -> Path:
    """The folder of a run, or of an agent of the zoo by its name."""
    agent = find_checkpoint(run) if str(run).startswith(ZOO) else None
    return run if agent is None else agent.parent


def _are_dialogues(folder: Path) -> bool:
    """Return True for a folder of `dialgym collect`, or one of its files."""
    return folder.suffix == ".parquet" or any(folder.glob("*.parquet"))


def _analyze(source: Path, out: Path | None, trust: bool) -> None:
    """Write the page about stored dialogues, and print its tables."""
    from dialgym.datasets import load_dataset
    from dialgym.experiments.analysis import analyze
    from dialgym.experiments.analysis_page import write_analysis

    dataset = load_dataset(source, trust=trust)
    found = analyze(dataset)
    print_tables(found)
    target = out or (source if source.is_dir() else source.parent) / "report.html"
    write_analysis(target, found, dataset, f"Dialogues of {source.name}")
    console.print(f"open {target}", soft_wrap=True)


def _analysis(
    entry: Any, settings: dict[str, Any], model: Any, episodes: int, seed: int, trust: bool
) -> str:
    """Analyze dialogues of a model, as HTML; empty where the task has no findings by domain."""
    from dialgym.rollouts.player import make_dialogue
    from dialgym.tasks import Task

    task = type(make_dialogue(entry, settings).task)
    if task.findings is Task.findings or find_spec("pyarrow") is None:
        return ""
    from dialgym.datasets import collect
    from dialgym.experiments.analysis import analyze
    from dialgym.experiments.analysis_page import analysis_sections

    dataset = collect(entry, model, episodes, seed, env_kwargs=settings, trust=trust)
    return analysis_sections(analyze(dataset), dataset)


def _newest() -> Path:
    newest = newest_run(RUNS)
    if newest is None:
        raise FileNotFoundError(
            f"report: there is no run in {RUNS}/ here. Name the folder of one, or train one with "
            "`dialgym train ppo Wordle-20-v0`."
        )
    return newest


def _where_trained(folders: list[Path], trust: bool) -> tuple[Any, dict[str, Any], list[Any]]:
    """The environment of runs, its settings, and their models."""
    from dialgym.rollouts.player import open_where_trained

    trained = [open_where_trained(folder, trust) for folder in folders]
    trained_in = [(entry.id, settings) for _, entry, settings in trained]
    for folder, environment in zip(folders, trained_in):
        if environment != trained_in[0]:
            raise ValueError(
                f"report: expected runs in one environment; got {folders[0]} in {trained_in[0]} "
                f"and {folder} in {environment}. Write a report of each."
            )
    return trained[0][1], trained[0][2], [model for model, _, _ in trained]


def _names(folders: list[Path]) -> list[str]:
    names = [folder.resolve().name for folder in folders]
    return names if len({*names}) == len(names) else [str(folder) for folder in folders]


def _record(folder: Path) -> dict[str, Any]:
    """The entries of `run.json`, those of the configuration beside the others."""
    try:
        record = read_json(folder / "run.json", "a run")
    except FileNotFoundError:
        return {}
    return {**record.get("config", {}), **record} if isinstance(record, dict) else {}


# Rows of your own


def add(
    panel: PanelName,
    policies: Annotated[
        list[str],
        typer.Argument(
            metavar="POLICY...",
            help="Runs or checkpoints, one for each seed; or a registered policy, openai:MODEL, or "
            "MODULE:CLASS.",
        ),
    ],
    name: Annotated[str | None, typer.Option(help="What the table calls it.")] = None,
    envs: Annotated[
        str | None,
        typer.Option(metavar="ID,ID,...", help="Environments of the panel; all by default."),
    ] = None,
    seeds: Annotated[
        str, typer.Option(metavar="N", help="Of a policy that is not trained: how many, or which.")
    ] = "1",
    out: Annotated[Path, typer.Option(help="Folder of all panels' rows.")] = ROWS,
    trust: Trust = False,
    param: Param = None,
) -> None:
    """Score a model or policy of your own by a panel's protocol: it joins the table.

    -p is a setting of the policy: of a model how it speaks (beta, temperature ...), of openai:MODEL
    base_url=URL, record=TAPE ... The row keeps it, and its name tells, unless --name does.
    """
    from dialgym.experiments.protocol import score_policy
    from dialgym.experiments.row import SCRIPTED, check_name, name_with_settings, policy_of_row
    from dialgym.io.saved_models import find_checkpoint
    from dialgym.rollouts.policies import policy_name
    from dialgym.simulators.language_model import is_language_model, language_model, row_name
    from dialgym.trust import is_code

    chosen = panel_named(panel)
    given = settings(param, "--param")
    served = language_model(policies[0], **given) if is_language_model(policies[0]) else None
    own = {} if served else given
    plain = policy_name(policies[0]).replace(":", ".")
    default = row_name(served) if served else name_with_settings(plain, own) if own else plain
    called = check_name(default if name is None else name, "--name")
    models = [find_checkpoint(policy) is not None for policy in policies]
    if not all(models) and (any(models) or len(policies) > 1):
        raise ValueError(
            "add: expected checkpoints, one for each seed, or one policy; got "
            f"{', '.join(policies)}"
        )
    work = _trainings(chosen, policies, trust) if all(models) else [
        (policies[0], environment, seed, SCRIPTED)
        for seed in parse_seeds(seeds)
        for environment in panel_environments(chosen, envs)
    ]  # fmt: skip
    for policy, environment, seed, actions in work:
        trusted = trust or is_code(policy)  # it was typed
        scored = served or policy_of_row(policy, {"policy_kwargs": own})
        with resumable():
            file = score_policy(chosen, environment, scored, called, seed, out, actions, trusted)
        console.print(f"wrote {file}", style="dim", soft_wrap=True)
    console.print(f"dialgym leaderboard show {panel} --results {out}", style="dim", soft_wrap=True)


def _trainings(
    panel: Panel, policies: Sequence[str], trust: bool
) -> list[tuple[str, PanelEnvironment, int, str]]:
    """Models with environments, seeds and actions; those of an environment are seeds 0, 1, 2.

    Raises:
        ValueError: two are the same, or one was not trained as the panel says.
    """
    from dialgym.experiments.row import model_hash
    from dialgym.io.saved_models import find_checkpoint

    trainings: list[tuple[str, PanelEnvironment, int, str]] = []
    known: dict[str, str] = {}
    for policy in policies:
        digits = str(model_hash(find_checkpoint(policy) or Path(policy)))
        if digits in known:
            raise ValueError(
                f"add: expected checkpoints of different trainings, got one as {known[digits]} and "
                f"as {policy}: one training counts once. Leave one out."
            )
        known[digits] = policy
        environment, actions = _trained_in(panel, policy, trust)
        seed = sum(1 for _, other, _, _ in trainings if other.id == environment.id)
        trainings.append((policy, environment, seed, actions))
    return trainings


def _trained_in(panel: Panel, policy: str, trust: bool) -> tuple[PanelEnvironment, str]:
    """The environment of a model, and how it chose its actions there."""
    from dialgym.experiments.protocol import training_actions
    from dialgym.rollouts.player import open_where_trained

    opened, entry, settings = open_where_trained(policy, trust)
    environment = panel.environment(entry.id)
    if dict(settings) != dict(environment.settings):
        raise ValueError(
            f"{policy} was trained with the settings {settings}; the panel {panel.label} plays "
            f"{environment.short} with {dict(environment.settings)}"
        )
    return environment, training_actions(opened)
