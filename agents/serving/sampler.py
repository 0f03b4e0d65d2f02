"""Tokens of a rollout from a server: utterances ahead, their weights' age, transfers of weights."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agents.models.exported import exported_ids
from agents.models.observations import Observed
from agents.serving.apis import Request, Sampled
from agents.serving.server import Client, LostServer, RolloutServer
from dialgym.language.tokenizers import END, TAGS

UNKNOWN = -1
"""Version of weights that nobody has sent."""
SAME = 0.05
"""Most mean difference of log-probabilities by the same weights, in another arithmetic."""


@dataclass
class Utterance:
    """Tokens to be said after a prompt, of which some have been said.

    Attributes:
        prompt: tokens that it was sampled after.
        tokens, log_probs: of it.
        version: updates behind the weights that it was sampled by.
        said: tokens of it so far.
    """

    prompt: np.ndarray
    tokens: np.ndarray
    log_probs: np.ndarray
    version: int
    said: int = 0

    def follows(self, seen: np.ndarray) -> bool:
        """Tell if it goes on after the tokens seen."""
        begun = len(self.prompt)
        return (
            self.said < len(self.tokens)
            and len(seen) == begun + self.said
            and np.array_equal(seen[:begun], self.prompt)
            and np.array_equal(seen[begun:], self.tokens[: self.said])
        )


class ServedSampler:
    """Samples what each dialogue says next by asking a server for whole utterances.

    The requests of a step are under way at once. `ahead` asks before an update for what comes
    after, so that it is sampled meanwhile. A server that was lost is sent the weights again: it
    may have been restarted. One that was restarted unnoticed, while the policy was updated, is
    found by what it now makes of an utterance that it sampled by the weights it was sent.

    Args:
        server: which.
        space: of the token windows.

    Attributes:
        updates: of the policy so far.
        version: those behind the server's weights.
        staleness: of each token that was said since the log was written.

    Raises:
        ValueError: the space does not say what its tokens mean.
    """

    def __init__(self, server: RolloutServer, space: Any) -> None:
        tokenizer = getattr(space, "tokenizer", None)
        if tokenizer is None:
            raise ValueError(
                "server: expected an env of dialgym, whose tokens are known; got the space "
                f"{type(space).__name__}"
            )
        self.server, self.client = server, Client(server)
        self.window: int = space.shape[0]
        speaker = {tag: name for name, tag in TAGS.items()}.get(space.learner_tag)
        self.longest = int(space.limits.get(speaker, self.window))
        self.ids = exported_ids(tokenizer, torch.arange(tokenizer.vocab_size)).numpy()
        self.own = np.argsort(self.ids)
        self.updates, self.version = 0, UNKNOWN
        self.folder: Path | None = None  # of the weights that were written last
        self.known: Utterance | None = None  # the longest that was sampled by the server's weights
        self.weights = ""  # as the server calls them
        self.checked = 0  # updates, when the server was last known to have its weights
        self.warned = False  # that it samples by others
        self.waiting: dict[int, Utterance] = {}
        self.asked: dict[int, tuple[np.ndarray, int, Future[Sampled]]] = {}
        self.staleness: list[int] = []
        self.pool = ThreadPoolExecutor(server.max_inflight_tasks)

    # What the algorithm calls

    def sample(
        self, policy: Any, seen: Observed, rows: np.ndarray, rng: np.random.Generator
    ) -> tuple[Tensor, Tensor]:
        """Tokens (b,) to say after what dialogues have seen, and their log-probabilities (b,).

        Args:
            policy: whose weights the server is to have.
            seen: of the dialogues, b of them.
            rows: (b,) their numbers.
            rng: draws seeds.

        Raises:
            ServerError: the server refuses, or does not answer in all attempts.
        """
        windows = [
            tokens[:length]
            for tokens, length in zip(seen.tokens.numpy(), seen.lengths, strict=True)
        ]
        places = dict(zip(rows.tolist(), windows, strict=True))
        self._collect()
        missing = {row: window for row, window in places.items() if not self._is_ready(row, window)}
        attempt = 0
        while missing:
            self._send_if_due(policy)
            self._ask(missing, rng)
            if lost := self._collect():
                self.client.pause(attempt, lost)
                attempt += 1
            missing = {row: w for row, w in missing.items() if not self._is_ready(row, w)}
        said = [self._say(row) for row in places]
        tokens, log_probs = zip(*said, strict=True)
        return torch.tensor(tokens), torch.tensor(log_probs)

    def ahead(self, seen: Observed, rng: np.random.Generator) -> None:
        """Ask for what dialogues say next, while the policy is updated, where it is not too old."""
        if self.version == UNKNOWN or self._age(self.version) + 1 > self.server.max_staleness:
            return
        windows = enumerate(zip(seen.tokens.numpy(), seen.lengths, strict=True))
        places = {row: tokens[:length] for row, (tokens, length) in windows}
        self._ask({r: w for r, w in places.items() if not self._is_ready(r, w)}, rng)

    def updated(self) -> dict[str, float]:
        """Count an update; return the means and the most of the ages of what it learned from."""
        ages, self.staleness = self.staleness or [0], []
        self.updates += 1
        return {"staleness_mean": float(np.mean(ages)), "staleness_max": float(max(ages))}

    def importance(self, log_ratio: Tensor) -> Tensor:
        """Truncated importance weights (N,), from log pi / pi_sampled (N,).

        Where all tokens are of the policy's own weights, and the two differ, a warning says so.
        """
        apart = float(log_ratio.abs().mean())
        if apart > SAME and not self.warned and not any(self.staleness):
            self.warned = True
            warnings.warn(
                f"server {self.server.url}: the log-probabilities of what it sampled by the "
                f"weights it was sent are {apart:.2f} from the policy's, and {SAME} are expected "
                "at most. Does it serve the same model, in the same precision (--dtype), without "
                "quantisation, and did it load all weights?",
                stacklevel=2,
            )
        return log_ratio.exp().clamp(max=self.server.importance_cap)

    # Weights

    def _send_if_due(self, policy: Any) -> None:
        sent = self.version != UNKNOWN and self._age(self.version) < self.server.weight_sync_steps
        if sent and self._has_weights():
            return
        self._collect()  # nothing is half sampled when weights change
        folder = Path(self.server.folder).absolute() / f"update-{self.updates}"
        if folder != self.folder:
            former, self.folder = self.folder, policy.save_pretrained(folder)
        else:
            former = None
        self.client.load(str(folder))
        self.version = self.checked = self.updates
        self.known, self.weights = None, ""
        if former is not None:
            shutil.rmtree(former, ignore_errors=True)

    def _has_weights(self) -> bool:
        """Tell if the server still has the weights that it was sent; it is asked once an update."""
        if self.checked == self.updates or self.known is None:
            return True
        self.checked, known = self.updates, self.known
        tokens = self.ids[np.concatenate([known.prompt, known.tokens])].tolist()
        try:
            asked = Request(tokens, 1, int(self.ids[END]), 0)
            found = self.client.score(asked, len(known.tokens))
        except LostServer as error:
            self._forget(f"no answer ({error})")
            return False
        apart = 0.0 if found is None else float(np.abs(known.log_probs - found).mean())
        if apart <= SAME:
            return True
        self._forget(
            f"the log-probabilities of an utterance that it sampled are {apart:.2f} from those "
            f"that it gave then, and {SAME} are expected at most"
        )
        return False

    def _forget(self, seen: str) -> None:
        """Say that the server has been restarted, by what was seen of it; its weights are sent."""
        self.version = UNKNOWN
        warnings.warn(
            f"server {self.server.url}: {seen}; it may have been restarted with other weights, "
            "and is sent the policy's again",
            stacklevel=2,
        )

    def _age(self, version: int) -> int:
        return self.updates - version

    # Utterances

    def _is_ready(self, row: int, seen: np.ndarray) -> bool:
        found = self.waiting.get(row)
        fresh = found is not None and self._age(found.version) <= self.server.max_staleness
        return bool(found and fresh and found.follows(seen))

    def _ask(self, prompts: dict[int, np.ndarray], rng: np.random.Generator) -> None:
        for row, prompt in prompts.items():
            asked = Request(
                self.ids[prompt].tolist(),
                max(1, min(self.longest, self.window - len(prompt))),
                int(self.ids[END]),
                int(rng.integers(2**31)),
            )
            future = self.pool.submit(self.client.sample, asked)
            self.asked[row] = prompt.copy(), self.version, future

    def _collect(self) -> LostServer | None:
        """Wait for what was asked for; an error where the server was lost, whose weights are then
        unknown."""
        lost = None
        for row, (prompt, version, future) in self._taken():
            try:
                found = future.result()
                self._check_name(found)
            except LostServer as error:
                lost, self.version = error, UNKNOWN
                continue
            tokens = self.own[np.array(found.tokens)]
            self.waiting[row] = Utterance(prompt, tokens, np.array(found.log_probs), version)
            self._know(self.waiting[row])
        return lost

    def _check_name(self, found: Sampled) -> None:
        """Raise an error where the server calls its weights otherwise than since they were sent."""
        self.weights = self.weights or found.weights
        if found.weights != self.weights:
            raise LostServer(
                f"it has sampled by the weights {found.weights!r}, and had {self.weights!r} before"
            )

    def _know(self, found: Utterance) -> None:
        """Keep an utterance to know the weights by, if it leaves room in the window for a token."""
        longest = 0 if self.known is None else len(self.known.tokens)
        room = self.window - len(found.prompt) - len(found.tokens)
        if found.version == self.version and room > 0 and len(found.tokens) > longest:
            self.known = found

    def _taken(self) -> Iterator[tuple[int, tuple[np.ndarray, int, Future[Sampled]]]]:
        while self.asked:
            row = next(iter(self.asked))
            yield row, self.asked.pop(row)

    def _say(self, row: int) -> tuple[int, float]:
        found = self.waiting[row]
        place, found.said = found.said, found.said + 1
        self.staleness.append(self._age(found.version))
        return int(found.tokens[place]), float(found.log_probs[place])
