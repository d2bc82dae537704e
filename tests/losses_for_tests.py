"""A loss, an estimator and mistakes, as a user would write them."""

import torch


def squared(inputs):
    """Least squares of the log-ratio against the advantage."""
    a = inputs.advantages if inputs.advantages.ndim == 2 else inputs.advantages[:, None]
    return (inputs.logprobs - inputs.old_logprobs - a).square()


def reinforce(inputs):
    """The policy gradient itself, whatever policy sampled."""
    a = inputs.advantages if inputs.advantages.ndim == 2 else inputs.advantages[:, None]
    return -a * inputs.logprobs


def surrogate(inputs):
    """Importance sampling without any bound."""
    a = inputs.advantages if inputs.advantages.ndim == 2 else inputs.advantages[:, None]
    return -a * (inputs.logprobs - inputs.old_logprobs).exp()


def overflowing(inputs):
    """Beyond float32's largest number."""
    return reinforce(inputs) * 1e30 * 1e30


def doubled(inputs):
    """Twice the reward less the mean of its group."""
    return 2 * (inputs.rewards - torch.nanmean(inputs.rewards, dim=1, keepdim=True))


def scalar(inputs):
    """No loss per token."""
    return inputs.logprobs.sum()
