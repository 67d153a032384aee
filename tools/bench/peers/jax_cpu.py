#!/usr/bin/env python3
"""Measures a workload's training step or inference in JAX on the CPU; prints one line of JSON.

  jax_cpu.py WORKLOAD [--phase=train|infer] [--mode=jit|jit-last] [--threads=N] [--seconds=S]

One jitted function is the whole step (value_and_grad and the optimizer), its state donated. In inference the weights are
constants of the function. `jit-last` has images and filters with the channels last. JAX takes its threads from the
processor affinity: start it under taskset for fewer than all.
"""
import measure

args = measure.arguments(__doc__, ["jit", "jit-last"])

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import jax_ops as ops  # noqa: E402
import workloads  # noqa: E402

ops.channels_last = args.mode.endswith("-last")


def image(array):
    return array.transpose(0, 2, 3, 1) if ops.channels_last and array.ndim == 4 else array


def weight(array):
    return array.transpose(2, 3, 1, 0) if ops.channels_last and array.ndim == 4 else array


class Training:
    def __init__(self, workload):
        self.initial = {name: weight(array) for name, array in workload.weights().items()}
        self.batches = [[jnp.asarray(image(array)) for array in workload.batch(b)] for b in range(workloads.BATCHES)]
        kind, rate = workload.optimizer
        self.moments = 2 if kind == "adamw" else 1
        self.updated = [name for name in self.initial if name not in workload.fixed]

        def step(params, state, count, x, labels):
            loss, grads = jax.value_and_grad(lambda p: workload.loss(ops, p, x, labels))(params)
            params, state, count = dict(params), [dict(s) for s in state], count + 1
            for name in self.updated:
                g = grads[name]
                if kind == "adamw":
                    m = state[0][name] = 0.9 * state[0][name] + 0.1 * g
                    v = state[1][name] = 0.999 * state[1][name] + 0.001 * g * g
                    m, v = m / (1 - 0.9**count), v / (1 - 0.999**count)
                    params[name] = params[name] - rate * m / (jnp.sqrt(v) + 1e-8)
                else:
                    m = state[0][name] = 0.9 * state[0][name] + g
                    params[name] = params[name] - rate * m
            # A gradient that no update reads is a result, so that it is calculated.
            return loss, params, state, count, {name: grads[name] for name in workload.fixed}

        self.function = jax.jit(step, donate_argnums=(0, 1, 2))

    def restart(self):
        self.params = {name: jnp.array(array) for name, array in self.initial.items()}
        self.state = [{name: jnp.zeros(self.initial[name].shape) for name in self.updated} for _ in range(self.moments)]
        self.count = jnp.zeros(())

    def step(self, number):
        batch = self.batches[number % len(self.batches)]
        loss, self.params, self.state, self.count, rest = self.function(self.params, self.state, self.count, *batch)
        jax.block_until_ready((loss, self.params, rest))
        return loss


class Inference:
    def __init__(self, workload):
        weights = {name: jnp.asarray(weight(array)) for name, array in workload.weights().items()}
        self.inputs = [jnp.asarray(image(workload.infer_input(b))) for b in range(workloads.BATCHES)]
        self.function = jax.jit(lambda x: workload.infer(ops, weights, x))

    def restart(self):
        pass

    def step(self, number):
        self.function(self.inputs[number % len(self.inputs)]).block_until_ready()


def main():
    jax.config.update("jax_default_matmul_precision", "highest")
    workload = workloads.named(args.workload)
    peer = (Training if args.phase == "train" else Inference)(workload)
    measure.measure(args, dict(peer="jax", version=jax.__version__), peer)


if __name__ == "__main__":
    main()
