"""A network in JAX, exported for Tandem: digits.mlir and digits-init.safetensors. Needs jax and numpy, and safetensors to
read and write weights.

    python digits.py                 # exports
    python digits.py trained.safetensors   # loads trained weights back and evaluates them
"""
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from safetensors.numpy import load_file, save_file


def forward(params, x):
    x = x.reshape(-1, 8, 8, 1)
    x = jax.lax.conv_general_dilated(x, params["conv"]["kernel"], (1, 1), "SAME",
                                     dimension_numbers=("NHWC", "HWIO", "NHWC"))
    x = jax.nn.relu(x + params["conv"]["bias"])
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = x.reshape(x.shape[0], -1)
    return x @ params["head"]["kernel"] + params["head"]["bias"]


def initial(seed):
    conv, head = jax.random.split(jax.random.key(seed))
    return {"conv": {"kernel": 0.3 * jax.random.normal(conv, (3, 3, 1, 16)), "bias": jnp.zeros(16)},
            "head": {"kernel": 0.06 * jax.random.normal(head, (256, 10)), "bias": jnp.zeros(10)}}


def named(params):
    """Each array by the name that the exported module has for it."""
    return {"params" + jax.tree_util.keystr(path): np.asarray(leaf)
            for path, leaf in jax.tree_util.tree_leaves_with_path(params)}


if len(sys.argv) == 1:
    params = initial(0)
    x = jax.ShapeDtypeStruct((64, 64), jnp.float32)
    exported = export.export(jax.jit(forward))(params, x)
    with open("digits.mlir", "w") as file:
        file.write(exported.mlir_module())
    save_file(named(params), "digits-init.safetensors")
else:
    trained = load_file(sys.argv[1])
    params = jax.tree_util.tree_map_with_path(lambda path, _: trained["params" + jax.tree_util.keystr(path)], initial(0))
    images = np.load("examples/digits/data/test_images.npy")
    labels = np.load("examples/digits/data/test_labels.npy")
    accuracy = np.mean(np.argmax(forward(params, images.reshape(-1, 64).astype(np.float32)), axis=1) == labels)
    print(f"accuracy {accuracy:.4f}")
