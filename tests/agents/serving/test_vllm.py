"""Rollouts by a real vLLM, where its command is on the path; it installs apart."""

import json
import shutil
import signal
import socket
import subprocess
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")
from agents import GRPO
from agents.serving.apis import Request
from tests.agents.serving.test_serving import made, rollout
from tests.support.inference_server import GENERATION
from tests.support.waiting import end_family, wait_until

VLLM = shutil.which("vllm")
WIDER = {"n_layer": 2, "n_head": 2, "n_embd": 64, "mask": False, "init_std": 0.3}
"""A model whose heads are as wide as vLLM's attention wants them."""


def answers(url):
    try:
        return urllib.request.urlopen(f"{url}/health", timeout=5).status == 200
    except OSError:
        return False


class Served:
    """A vLLM that begins with a model of its own, whose settings of sampling are narrow."""

    def __init__(self, folder, monkeypatch):
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = found.getsockname()[1]
        self.folder, self.url = folder, f"http://127.0.0.1:{port}"
        for name, value in {"VLLM_SERVER_DEV_MODE": 1, "HF_HUB_OFFLINE": 1}.items():
            monkeypatch.setenv(name, str(value))
        for name, value in {"KVCACHE_SPACE": 1, "OMP_THREADS_BIND": "nobind"}.items():
            monkeypatch.setenv(f"VLLM_CPU_{name}", str(value))  # read by a build for CPUs
        monkeypatch.delenv("PYTHONPATH", raising=False)
        self.command = [VLLM, "serve", folder, "--host", "127.0.0.1", "--port", str(port)]
        self.command += ["--dtype", "float32", "--enforce-eager"]

    def start(self):
        (self.folder / "generation_config.json").write_text(json.dumps(GENERATION))
        self.process = subprocess.Popen(self.command)
        wait_until(lambda: answers(self.url), self.process)


@pytest.mark.slow
@pytest.mark.skipif(VLLM is None, reason="vllm is not on the path")
def test_a_real_server_samples_as_the_trainer_would(tmp_path, monkeypatch):
    served = Served(tmp_path / "first", monkeypatch)
    settings = {"policy_kwargs": WIDER, "changes": {"weight_sync_steps": 4}}
    model = made(GRPO, served, tmp_path, **settings)
    model.save_pretrained(served.folder)
    with torch.no_grad():  # a build for CPUs does not load again the head that is the embedding
        for name, weight in model.policy.backbone.named_parameters():
            weight.mul_(1.0 if name.startswith("wte") else 1.5)
    served.start()
    try:
        assert_as_the_trainer(model)
        prompt = model.served.known.prompt.tolist()
        requests = [Request(prompt, 1, 1, seed) for seed in range(64)]
        with ThreadPoolExecutor(8) as pool:
            drawn = [*pool.map(model.served.client.sample, requests)]
        told = {each.tokens[0]: each.log_probs[0] for each in drawn}
        assert np.exp([*told.values()]).sum() > 0.8  # not of the two likeliest alone
        model.served.updated()
        end_family(served.process, signal.SIGTERM)
        served.start()
        with pytest.warns(UserWarning, match="restarted with other weights"):
            assert_as_the_trainer(model)
    finally:
        end_family(served.process, signal.SIGTERM)


def assert_as_the_trainer(model):
    sampled = rollout(model).column(model.rollout_buffer.steps("log_probs"))
    torch.testing.assert_close(sampled, model.rollout.log_probs, atol=1e-4, rtol=0)
