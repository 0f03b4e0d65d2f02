"""Language models of `transformers` in this process, in the form of a service: asked in batches."""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from dialgym.io.chat_service import CompletionRefusedError, ModelAnswer
from dialgym.io.model_settings import ModelSettings
from dialgym.language.causal_models import load_causal_model, window_of
from dialgym.language.chat_tokens import TemplateForm, turn_ends

MOST_TOKENS = 256
"""Tokens of an answer where no bound is set."""
GATHERING = 0.005
"""Seconds in which requests join the first batch of a round."""
KNOWN = ("model", "messages", "temperature", "top_p", "max_tokens", "seed")
"""Fields of a request."""


class _Request(NamedTuple):
    """A request that waits: ids of its prompt, its body, and its answer to be."""

    ids: list[int]
    body: Mapping[str, Any]
    answer: "asyncio.Future[ModelAnswer]"


class LocalModel:
    """A causal language model of `transformers` that answers requests of a chat.

    Requests that come while others are answered are the next batch; what all of one begin with,
    such as the brief, is read once. Each draws its tokens by the seed of its own; a batch of other
    rows may differ in the last digits of its logits, so that only a tape gives the same words for
    certain. Models of one process are loaded once, onto a GPU where there is one. A pickled copy
    begins without requests.

    Args:
        settings: `model` is a folder, ``hf:NAME`` or ``hf:NAME@REVISION``, with a tokenizer that
            has a chat template; at most `concurrency` requests are a batch.
    """

    def __init__(self, settings: ModelSettings) -> None:
        self.settings = settings
        self._waiting: list[_Request] = []
        self._is_writing = False

    async def answer(self, body: Mapping[str, Any], where: str) -> ModelAnswer:
        """Answer a request.

        Raises:
            CompletionRefusedError: it has a field that is not known here, or is too long.
            ValueError: there is no such model, or it has no chat template.
            ImportError: transformers is not installed.
        """
        loop = asyncio.get_running_loop()
        writer = await loop.run_in_executor(None, _loaded, self.settings.model)
        request = _Request(writer.prompt(body, where), body, loop.create_future())
        self._waiting.append(request)
        if not self._is_writing:
            self._is_writing = True
            self._task = loop.create_task(self._write(writer))
        return await request.answer

    async def close(self) -> None:
        """Nothing is open."""

    async def _write(self, writer: "_Writer") -> None:
        """Answer what waits, batch after batch."""
        await asyncio.sleep(GATHERING)
        loop, most = asyncio.get_running_loop(), self.settings.concurrency
        while self._waiting:
            batch, self._waiting = self._waiting[:most], self._waiting[most:]
            try:
                answers = await loop.run_in_executor(None, writer.write, batch)
            except Exception as error:
                for request in batch:
                    if not request.answer.done():
                        request.answer.set_exception(error)
                continue
            for request, answer in zip(batch, answers):
                if not request.answer.done():  # whoever asked may have gone
                    request.answer.set_result(answer)
        self._is_writing = False

    def __getstate__(self) -> dict[str, Any]:
        """The settings alone."""
        return {"settings": self.settings, "_waiting": [], "_is_writing": False}


class _Writer:
    """A model with its tokenizer; one batch at a time."""

    def __init__(self, source: str) -> None:
        import torch

        self.model, tokenizer = load_causal_model(source, f"the language model {source!r}")
        self.model.to("cuda" if torch.cuda.is_available() else "cpu")
        self.form = TemplateForm(tokenizer, {})
        self.window = window_of(self.model.config, tokenizer)
        self.ends = turn_ends(self.model, tokenizer)
        self._keeps_all = _keeps_all(self.model)
        self._skips_padding = _skips_padding(self.model)
        self._one_at_a_time = threading.Lock()

    def prompt(self, body: Mapping[str, Any], where: str) -> list[int]:
        """Ids of the messages of a request.

        Raises:
            CompletionRefusedError: a field is unknown, or there is no room for an answer.
        """
        if unknown := sorted(set(body) - {*KNOWN}):
            raise CompletionRefusedError(
                f"{where}: expected the fields {', '.join(KNOWN)} of a model in this process; got "
                f"{', '.join(unknown)} too. Leave them out (extra)."
            )
        ids, most = self.form.prompt(body["messages"]), _most_tokens(body)
        if len(ids) + most > self.window:
            raise CompletionRefusedError(
                f"{where}: {len(ids)} tokens of the chat and {most} of an answer are more than the "
                f"{self.window} that {body['model']!r} reads. Set a smaller max_tokens, or shorter "
                "dialogues."
            )
        return ids

    def write(self, batch: Sequence[_Request]) -> list[ModelAnswer]:
        """Answers to a batch, whose requests differ in messages and seeds alone."""
        groups = [batch] if self._skips_padding else [[request] for request in batch]
        return [answer for group in groups for answer in self._write_together(group)]

    def _write_together(self, batch: Sequence[_Request]) -> list[ModelAnswer]:
        """Answers to prompts, which are filled up to one length."""
        import torch
        from transformers import LogitsProcessorList

        prompts = [request.ids for request in batch]
        pad = min(self.ends, default=0)
        with self._one_at_a_time, torch.inference_mode():
            past, shared = self._read_once(prompts)
            rows, mask = _padded(prompts, shared, pad)
            device = self.model.device
            written = self.model.generate(
                torch.tensor(rows, device=device),
                attention_mask=torch.tensor(mask, device=device),
                past_key_values=past,
                logits_processor=LogitsProcessorList([_Draws([r.body for r in batch])]),
                max_new_tokens=_most_tokens(batch[0].body),
                eos_token_id=sorted(self.ends) or None,
                pad_token_id=pad,
                do_sample=False,
            )
        said = written[:, len(rows[0]) :].tolist()
        return [self._answer(ids, len(prompt)) for ids, prompt in zip(said, prompts)]

    def _read_once(self, prompts: Sequence[list[int]]) -> tuple[Any, int]:
        """Keys and values, for all rows, of the tokens that all prompts begin with, and how many
        these are; None and 0 where there is nothing to save, or the model does not keep all."""
        import torch

        least = min(map(len, prompts)) - 1  # of a row some token is left to be read
        differ = (place for place, ids in enumerate(zip(*prompts)) if len({*ids}) > 1)
        shared = min(next(differ, least), least)
        if not self._keeps_all or len(prompts) < 2 or shared < 1:
            return None, 0
        ids = torch.tensor([prompts[0][:shared]], device=self.model.device)
        past = self.model.base_model(ids, use_cache=True).past_key_values
        past.batch_repeat_interleave(len(prompts))
        return past, shared

    def _answer(self, ids: list[int], prompt_tokens: int) -> ModelAnswer:
        count = next((i for i, token in enumerate(ids) if token in self.ends), len(ids))
        text = self.form.tokenizer.decode(ids[:count], skip_special_tokens=True)
        reason = "stop" if count < len(ids) else "length"
        return ModelAnswer(f"{self.form.opened}{text}".strip(), reason, prompt_tokens, count)


class _Draws:
    """Logits processor that leaves one token a row, drawn by the row's own seed.

    With a temperature of 0 that is the likeliest. Else tokens outside of the smallest set with a
    probability of `top_p` are left out, and one is drawn by inversion.
    """

    def __init__(self, bodies: Sequence[Mapping[str, Any]]) -> None:
        import torch

        self.temperature = bodies[0].get("temperature", 1.0)
        self.top_p = bodies[0].get("top_p", 1.0)
        self.generators = [torch.Generator() for _ in bodies]
        for generator, body in zip(self.generators, bodies):
            generator.manual_seed(body["seed"]) if "seed" in body else generator.seed()

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Logits (B, V) of the next tokens, -inf for all but one a row."""
        import torch

        if not self.temperature:
            return scores
        chances = scores.double().div(self.temperature).softmax(-1)
        below = self._nucleus(chances).cumsum(-1)
        drawn = torch.cat(
            [torch.rand(1, generator=g, dtype=torch.float64) for g in self.generators]
        )
        reached = (1 - drawn.to(below.device))[:, None] * below[:, -1:]  # above 0: none left out
        token = torch.searchsorted(below, reached)
        return torch.full_like(scores, -torch.inf).scatter(-1, token, 0.0)

    def _nucleus(self, chances: Any) -> Any:
        """Probabilities (B, V), 0 outside of the smallest set that has `top_p`."""
        if self.top_p >= 1:  # sorting a vocabulary costs more than a small model's logits
            return chances
        order = chances.sort(-1, descending=True)
        outside = order.values.cumsum(-1) - order.values >= self.top_p
        return chances.scatter(-1, order.indices, order.values.masked_fill(outside, 0.0))


def _keeps_all(model: Any) -> bool:
    """True of a model that keeps keys and values of all that it reads. In a cache that forgets or
    sums up, padding between what prompts share and the rest would count."""
    import torch
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer

    with torch.inference_mode():
        read = model.base_model(torch.tensor([[0]], device=model.device), use_cache=True)
    past = getattr(read, "past_key_values", None)
    return isinstance(past, DynamicCache) and {*map(type, past.layers)} == {DynamicLayer}


def _skips_padding(model: Any) -> bool:
    """True of a model to which padding before a prompt makes no difference. Others, whose state
    takes in all that they read, as that of RWKV does, answer one prompt at a time."""
    import torch

    ids, mask = torch.tensor([[[0, 0, 0, 0, 1, 0]], [[0, 0, 0, 0, 1, 1]]], device=model.device)
    kept = {"output_logits": True, "return_dict_in_generate": True}
    with torch.inference_mode():
        padded, alone = (
            model.generate(
                ids[:, n:], attention_mask=mask[:, n:], max_new_tokens=1, do_sample=False, **kept
            ).logits[0]
            for n in (0, 4)
        )
    return bool((alone - padded).abs().max() < 0.01 * alone.std())


def _padded(prompts: Sequence[list[int]], shared: int, pad: int) -> tuple[list[Any], list[Any]]:
    """Prompts of one length, filled up after the tokens that they share, and their masks."""
    longest = max(map(len, prompts))
    gaps = [longest - len(ids) for ids in prompts]
    rows = [ids[:shared] + [pad] * n + ids[shared:] for ids, n in zip(prompts, gaps)]
    mask = [[1] * shared + [0] * n + [1] * (longest - shared - n) for n in gaps]
    return rows, mask


def _most_tokens(body: Mapping[str, Any]) -> int:
    return int(body.get("max_tokens", MOST_TOKENS))


_loading = threading.Lock()


def _loaded(source: str) -> _Writer:
    with _loading:
        return _load(source)


@cache
def _load(source: str) -> _Writer:
    return _Writer(source)
