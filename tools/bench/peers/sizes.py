"""The benchmark's models at the sizes of tools/bench/workloads, for the peers.

A size is a dictionary that all peers read. Sizes are those of Workloads.h: a change there is a change here.
"""

GPT = {
    "gpt": dict(layers=4, width=256, heads=4, time=128, batch=8, vocabulary=1024, positions=128),
    "gpt2-124m": dict(layers=12, width=768, heads=12, time=64, batch=4, vocabulary=50257, positions=1024),
    "gpt2-124m-large": dict(layers=12, width=768, heads=12, time=1024, batch=16, vocabulary=50257, positions=1024),
}
MLP = {
    "mlp": dict(sizes=(784, 1024, 1024, 10), batch=256, optimizer="momentum"),
    "mnist-fc": dict(sizes=(784, 500, 10), batch=500, optimizer="adamw"),
}
RESNET = {
    "resnet8": dict(width=16, stages=3, blocks=1, batch=32),
    "resnet18": dict(width=64, stages=4, blocks=2, batch=32),
    "resnet18-large": dict(width=64, stages=4, blocks=2, batch=256),
}
NORMCHAIN = {"normchain": dict(rows=4096, columns=1024, chain=4)}

ALL = [*MLP, *RESNET, *GPT, *NORMCHAIN]
