"""Linear layers with uncertain weights: NoisyNet, dropout, concrete dropout, Bayes by backprop.

All are used alike. In training mode a layer draws its weights again for each row of its input and
at each call; in evaluation mode it takes their mean. To draw several times is to give the input
several times. Those that are variational have `divergence`, of their weights from a prior.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, softplus

from dialgym.errors import one_of, with_settings


class NoisyLinear(nn.Module):
    """Linear, with factorised Gaussian noise on the weights: Fortunato et al. (2018), eq. 9-11.

    y = mu x + f(e_out) * (sigma (f(e_in) * x)), f(e) = sign(e) sqrt |e|: the noise of the matrix is
    the outer product of both, so that each row of a batch has a noise of its own at the cost of a
    second product.

    Args:
        inputs, outputs: sizes.
        std: sigma of the first weights, times sqrt(inputs).
    """

    def __init__(self, inputs: int, outputs: int, std: float = 0.5) -> None:
        super().__init__()
        bound = 1 / math.sqrt(inputs)
        self.weight = nn.Parameter(torch.empty(outputs, inputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))
        self.weight_std = nn.Parameter(torch.full((outputs, inputs), std * bound))
        self.bias_std = nn.Parameter(torch.full((outputs,), std * bound))

    def forward(self, x: Tensor) -> Tensor:
        """(..., inputs) to (..., outputs)."""
        mean = linear(x, self.weight, self.bias)
        if not self.training:
            return mean
        noise_in, noise_out = _rooted(torch.randn_like(x)), _rooted(torch.randn_like(mean))
        return mean + noise_out * linear(noise_in * x, self.weight_std, self.bias_std)


def _rooted(noise: Tensor) -> Tensor:
    return noise.sign() * noise.abs().sqrt()


class DropoutLinear(nn.Sequential):
    """Dropout, then linear: Gal and Ghahramani (2016).

    Args:
        inputs, outputs: sizes.
        rate: of the inputs that are dropped.
    """

    def __init__(self, inputs: int, outputs: int, rate: float = 0.1) -> None:
        super().__init__(nn.Dropout(rate), nn.Linear(inputs, outputs))


class ConcreteDropoutLinear(nn.Linear):
    """Dropout whose rate is learned, then linear: Gal, Hron and Kendall (2017).

    Args:
        inputs, outputs: sizes.
        rate: to begin with.
        length_scale: of the prior; the larger, the smaller the weights it expects.
        temperature: of the relaxed mask.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        rate: float = 0.1,
        length_scale: float = 0.1,
        temperature: float = 0.1,
    ) -> None:
        super().__init__(inputs, outputs)
        self.length_scale, self.temperature = length_scale, temperature
        self.rate_logit = nn.Parameter(torch.tensor(math.log(rate / (1 - rate))))

    @property
    def rate(self) -> Tensor:
        """(): the probability that an input is dropped."""
        return self.rate_logit.sigmoid()

    def forward(self, x: Tensor) -> Tensor:
        """(..., inputs) to (..., outputs); the mask is relaxed as in their eq. 5."""
        if not self.training:
            return super().forward(x)
        drawn = torch.rand_like(x).clamp(1e-6, 1 - 1e-6)
        dropped = ((self.rate_logit + drawn.logit()) / self.temperature).sigmoid()
        return super().forward(x * (1 - dropped) / (1 - self.rate))

    def divergence(self) -> Tensor:
        """(): from the prior, their eq. 3: l^2 (1 - p) |M|^2 / 2 - K H(p), without constants.

        Inputs that are kept are scaled up, so that M is W / (1 - p). The bias is taken for certain.
        """
        rate = self.rate
        entropy = -rate * rate.log() - (1 - rate) * (1 - rate).log()
        squares = self.length_scale**2 * self.weight.square().sum() / (2 * (1 - rate))
        return squares - self.in_features * entropy


class BayesLinear(nn.Module):
    """Linear, with independent Gaussian weights: Bayes by backprop, Blundell et al. (2015).

    The weights are N(mu, softplus(rho)^2). Outputs are drawn rather than weights, which gives each
    row weights of its own (the local reparametrisation of Kingma, Salimans and Welling, 2015).

    Args:
        inputs, outputs: sizes.
        prior_std: of each weight, whose prior has mean 0.
        std: of each weight to begin with.
    """

    def __init__(
        self, inputs: int, outputs: int, prior_std: float = 1.0, std: float = 0.02
    ) -> None:
        super().__init__()
        self.prior_std = prior_std
        bound = 1 / math.sqrt(inputs)
        self.weight = nn.Parameter(torch.empty(outputs, inputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))
        rho = math.log(math.expm1(std))
        self.weight_rho = nn.Parameter(torch.full((outputs, inputs), rho))
        self.bias_rho = nn.Parameter(torch.full((outputs,), rho))

    def forward(self, x: Tensor) -> Tensor:
        """(..., inputs) to (..., outputs)."""
        mean = linear(x, self.weight, self.bias)
        if not self.training:
            return mean
        variances = softplus(self.weight_rho).square(), softplus(self.bias_rho).square()
        return mean + linear(x.square(), *variances).sqrt() * torch.randn_like(mean)

    def divergence(self) -> Tensor:
        """(): KL(q || prior), in closed form."""
        weight = gaussian_kl(self.weight, softplus(self.weight_rho), self.prior_std)
        return weight + gaussian_kl(self.bias, softplus(self.bias_rho), self.prior_std)


def gaussian_kl(mean: Tensor, std: Tensor, prior_std: float) -> Tensor:
    """(): the sum of KL(N(mean, std^2) || N(0, prior_std^2)) over all entries."""
    ratio = (std / prior_std).square()
    return 0.5 * (ratio + (mean / prior_std).square() - 1 - ratio.log()).sum()


LAYERS: dict[str, type[nn.Module]] = {
    "noisy": NoisyLinear,
    "dropout": DropoutLinear,
    "concrete": ConcreteDropoutLinear,
    "bayes": BayesLinear,
}
VARIATIONAL = (ConcreteDropoutLinear, BayesLinear)
CERTAIN = ("none", "bootstrap")
"""Kinds of uncertainty that weights have no part in."""


def make_linear(kind: str, settings: Mapping[str, Any]) -> Callable[[int, int], nn.Module]:
    """Return a function that makes a layer of its sizes.

    Raises:
        ValueError: there is no such kind of uncertainty; making a layer raises it for a setting
            that the kind does not have.
    """
    one_of("uncertainty", kind, (*CERTAIN, *LAYERS), "QPolicy")
    cls = nn.Linear if kind in CERTAIN else LAYERS[kind]
    where = f"uncertainty_kwargs of {kind}"
    own = {} if kind in CERTAIN else settings
    return lambda inputs, outputs: with_settings(partial(cls, inputs, outputs), where, own)
