"""A stand-in of an inference server: it samples of a GPT in a thread of the test's own process."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import torch

from agents.models.pretrained import pretrained

GENERATION = {
    "temperature": 0.6,
    "top_p": 0.8,
    "top_k": 2,
    "min_p": 0.1,
    "repetition_penalty": 1.5,
    "presence_penalty": 0.5,
    "frequency_penalty": 0.5,
}
"""A model's ``generation_config.json``, which vLLM reads for what a request does not say."""
NEUTRAL = (1.0, 1.0, -1, 0.0, 1.0, 0.0, 0.0)
"""Values of the same settings with which a token is drawn by the model's own probabilities."""
SGLANG = {*GENERATION, "max_new_tokens", "stop_token_ids", "skip_special_tokens", "sampling_seed"}
"""Of the sampling parameters that SGLang (0.5.23) knows, those that are sent; others it refuses."""


class InferenceServer:
    """A model that `save_pretrained` wrote, served in the form of vLLM and of SGLang.

    Answers are those of vLLM 0.32 and SGLang 0.5.23. Log-probabilities are the model's own,
    however a token was drawn.

    Attributes:
        loaded: folders whose weights it took, in order.
        most: most requests that were answered at one time.
        slow: seconds that each of the next answers takes, one after the other.
        sampled: requests that were answered.
        killed_after: of that many it breaks off connections; None for never.
        held: resets of the cache that fail, as while a request is running.
    """

    def __init__(self) -> None:
        self.loaded: list[str] = []
        self.model: Any = None
        self.most = self._now = self.sampled = self.held = 0
        self.slow: list[float] = []
        self.killed_after: int | None = None
        self._lock = threading.Lock()
        self._http: Any = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen, where it did before if it did; without weights."""
        self.model, self.killed_after = None, None
        self._http = _Server(("127.0.0.1", self.port), _handler_of(self))
        self.port = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()

    def kill(self) -> None:
        """Break off what is under way, and answer nothing more."""
        http, self._http = self._http, None
        if http is not None:
            http.shutdown()
            http.server_close()
            self._thread.join()

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        if path in ("/collective_rpc", "/update_weights_from_disk"):
            folder = body.get("model_path") or body["kwargs"]["weights_path"]
            self.model = pretrained("AutoModelForCausalLM", Path(folder)).eval()
            self.loaded.append(Path(folder).name)
            return self._flushed(body) if "model_path" in body else (200, {"results": [None]})
        if path == "/reset_prefix_cache":
            return self._flushed({})
        if path not in ("/v1/completions", "/generate"):
            return 404, {"error": f"no {path}"}
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
            wait = self.slow.pop(0) if self.slow else 0.0
        try:
            time.sleep(wait)
            return self._sampled(body)
        finally:
            with self._lock:
                self._now -= 1

    def _flushed(self, body: dict[str, Any]) -> tuple[int, Any]:
        """Status and answer of a reset; SGLang aborts what is running where it is asked to."""
        held = self.held > 0 and not body.get("abort_all_requests")
        self.held -= held
        status = 400 if held and body else 200
        return status, {"success": not held, "message": "not flushed: requests are running" * held}

    def _sampled(self, body: dict[str, Any]) -> tuple[int, Any]:
        if self.model is None:
            return 503, {"error": "no weights yet"}
        asked = body.get("sampling_params") or body
        if "input_ids" in body and not asked.keys() <= SGLANG:
            return 400, {"error": f"unknown field of {sorted(asked)}"}
        ids = body.get("prompt") or body["input_ids"]
        most, seed = (
            asked.get("max_tokens") or asked["max_new_tokens"],
            asked.get("seed", asked.get("sampling_seed")),
        )
        with self._lock:
            self.sampled += 1
            free = tuple(asked.get(name, GENERATION[name]) for name in GENERATION) == NEUTRAL
            tokens, log_probs = self._draw(ids, most, asked["stop_token_ids"][0], seed, free)
        if "prompt" in body:
            named = [f"token_id:{token}" for token in tokens]
            found = {"tokens": named, "token_logprobs": log_probs}
            return 200, {"choices": [{"text": "", "logprobs": found}]}
        pairs = [[log_prob, token, None] for token, log_prob in zip(tokens, log_probs)]
        return 200, {"text": "", "meta_info": {"output_token_logprobs": pairs}}

    @torch.no_grad()
    def _draw(
        self, ids: list[int], most: int, end: int, seed: int, free: bool
    ) -> tuple[list[int], list[float]]:
        generator, tokens, log_probs = torch.Generator().manual_seed(seed), [], []
        while len(tokens) < most and tokens[-1:] != [end]:
            logits = self.model(input_ids=torch.tensor([ids + tokens])).logits[0, -1]
            found = logits.float().log_softmax(-1)
            drawn = found.exp().multinomial(1, generator=generator) if free else found.argmax()
            tokens.append(int(drawn))
            log_probs.append(float(found[tokens[-1]]))
        return tokens, log_probs


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True
    allow_reuse_address = True


def _handler_of(served: InferenceServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            left = served.killed_after
            if left is not None and served.sampled >= left:
                self.connection.close()  # as of a process that was killed
                return
            status, answer = served.answer(self.path, body)
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            with suppress(ConnectionError):  # whoever asked did not wait
                self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


@contextmanager
def inference_server() -> Iterator[InferenceServer]:
    """One that is ended after."""
    served = InferenceServer()
    served.start()
    try:
        yield served
    finally:
        served.kill()
