"""The operations of the workloads' models in PyTorch."""

import functools
import math

import torch
import torch.nn.functional as F

linear, relu, embedding = F.linear, F.relu, lambda table, tokens: F.embedding(tokens, table)


def gelu(x):
    return F.gelu(x, approximate="tanh")


def layer_norm(x, scale, bias):
    return F.layer_norm(x, (int(scale.shape[0]),), scale, bias)


@functools.lru_cache(None)
def inference_statistics(channels):
    """Kept, so that a trace after the first run has them as constants."""
    return torch.zeros(channels), torch.ones(channels)


@functools.lru_cache(None)
def causal_mask(time):
    return torch.full((time, time), -math.inf).triu(1)


def batch_norm(x, scale, bias, training):
    if training:
        return F.batch_norm(x, None, None, scale, bias, True, 0.0, 1e-5)
    return F.batch_norm(x, *inference_statistics(int(bias.shape[0])), scale, bias, False, 0.0, 1e-5)


def convolution(x, weight, stride):
    return F.conv2d(x, weight, None, stride, int(weight.shape[-1]) // 2)


def image_mean(x):
    return x.mean((2, 3))


def attention(qkv):
    """Causal; from [batch, time, 3, heads, d] to [batch, time, heads, d]."""
    q, k, v = qkv.permute(2, 0, 3, 1, 4)
    if hasattr(F, "scaled_dot_product_attention"):
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    else:
        scores = q @ k.transpose(-1, -2) * (1.0 / math.sqrt(int(q.shape[-1])))
        y = torch.softmax(scores + causal_mask(int(q.shape[-2])), -1) @ v
    return y.transpose(1, 2)


def cross_entropy(logits, labels):
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))
