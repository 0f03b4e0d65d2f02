"""dialgym: dialogue tasks as Gymnasium environments.

``import dialgym`` registers every id; what a function needs beyond that is loaded when it is
called.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dialgym.errors import did_you_mean
from dialgym.registry import list_ids
from dialgym.versions import VERSION
from dialgym.views.registration import register, register_all

if TYPE_CHECKING:
    from dialgym.datasets import Dataset, collect, load_dataset
    from dialgym.experiments import Result, evaluate
    from dialgym.experiments.multi_domain import multi_domain_env
    from dialgym.views.chat import Chat, ChatReply
    from dialgym.views.chat_batch import ChatBatch
    from dialgym.views.making import make, make_vec
    from dialgym.views.pettingzoo_envs import aec_env, parallel_env
    from dialgym.views.sb3 import make_sb3_pool, sb3_vec_env
    from dialgym.views.wrappers import (
        MaskedObservation,
        ReplaceForbidden,
        VectorMaskedObservation,
        VectorReplaceForbidden,
    )

__version__ = VERSION
__all__ = [
    "Chat",
    "ChatBatch",
    "ChatReply",
    "Dataset",
    "MaskedObservation",
    "ReplaceForbidden",
    "Result",
    "VectorMaskedObservation",
    "VectorReplaceForbidden",
    "aec_env",
    "collect",
    "evaluate",
    "list_ids",
    "load_dataset",
    "make",
    "make_sb3_pool",
    "make_vec",
    "multi_domain_env",
    "parallel_env",
    "register",
    "sb3_vec_env",
]

_LAZY = {
    "Chat": "dialgym.views.chat",
    "ChatBatch": "dialgym.views.chat_batch",
    "ChatReply": "dialgym.views.chat",
    "Dataset": "dialgym.datasets",
    "MaskedObservation": "dialgym.views.wrappers",
    "ReplaceForbidden": "dialgym.views.wrappers",
    "Result": "dialgym.experiments",
    "VectorMaskedObservation": "dialgym.views.wrappers",
    "VectorReplaceForbidden": "dialgym.views.wrappers",
    "aec_env": "dialgym.views.pettingzoo_envs",
    "collect": "dialgym.datasets",
    "evaluate": "dialgym.experiments",
    "load_dataset": "dialgym.datasets",
    "make": "dialgym.views.making",
    "make_sb3_pool": "dialgym.views.sb3",
    "make_vec": "dialgym.views.making",
    "multi_domain_env": "dialgym.experiments.multi_domain",
    "parallel_env": "dialgym.views.pettingzoo_envs",
    "sb3_vec_env": "dialgym.views.sb3",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        hint = "" if name.startswith("_") else did_you_mean(name, __dir__())
        raise AttributeError(f"module 'dialgym' has no attribute {name!r}.{hint}")
    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])


register_all()
