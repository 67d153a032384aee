#!/usr/bin/env python3
"""The recipes in PyTorch, and what Tandem trains from: data, exported models and initial parameters.

  torch_training.py prepare NAME FOLDER SEEDS   data, model.pt2, and init-SEED.safetensors for seeds 0, 1, ...
  torch_training.py train NAME FOLDER SEED      the recipe; prints a line of JSON
  torch_training.py steps NAME FOLDER MODE      ready to time steps (eager, compile): for each line of its input, a number of seconds,
                                                prints what steps took in that time
"""

import contextlib
import copy
import json
import math
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))

import data  # noqa: E402
import measure  # noqa: E402
import models  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from recipes import RECIPES, updates  # noqa: E402

MAKE = dict(lstm=(models.Lstm, data.series), resnet18=(models.ResNet18, data.images), gpt=(models.Gpt, data.text),
            bert=(models.Bert, data.sentences), unet=(models.UNet, data.masks))


def read(folder, of):
    """The rows of an input, as `tandem train --data` reads them."""
    name, _, columns = of.partition(":")
    path = os.path.join(folder, name)
    if name.endswith(".npy"):
        return torch.from_numpy(np.load(path))
    if name.endswith(".csv"):
        table = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.float32)
        return torch.from_numpy(table[:, -1].copy() if columns == "y" else table[:, :-1].copy())
    shift, values = int(columns.endswith("shift=1")), np.fromfile(path, np.uint16).astype(np.int64)
    rows = (len(values) - 1) // 64
    return torch.from_numpy(values[shift : rows * 64 + shift].reshape(rows, 64))


class Training:
    def __init__(self, name, folder, seed, compiled=False):
        self.name, self.recipe, self.folder = name, RECIPES[name], folder
        torch.manual_seed(seed)
        self.net = MAKE[name][0]().train()
        initial = os.path.join(folder, f"init-{seed}.safetensors")
        if os.path.exists(initial):
            import safetensors.torch

            self.net.load_state_dict(safetensors.torch.load_file(initial), strict=True)
        if name == "bert":
            models.adapt(self.net, ("query", "value", "classifier"), 4, 8)
        self.rows = {key: read(folder, of) for key, of in self.recipe.data.items()}
        self.order = torch.Generator().manual_seed(seed)
        self.trained = [p for p in self.net.parameters() if p.requires_grad]
        self.make_optimizer()
        self.average = [p.detach().clone() for p in self.trained] if name == "resnet18" else None
        self.count, self.run = 0, torch.compile(self.loss) if compiled else self.loss

    def make_optimizer(self):
        total, more = updates(self.recipe), dict(fused=True)
        one = torch.optim.lr_scheduler
        if self.name == "resnet18":
            self.optimizer = torch.optim.SGD(self.trained, lr=0.1, momentum=0.9, weight_decay=5e-4, **more)
            # Steps are timed past the end of a schedule, too.
            self.schedule = one.OneCycleLR(self.optimizer, 0.1, total_steps=max(total, 10**6) if self.timing else total, cycle_momentum=False)
        elif self.name == "gpt":
            plain = [p for n, p in self.net.named_parameters() if n.endswith("bias") or "norm" in n]
            rest = [p for n, p in self.net.named_parameters() if not (n.endswith("bias") or "norm" in n)]
            self.optimizer = torch.optim.AdamW([dict(params=rest), dict(params=plain, weight_decay=0.0)], lr=2e-3, betas=(0.9, 0.95),
                                               weight_decay=0.1, **more)

            def part(k):
                if k < 20:
                    return k / 20
                return 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * min(1.0, (k - 20) / (total - 20))))
            self.schedule = one.LambdaLR(self.optimizer, part)
        else:
            rate, decay = dict(lstm=(5e-3, 0.01), bert=(3e-3, 0.0), unet=(2e-3, 0.0))[self.name]
            self.optimizer = torch.optim.AdamW(self.trained, lr=rate, weight_decay=decay, **more)
            self.schedule = one.LambdaLR(self.optimizer, lambda k: max(0.0, 1 - k / total)) if self.name == "bert" else None

    timing = False

    def loss(self, batch):
        low = torch.autocast("cpu", torch.bfloat16) if self.name == "gpt" else contextlib.nullcontext()
        with low:
            if self.name == "gpt":
                return self.net(*batch.values())["loss"]
            x, labels = batch.values()
            if self.name == "unet":
                return models.dice(self.net(x)["logits"], labels)
            output = self.net(x)["output"]
            if self.name == "lstm":
                return F.mse_loss(output, labels)
            return F.cross_entropy(output, labels, label_smoothing=0.1 if self.name == "resnet18" else 0.0)

    def backward(self, batch):
        loss = self.run(batch)
        (loss / self.recipe.accumulate).backward()
        return loss.detach()

    def update(self):
        if self.name in ("lstm", "gpt"):
            torch.nn.utils.clip_grad_norm_(self.trained, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.schedule:
            self.schedule.step()
        if self.average is not None:
            if self.count:
                torch._foreach_lerp_(self.average, self.trained, 0.05)
            else:
                torch._foreach_copy_(self.average, self.trained)
        self.count += 1

    def batches(self):
        count, size = len(next(iter(self.rows.values()))), self.recipe.batch
        order = torch.randperm(count, generator=self.order)
        for begin in range(0, count - size + 1, size):
            batch = {key: rows[order[begin : begin + size]] for key, rows in self.rows.items()}
            if self.name == "resnet18":
                flipped = torch.rand(size, generator=self.order) < 0.5
                batch["x"] = torch.where(flipped[:, None, None, None], batch["x"].flip(3), batch["x"])
            yield batch

    def train(self):
        for _ in range(self.recipe.epochs):
            for number, batch in enumerate(self.batches()):
                self.backward(batch)
                if (number + 1) % self.recipe.accumulate == 0:
                    self.update()
        return self.evaluate()

    @torch.no_grad()
    def evaluate(self):
        if self.average is not None:
            torch._foreach_copy_(self.trained, self.average)
        self.net.eval()
        rows = {key: read(self.folder, of) for key, of in self.recipe.eval.items()}
        size, found, both, either = self.recipe.batch, [], torch.zeros(2), torch.zeros(2)
        for begin in range(0, len(next(iter(rows.values()))) - size + 1, size):
            batch = {key: value[begin : begin + size] for key, value in rows.items()}
            x, labels = batch.values()
            if self.name == "gpt":
                found.append(self.loss(batch))
                continue
            if self.name == "unet":
                guess = self.net(x)["logits"].argmax(1)
                for k in range(2):
                    both[k] += ((guess == k) & (labels == k)).sum()
                    either[k] += ((guess == k) | (labels == k)).sum()
                continue
            output = self.net(x)["output"]
            found.append((output - labels).abs().mean() if self.name == "lstm" else (output.argmax(1) == labels).float().mean())
        return float((both / either).mean() if self.name == "unet" else torch.stack(found).mean())

    # What measure.turn asks for.
    def restart(self):
        self.ready = [batch for _, batch in zip(range(4), self.batches())]

    def step(self, number):
        loss = self.run(self.ready[number % len(self.ready)])
        loss.backward()
        self.update()
        return loss.detach()


def prepare(name, folder, seeds):
    import safetensors.torch

    recipe, (make, rows) = RECIPES[name], MAKE[name]
    rows(folder, recipe.rows)
    torch.manual_seed(0)
    net = make().train()
    examples = {key: read(folder, of)[: recipe.batch] for key, of in recipe.data.items()}
    if name != "gpt":
        examples = dict([next(iter(examples.items()))])
    torch.export.save(torch.export.export(net, tuple(examples.values())), os.path.join(folder, "model.pt2"))
    if name == "bert":
        pretrain(net, folder)
    for seed in range(seeds):
        torch.manual_seed(1000 + seed)
        drawn = net if name == "bert" else make()
        safetensors.torch.save_file(copy.deepcopy(drawn.state_dict()), os.path.join(folder, f"init-{seed}.safetensors"))


def pretrain(net, folder):
    """All parameters, on classes that are others than those of the recipe."""
    before = os.path.join(folder, "before")
    os.makedirs(before, exist_ok=True)
    data.sentences(before, dict(train=2048), seed=30)
    tokens, labels = (torch.from_numpy(np.load(os.path.join(before, f"train-{key}.npy"))) for key in ("tokens", "labels"))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for _ in range(4):
        for rows in torch.randperm(len(tokens)).split(32):
            optimizer.zero_grad()
            F.cross_entropy(net(tokens[rows])["output"], labels[rows]).backward()
            optimizer.step()


def main():
    command, name, folder, last = sys.argv[1:5]
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count())))
    if command == "prepare":
        prepare(name, folder, int(last))
    elif command == "train":
        begin = time.monotonic()
        value = Training(name, folder, int(last)).train()
        print(json.dumps(dict(value=value, seconds=time.monotonic() - begin, version=torch.__version__)))
    else:
        Training.timing = True
        peer = Training(name, folder, 0, compiled=last == "compile")
        peer.restart()
        for number in range(4):
            peer.step(number)
        print(json.dumps(dict(version=torch.__version__)), flush=True)
        for line in sys.stdin:
            print(json.dumps(measure.turn(peer, float(line), True)), flush=True)


main()
