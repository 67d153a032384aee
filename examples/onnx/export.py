#!/usr/bin/env python3
"""Trains a small convolutional network on the digits for a moment with PyTorch
and exports it to ONNX: python3 export.py digits.onnx (PyTorch 1.13).

Without TrainingMode.PRESERVE the exporter folds batch normalization into the
weights, and nothing of it is left to train.
"""
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

data = Path(__file__).resolve().parent.parent / "digits" / "data"


def load(name, kind):
    return torch.from_numpy(np.load(data / f"{name}.npy").astype(kind))


images, labels = load("train_images", np.float32), load("train_labels", np.int64)
test_images, test_labels = load("test_images", np.float32), load("test_labels", np.int64)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(32)
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(128, 10)

    def forward(self, x):
        x = x.view(-1, 1, 8, 8)
        x = self.pool(torch.relu(self.norm1(self.conv1(x))))
        x = self.pool(torch.relu(self.norm2(self.conv2(x))))
        return self.fc(x.flatten(1))


torch.manual_seed(0)
torch.set_num_threads(1)
network = Network()
optimizer = torch.optim.SGD(network.parameters(), lr=0.02)
for step in range(20):
    rows = slice(64 * step, 64 * step + 64)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(network(images[rows]), labels[rows])
    loss.backward()
    optimizer.step()
network.eval()
with torch.no_grad():
    right = (network(test_images).argmax(1) == test_labels).float().mean()
print(f"{100 * right:.1f} % of the held out digits")
torch.onnx.export(
    network, torch.zeros(64, 64), sys.argv[1], opset_version=14,
    input_names=["x"], output_names=["logits"],
    dynamic_axes={"x": {0: "batch"}, "logits": {0: "batch"}},
    training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)
