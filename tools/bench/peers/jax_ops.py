"""The operations of the workloads' models in JAX; `channels_last` says how images lie."""

import jax
import jax.numpy as jnp

relu = jax.nn.relu
channels_last = False


def linear(x, weight, bias):
    y = x @ weight.T
    return y if bias is None else y + bias


def embedding(table, tokens):
    return table[tokens]


def gelu(x):
    return jax.nn.gelu(x, approximate=True)


def scaled(x, axes, scale, bias):
    mean = x.mean(axes, keepdims=True)
    variance = ((x - mean) ** 2).mean(axes, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + bias


def layer_norm(x, scale, bias):
    return scaled(x, -1, scale, bias)


def batch_norm(x, scale, bias, training):
    axes = (0, 1, 2) if channels_last else (0, 2, 3)
    if not channels_last:
        scale, bias = scale[:, None, None], bias[:, None, None]
    return scaled(x, axes, scale, bias) if training else x * (scale * (1 + 1e-5) ** -0.5) + bias


def convolution(x, weight, stride):
    layout = ("NHWC", "HWIO", "NHWC") if channels_last else ("NCHW", "OIHW", "NCHW")
    kernel = weight.shape[0 if channels_last else -1]
    return jax.lax.conv_general_dilated(x, weight, (stride, stride), [(kernel // 2, kernel // 2)] * 2,
                                        dimension_numbers=layout)


def image_mean(x):
    return x.mean((1, 2) if channels_last else (2, 3))


def attention(qkv):
    """Causal; from [batch, time, 3, heads, d] to [batch, time, heads, d]."""
    return jax.nn.dot_product_attention(*(qkv[:, :, i] for i in range(3)), is_causal=True)


def cross_entropy(logits, labels):
    logits, labels = logits.reshape(-1, logits.shape[-1]), labels.reshape(-1)
    picked = jnp.take_along_axis(logits, labels[:, None], -1)[:, 0]
    return (jax.nn.logsumexp(logits, -1) - picked).mean()
