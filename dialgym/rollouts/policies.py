"""Policies by registered name, object or path to a checkpoint."""

from collections.abc import Callable, Collection, Mapping
from importlib.metadata import entry_points
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dialgym.errors import check_object, unknown
from dialgym.io.hub import SourceError, hub_hint
from dialgym.io.objects import find_object
from dialgym.io.saved_models import (
    CHECKPOINT,
    CONFIGS,
    find_checkpoint,
    find_language_model,
)
from dialgym.kinds import KINDS
from dialgym.optional import namesake
from dialgym.rollouts.episodes import seed_policy
from dialgym.rollouts.random_text import allowed_text
from dialgym.simulators import Speaker
from dialgym.simulators.language_model import (
    SCHEME,
    LanguageModelSpeaker,
    is_language_model,
    language_model,
)
from dialgym.tasks import ActPolicy, Task
from dialgym.trust import distrusted, is_code
from dialgym.views.env_spec import made_from
from dialgym.views.wrappers import replacement

READERS = "dialgym.checkpoints"
"""Entry points that load a saved model from a path."""


@runtime_checkable
class Predictor(Protocol):
    """A policy over the observations of token or act views, in the form of Stable-Baselines3."""

    def predict(
        self,
        observation: np.ndarray,
        state: Any = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, Any]:
        """Actions (N, ...) for observations (N, ...), and the state of a recurrent policy."""
        ...


class AllowedOnly:
    """A policy that knows no masks, with an allowed action in the place of each forbidden one.

    So plays a model that was trained in `dialgym.VectorReplaceForbidden`; it says so by its
    attribute `replace_forbidden`, which is the wrapper's `choose`.

    Args:
        model: with `predict` and `set_random_seed`, of Stable-Baselines3.
    """

    def __init__(self, model: Any) -> None:
        self.model, self.choose = model, model.replace_forbidden
        self.observation_space, self.action_space = model.observation_space, model.action_space
        self.trained_in, self.learns_by_sampling = training_place(model), learns_by_sampling(model)
        self.observation_adapter = observation_adapter(model)
        self.decoded_by = settings_of(model)
        self._rng = np.random.default_rng(0)

    def set_random_seed(self, seed: int) -> None:
        """Seed the model and the replacements."""
        seed_policy(self.model, seed)
        self._rng = np.random.default_rng(seed)

    def predict(
        self,
        observation: np.ndarray,
        state: Any = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
        action_masks: np.ndarray | None = None,
    ) -> tuple[np.ndarray, Any]:
        """Actions (N,) that the masks (N, A) allow; see `Predictor`."""
        answer = self.model.predict(observation, state, episode_start, deterministic)
        actions, state = action_and_state(answer, self.model)
        if action_masks is None:
            return actions, state
        actions = actions.copy()
        forbidden = ~action_masks[np.arange(len(actions)), actions]
        for row in np.flatnonzero(forbidden).tolist():
            mask, action = action_masks[row], int(actions[row])
            actions[row] = replacement(mask, action, self.choose, self._rng)
        return actions, state


def action_and_state(answer: Any, policy: Any) -> tuple[Any, Any]:
    """The two parts of an answer of `predict`; a ValueError where it is no pair."""
    if isinstance(answer, tuple) and len(answer) == 2:
        return answer
    raise ValueError(
        f"{type(policy).__name__}.predict: expected a pair, actions and a state (None without one);"
        f" got {answer!r:.80}."
    )


def learns_by_sampling(policy: Any) -> bool:
    """Tell if a policy's actions are drawn from a distribution while it learns.

    Otherwise the best one by value is taken, but for exploration, or nothing is played. What draws
    is evaluated as it learned, by drawing: its likeliest actions are other, and often worse,
    dialogues. A policy may say so by an attribute of this name; on-policy algorithms of
    Stable-Baselines3, which keep a rollout, need not.
    """
    said = getattr(policy, "learns_by_sampling", None)
    return hasattr(policy, "rollout_buffer_class") if said is None else bool(said)


Policy = str | PathLike[str] | Mapping[str, Any] | Speaker | ActPolicy | Predictor


class IncompatiblePolicyError(ValueError):
    """The policy was made for other observations or actions than the environment has."""


class RandomText:
    """Says anything that the task's constraint allows; anything at all where it has none.

    The policy `random` of a task that names none of its own.
    """

    def reply(self, task: Task, state: Any, rng: np.random.Generator) -> str:
        """See `dialgym.simulators.Speaker`."""
        party = task.speaker(state)
        return allowed_text(task, party, task.constraint(state, party), rng)


def policy_name(policy: Policy) -> str:
    """Name of a policy in tables: its registered name, its run or checkpoint, or its class."""
    if isinstance(policy, LanguageModelSpeaker):
        return policy.name
    if not isinstance(policy, (str, PathLike)):
        return type(policy).__name__
    if is_language_model(policy):
        return str(policy)
    path = Path(policy)
    return path.parent.name or path.stem if path.name == CHECKPOINT else path.name


def with_own_settings(
    policy: Any, settings: Mapping[str, Any] | None
) -> tuple[Any, dict[str, Any]]:
    """A policy and its settings, of which a mapping has some beside the policy's ``name``.

    One with a ``model`` in place of a name is of a language model behind a service.

    Raises:
        ValueError: a mapping has neither.
    """
    if not isinstance(policy, Mapping):
        return policy, dict(settings or {})
    own = dict(policy)
    name = own.pop("name", None) or (own.get("model") and SCHEME + str(own.pop("model")))
    if not name:
        raise ValueError(
            "policy: expected a mapping of a name and settings, such as {'name': 'openai:MODEL', "
            f"'base_url': ...}}; got {dict(policy)!r}."
        )
    return name, {**own, **(settings or {})}


def named_policies(
    task: Task, learner: str, view: str, acts_first: bool = False
) -> Mapping[str, Any]:
    """Constructors of the policies of a party, or their ``module:name``, by registered names.

    Args:
        task, learner: the rules, and the party.
        view: on act views there are those that choose acts, too.
        acts_first: a name that stands for both means the one that chooses acts.
    """
    words: dict[str, Callable[..., Any]] = {"random": RandomText}
    spoken = task.speakers.get(learner, {})
    chosen = task.acts[learner].policies if KINDS[view].of_acts and learner in task.acts else {}
    return words | ({**spoken, **chosen} if acts_first else {**chosen, **spoken})


def open_policy(
    policy: Policy,
    named: Collection[str] = (),
    learner: str = "system",
    trust: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> Any:
    """Open a policy: a checkpoint is loaded, ``module:object`` imported; a name stays a name.

    Args:
        policy: of the learner; ``openai:MODEL`` is a language model behind a service. A mapping
            has a ``name`` and settings.
        named: the names that are registered.
        learner: the party.
        trust: a checkpoint may be a pickle, and a module is imported: both can run code of whoever
            made them.
        settings: of how a saved model speaks, see `agents.with_decoding`, or of a language model
            behind a service; those of a name are for who makes it.

    Raises:
        ValueError: it is nothing that could play; the message says what could. Or it would run
            code, and is not trusted. Or it has no such settings.
        FileNotFoundError: there is no such checkpoint.
        ImportError: a checkpoint is given and what reads it cannot be imported.
    """
    policy, settings = with_own_settings(policy, settings)
    if isinstance(policy, (str, PathLike)):
        if policy in named:
            return policy
        if is_language_model(policy):
            return language_model(str(policy), **settings)
        if isinstance(policy, str) and is_code(policy) and not Path(policy).exists():
            policy = _import(policy, trust)
        else:
            policy = _decoded(_load(policy, named, learner, trust), settings)
    if settings and settings_of(policy) != settings:
        raise no_settings(policy, settings)
    if getattr(policy, "replace_forbidden", None):
        return AllowedOnly(policy)
    check_object("policy", policy)
    if isinstance(policy, (Speaker, ActPolicy, Predictor)):
        return policy
    raise ValueError(
        "policy: expected a registered name, a path to a checkpoint, or an object with "
        "reply(task, state, rng) -> str, act(task, state, rng), or predict(observation, state, "
        f"episode_start, deterministic); got {policy!r}."
    )


DECODED = "agents:with_decoding"
"""Function that changes how a saved model speaks."""
DRAWING = ("temperature", "top_k", "top_p")
"""Settings of decoding that say how actions are drawn."""


def _decoded(policy: Any, settings: Mapping[str, Any]) -> Any:
    """A model that was just loaded, with other settings of how it speaks."""
    if not settings:
        return policy
    spoken = find_object(DECODED, "policy")(policy, **settings)
    spoken.decoded_by = dict(settings)
    return spoken


def no_settings(policy: Any, settings: Mapping[str, Any]) -> ValueError:
    """The error for settings that are given with an object."""
    return ValueError(
        f"policy_kwargs are for registered names and saved models; got {dict(settings)!r} with "
        f"{policy_name(policy)!r}. Give the policy its settings yourself."
    )


def settings_of(policy: Any) -> Mapping[str, Any]:
    """Settings of decoding that a saved model was opened with."""
    settings: Mapping[str, Any] = getattr(policy, "decoded_by", {})
    return settings


def plays_by_sampling(policy: Any) -> bool:
    """Tell if a policy draws its actions where nothing else is said.

    One does that learned so, or was opened with settings of drawing.
    """
    return learns_by_sampling(policy) or sets_drawing(settings_of(policy))


def sets_drawing(settings: Mapping[str, Any]) -> bool:
    """Tell if settings of decoding say how actions are drawn."""
    return any(name in settings for name in DRAWING)


def _import(path: str, trust: bool) -> Any:
    """Import the object of ``module:object``, or make one of ``module:Class``."""
    if not trust:
        raise distrusted(path, "policy")
    imported = find_object(path, "policy")
    if not isinstance(imported, type):
        return imported
    try:
        signature(imported).bind()
    except TypeError as error:
        raise ValueError(
            f"policy {path!r}: expected a class that needs no arguments, or an object; got one "
            f"that does ({error}). Make an object of it in its module, and give that "
            "(module:object)."
        ) from error
    return imported()


def _load(path: str | PathLike[str], named: Collection[str], learner: str, trust: bool) -> Any:
    file = find_checkpoint(path) or find_language_model(path)
    if file is None and isinstance(path, str) and not {"/", "\\", "."}.intersection(path):
        error = unknown(f"policy for the {learner}", path, named)
        raise ValueError(
            f"{error} The path of a checkpoint, or of a language model's folder, will do as well."
        )
    if file is None:
        raise SourceError(
            f"policy: expected a checkpoint, a folder with {CHECKPOINT}, or a language model with "
            f"{CONFIGS[0]}, at {str(path)!r}; there is none. Check the path.{hub_hint(str(path))}"
        )
    return checkpoint_reader(file)(file, trust=trust)


def checkpoint_reader(file: Path | str) -> Callable[..., Any]:
    """Loader of saved models: an entry point, so that nothing here knows who trains them.

    It is called with the path and ``trust``, whether pickles may be read.

    Raises:
        ImportError: none is installed, or it cannot be imported.
    """
    for reader in entry_points(group=READERS):
        try:
            read: Callable[..., Any] = reader.load()
        except (ImportError, AttributeError) as error:
            advice = namesake() or 'Install it with: pip install "dialgym[agents]".'
            raise ImportError(
                f"the checkpoint {str(file)!r} is read by {reader.value}, which cannot be imported "
                f"({error}). {advice}"
            ) from error
        return read
    raise ImportError(
        f"the checkpoint {str(file)!r} has no reader: expected an entry point of the group "
        f'{READERS!r}, which dialgym itself brings. Install it with: pip install "dialgym[agents]"'
    )


def takes_masks(policy: Predictor) -> bool:
    """Tell if `predict` has an argument `action_masks`, as MaskablePPO's."""
    return "action_masks" in signature(policy.predict).parameters


def check_fit(policy: Any, env: Any) -> None:
    """Raise an IncompatiblePolicyError where the policy's known spaces are not those of `env`."""
    space = getattr(policy, "observation_space", None)
    seen = getattr(space, "shape", None)
    said = getattr(getattr(policy, "action_space", None), "n", None)
    window, size = env.single_observation_space.shape, env.single_action_space.n
    trained_in = training_place(policy) or {}
    trained = f" It was trained in {describe_place(trained_in)}." if trained_in else ""
    if seen not in (None, window) or said not in (None, size):
        raise IncompatiblePolicyError(
            f"{type(policy).__name__} sees {seen} and says one of {said} tokens; {env.spec.id} "
            f"shows {window} and has {size}.{trained} Use it where it was trained, with the same "
            "env_kwargs (--set)."
        )
    tokenizers = [getattr(s, "tokenizer", None) for s in (space, env.single_observation_space)]
    if None not in tokenizers and tokenizers[0] != tokenizers[1]:
        raise IncompatiblePolicyError(
            f"{type(policy).__name__} learned another vocabulary of {size} tokens than "
            f"{env.spec.id} has here: the same ids would be other words.{trained} Use it there, "
            "with the same tokenizer and files."
        )
    acts = list(env.acts.names) if hasattr(env, "acts") else []
    strange = [(a, b) for a, b in zip(trained_in.get("acts", acts), acts) if a != b]
    if strange:
        learned, here = strange[0]
        raise IncompatiblePolicyError(
            f"{type(policy).__name__} learned other acts than {env.spec.id} has here, such as "
            f"{learned!r} for {here!r}: the same numbers would be other acts.{trained} Use it "
            "there, with the same settings and files."
        )


def observation_adapter(policy: Any) -> Callable[[Any], Any]:
    """Function from an env's observations (N, ...) to those that a policy learned from.

    A model that was trained in Stable-Baselines3's ``VecNormalize(norm_obs=True)`` is shown them
    with the statistics that this has now; any other policy, as they are.

    Raises:
        ValueError: the model says that it learned so, and has no statistics.
    """
    view: Callable[[Any], Any] = getattr(policy, "observation_adapter", lambda seen: seen)
    normalize = policy.get_vec_normalize_env() if hasattr(policy, "get_vec_normalize_env") else None
    if normalize is not None and normalize.norm_obs:
        view = normalize.normalize_obs
    elif getattr(policy, "learned_normalized", False):
        raise ValueError(
            f"{type(policy).__name__} learned from normalised observations (VecNormalize), and "
            "their statistics are not in its file. Lay its vecnormalize.pkl beside it and trust "
            "that (trust=True, --trust), or play what agents.load(path, env=VecNormalize.load("
            "'vecnormalize.pkl', env)) gives."
        )
    return view


def training_place(policy: Any) -> Mapping[str, Any] | None:
    """Place of a policy's training, as of `dialgym.views.env_spec.made_from`; None if unknown."""
    live = policy.get_env() if hasattr(policy, "get_env") else None
    trained_in: Mapping[str, Any] | None = made_from(live) or getattr(policy, "trained_in", None)
    return trained_in


def describe_place(trained_in: Mapping[str, Any]) -> str:
    """``dialgym/Wordle-20-v0 with words=7``."""
    settings = ", ".join(f"{key}={value}" for key, value in trained_in["settings"].items())
    return f"{trained_in['id']} with {settings}" if settings else str(trained_in["id"])
