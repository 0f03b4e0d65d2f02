"""Run by torchrun in two processes, with and without shares: what the tests of shares compare."""

import importlib
import sys

import numpy as np
import torch

import agents
import dialgym
from agents import NLPO, SequencePPO
from agents.distributed.deepspeed import DeepSpeedSharding
from agents.distributed.fsdp import FSDPSharding
from agents.distributed.processes import Processes
from agents.updater import Updater
from dialgym.cli import main as cli

SMALL = {"n_layer": 2, "n_head": 2, "n_embd": 16}


def made(algorithm, policy_kwargs, **settings):
    env = dialgym.sb3_vec_env("dialgym/Wordle-20-v0", 6)
    common = {"n_steps": 14, "batch_size": 36, "n_epochs": 2, "seed": 0, "learning_rate": 0.01}
    common |= {"kl": {"coef": 0.05}, "compute": {"micro_batch_tokens": 60}, "ent_coef": 0.01}
    kwargs = {"optimizer_kwargs": {"eps": 0.01}, **policy_kwargs}  # else Adam blows up rounding
    return algorithm("GPTPolicy", env, **{**common, **settings}, policy_kwargs=kwargs)


class Witness:
    """A callback that looks at the weights amid a rollout, and saves them in the first process."""

    def __init__(self, path):
        self.path, self.saved = path, 0

    def __call__(self, locals_, globals_):
        model = locals_["self"]
        if model.processes.is_first and model.num_timesteps == 12 * 20:
            model.save(self.path)
            obs = locals_["new_obs"]
            loaded = agents.load(self.path)
            expected = model.predict(obs, deterministic=True)[0]
            assert (loaded.predict(obs, deterministic=True)[0] == expected).all()
            self.saved += 1
        return True


def saved_llama(folder):
    """A random model, written by the first process of the first run."""
    from tests.agents.models.test_pretrained import save_model

    path = folder / "llama"
    if Processes().is_first and not path.exists():
        save_model(path, "llama", tie=False, max_position_embeddings=256)
    Processes().wait()
    return path


def spied(sharded, shares):
    """Note how much each process has: of the weights, or of the optimizer's under DeepSpeed."""
    kind = FSDPSharding if sharded == "sharded" else DeepSpeedSharding
    begun = kind.__init__

    def spy(self, policy, *args):
        begun(self, policy, *args)
        if kind is DeepSpeedSharding:
            shares.append(self._flat.numel())
            return
        self.scatter()
        shares.extend(p.to_local().numel() for p in policy.parameters())
        self.gather()

    return kind, begun, spy


def learned(name, folder, sharded):
    algorithm = NLPO if name == "nlpo" else SequencePPO
    kwargs = {**SMALL, "share_features_extractor": name != "apart"}
    if name == "llama":  # any other model of `transformers`, with a head and layers of its own
        kwargs = {"pretrained": str(saved_llama(folder))}
    if name == "lora":
        kwargs["lora"] = {"r": 2}
    settings = {"learning_rate": lambda left: 0.01 * (1 + left) / 2}
    if name == "stop":
        settings |= {"target_kl": 0.002, "n_epochs": 4}
    if name == "bf16":
        settings["compute"] = {"micro_batch_tokens": 60, "autocast": "bf16"}
    model = made(algorithm, kwargs, **settings)
    assert model.processes.count == 2
    assert model.processes.sharded == (sharded != "plain")
    shares = []
    kind, begun, spy = spied(sharded, shares)
    losses, backward = [], Updater.backward

    def noted(self, *arguments, **more):
        metrics = backward(self, *arguments, **more)
        losses.append(metrics["loss"])
        return metrics

    Updater.backward = noted
    kind.__init__ = spy
    try:
        witness = Witness(folder / f"{name}-{sharded}-{model.processes.rank}.zip")
        model.learn(12 * 14 * 2, callback=witness)
        model.learn(12 * 14, reset_num_timesteps=False)  # with the optimizer's state
    finally:
        kind.__init__, Updater.backward = begun, backward
    whole = sum(
        p.numel() for p in model.policy.parameters() if p.requires_grad or kind is FSDPSharding
    )
    if sharded != "plain":
        assert 0.4 * whole < sum(shares) / 2 < 0.6 * whole
    assert witness.saved == model.processes.is_first
    assert model.updater.sharding is None
    return model, losses


def compile_nothing() -> None:
    """DeepSpeed compiles sums for CPUs when it begins; PyTorch's do."""
    importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None


def main(folder, sharded, names) -> None:
    torch.set_num_threads(1)
    if sharded.startswith("zero"):
        compile_nothing()
    for name in names:
        model, losses = learned(name, folder, sharded)
        if model.processes.is_first:
            weights = np.concatenate(
                [p.detach().numpy().ravel() for p in model.policy.parameters()]
            )
            moments = model.policy.optimizer.state_dict()["state"][1]["exp_avg_sq"].numpy()
            found = {"losses": losses, "weights": weights, "moments": moments}
            np.savez(folder / f"{name}-{sharded}.npz", **found)
    sys.stdout.write(f"rank {model.processes.rank} is right\n")


if __name__ == "__main__":
    from pathlib import Path

    if sys.argv[1] == "train":  # as `dialgym train`, under DeepSpeed
        compile_nothing()
        sys.exit(cli())
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
