#!/usr/bin/env python3
"""bench-graph's chain and fan with PyTorch's engine: processor time per node."""
import time

import torch


def best(call, nodes):
    least = float("inf")
    for _ in range(15):
        begin = time.process_time()
        call()
        least = min(least, time.process_time() - begin)
    return 1e9 * least / nodes


def main():
    torch.set_num_threads(1)
    leaf, one = torch.ones((), requires_grad=True), torch.ones(())
    top = leaf
    for _ in range(10000):
        top = torch.ops.aten.alias(top)
    print("a chain of 10,000  %8.1f ns a node" % best(
        lambda: torch.autograd.backward([top], [one], retain_graph=True), 10000))
    # The roots themselves, so that no op runs beside the sums.
    fan = [torch.ops.aten.alias(leaf) for _ in range(1000)]
    print("a fan of 1,000     %8.1f ns a node" % best(
        lambda: torch.autograd.backward(fan, [one] * 1000, retain_graph=True),
        1001))


main()
