"""Surrogates of GRPO's policy gradient beside PPO's, and means over the tokens of its losses.

A surrogate gives the losses (n,) of n decisions, and metrics (n,) of how far the policy has moved.
Names are those of TRL's `GRPOConfig`.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from agents.buffers.sequences import SequenceBatch
from agents.online.ppo import Decisions, clipped_surrogate, policy_metrics

LOSS_TYPES = ("grpo", "dr_grpo", "dapo", "bnpo", "cispo")
RATIO_LEVELS = ("token", "sequence")
LARGEST_WEIGHT = 5.0
"""Most that a ratio weighs in CISPO if nothing else is said (ScaleRL, Khatri et al. 2025)."""


def log_ratios(batch: SequenceBatch, log_prob: Tensor, level: str) -> Tensor:
    """log pi(a | s) / pi_old(a | s), (n,).

    At the level "sequence" each is the mean over the decisions of its dialogue (GSPO, Zheng et al.
    2025, arXiv 2507.18071, equation 7), or of its part where a sliding window or features that
    change divide one. The gradient is that of the decision by itself, so that
    advantages may differ within a dialogue (equation 13, GSPO-token); where they do not, the sum of
    gradients is that of the mean.

    Args:
        batch: n decisions.
        log_prob: (n,) of their actions now.
        level: "token" or "sequence".
    """
    log_ratio = log_prob - batch.log_probs
    if level == "token":
        return log_ratio
    row = batch.at // batch.tokens.shape[1]
    sums = log_ratio.new_zeros(batch.tokens.shape[0], 2)
    sums.index_add_(0, row, torch.stack([log_ratio, torch.ones_like(log_ratio)], 1).detach())
    mean = (sums[:, 0] / sums[:, 1].clamp(min=1))[row]
    return mean + log_prob - log_prob.detach()


def surrogate(
    batch: Decisions,
    log_prob: Tensor,
    log_ratio: Tensor,
    loss_type: str,
    low: float,
    high: float | None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The surrogate of a loss of `LOSS_TYPES`; see `weighted_surrogate` and `clipped_surrogate`.

    Args:
        batch, log_prob, log_ratio: as of `weighted_surrogate`.
        loss_type: one of them.
        low, high: how far the ratio may fall below and rise above 1; None for the default.
    """
    if loss_type == "cispo":
        most = LARGEST_WEIGHT if high is None else high
        return weighted_surrogate(batch, log_prob, log_ratio, most)
    return clipped_surrogate(batch, log_ratio, (low, low if high is None else high))


def weighted_surrogate(
    batch: Decisions, log_prob: Tensor, log_ratio: Tensor, most: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """-sg(min(ratio, most)) A log pi: CISPO (MiniMax 2025, arXiv 2506.13585, equation 4).

    A ratio out of range bounds the weight of a decision, and does not silence it. There is no lower
    bound, as in the paper's own experiments and in TRL.

    Args:
        batch: n decisions.
        log_prob: (n,) of their actions now.
        log_ratio: (n,), see `log_ratios`.
        most: the greatest weight, TRL's `epsilon_high`.
    """
    ratio = log_ratio.detach().exp()
    loss = -ratio.clamp(max=most) * batch.advantages * log_prob
    return loss, policy_metrics(loss, log_ratio, ratio > most)


def mean_weights(
    loss_type: str, lengths: np.ndarray, totals: tuple[float, float, float], longest: int
) -> np.ndarray:
    """Weights of decisions, by which a mean over all tokens is another.

    The means over S dialogues of T_i tokens, D together:

    - "grpo": 1/S sum_i 1/T_i sum_t, each dialogue alike (Shao et al. 2024, arXiv 2402.03300,
      equation 3).
    - "dr_grpo": 1/(S L) sum_i sum_t, L the greatest length (Liu et al. 2025, arXiv 2503.20783).
    - "bnpo": 1/D_p sum_i sum_t over the tokens of a process, and the mean of processes.
    - "dapo", "cispo": 1/D sum_i sum_t, each token alike (Yu et al. 2025, arXiv 2503.14476,
      equation 8).

    Args:
        loss_type: one of `LOSS_TYPES`.
        lengths: T_i of any shape, of the dialogues that the decisions are of.
        totals: D and S of a minibatch in all processes, and D_p times the number of processes. Of
            a dialogue whose decisions lie in several minibatches, S counts the share.
        longest: the greatest length L.
    """
    decisions, dialogues, own = totals
    if loss_type == "grpo":
        return decisions / (dialogues * lengths)
    if loss_type == "dr_grpo":
        return np.full(lengths.shape, decisions / (dialogues * longest))
    if loss_type == "bnpo":
        return np.full(lengths.shape, decisions / max(own, 1))
    return np.ones(lengths.shape)
