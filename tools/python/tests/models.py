"""Models that the tests compile, as JSON graphs, and what some of them need."""

from __future__ import annotations

import unittest
from typing import Any, Dict

import tandem


def classifier(rows: int = 4, dtype: str = "f32") -> Dict[str, Any]:
    """A linear layer with a loss."""
    return {
        "format": "tandem-graph",
        "version": 1,
        "name": "classifier",
        "inputs": [
            {"name": "x", "type": dtype, "shape": [rows, 8]},
            {"name": "labels", "type": "i64", "shape": [rows], "high": 3},
        ],
        "params": [
            {
                "name": "fc.w",
                "type": dtype,
                "shape": [3, 8],
                "init": {"kind": "uniform", "low": -0.3, "high": 0.3},
            },
            {
                "name": "fc.b",
                "type": dtype,
                "shape": [3],
                "init": {"kind": "constant", "value": 0.0},
            },
        ],
        "nodes": [
            {
                "op": "linear",
                "inputs": ["x", "fc.w", "fc.b"],
                "outputs": ["logits"],
            },
            {
                "op": "cross_entropy",
                "inputs": ["logits", "labels"],
                "outputs": ["loss"],
                "attributes": {"reduction": "mean"},
            },
        ],
        "outputs": [
            {"name": "loss", "value": "loss"},
            {"name": "logits", "value": "logits", "no_grad": True},
        ],
    }


def sliced_labels() -> Dict[str, Any]:
    """A classifier that reads all labels but the first."""
    graph = classifier()
    graph["inputs"][1] = {"name": "labels", "type": "i64", "shape": [5]}
    graph["nodes"][1]["inputs"][1] = "read"
    graph["nodes"].insert(
        0,
        {
            "op": "slice",
            "inputs": ["labels"],
            "outputs": ["read"],
            "attributes": {"starts": [1], "limits": [5], "strides": [1]},
        },
    )
    return graph


def layers(dtype: str = "f32") -> Dict[str, Any]:
    """tanh(x w^T + b) and x w^T + b, differentiable in all, with a state that
    counts the forwards."""
    return {
        "format": "tandem-graph",
        "version": 1,
        "name": "layers",
        "inputs": [
            {
                "name": "x",
                "type": dtype,
                "shape": [4, 8],
                "requires_grad": True,
            }
        ],
        "params": [
            {"name": "fc.w", "type": dtype, "shape": [3, 8]},
            {"name": "fc.b", "type": dtype, "shape": [3]},
        ],
        "states": [
            {
                "name": "calls",
                "type": "f32",
                "shape": [],
                "init": {"kind": "constant", "value": 0.0},
            }
        ],
        "nodes": [
            {"op": "linear", "inputs": ["x", "fc.w", "fc.b"], "outputs": ["h"]},
            {"op": "tanh", "inputs": ["h"], "outputs": ["y"]},
            {
                "op": "constant",
                "type": "f32",
                "shape": [],
                "value": 1.0,
                "outputs": ["one"],
            },
            {
                "op": "add",
                "inputs": ["calls", "one"],
                "outputs": ["more"],
                "no_grad": True,
            },
            {"op": "write", "inputs": ["more", "calls"]},
        ],
        "outputs": [{"name": "y", "value": "y"}, {"name": "h", "value": "h"}],
    }


def of_types(dtype: str) -> Dict[str, Any]:
    """y = x + x of a type, and x itself, which is a view of the input."""
    return {
        "format": "tandem-graph",
        "version": 1,
        "name": "types",
        "inputs": [{"name": "x", "type": dtype, "shape": [2, 3]}],
        "nodes": [{"op": "add", "inputs": ["x", "x"], "outputs": ["y"]}],
        "outputs": [{"name": "y", "value": "y"}],
    }


def showing() -> Dict[str, Any]:
    """An output that is a view of the input, and one that is one of a param."""
    return {
        "format": "tandem-graph",
        "version": 1,
        "name": "showing",
        "inputs": [{"name": "x", "type": "f32", "shape": [2, 3]}],
        "params": [
            {
                "name": "w",
                "type": "f32",
                "shape": [2, 3],
                "init": {"kind": "constant", "value": 2.0},
            }
        ],
        "nodes": [
            {"op": "mul", "inputs": ["x", "w"], "outputs": ["y"]},
            {
                "op": "reshape",
                "inputs": ["x"],
                "outputs": ["flat"],
                "attributes": {"shape": [6]},
            },
        ],
        "outputs": [
            {"name": "y", "value": "y"},
            {"name": "flat", "value": "flat"},
            {"name": "same", "value": "w"},
        ],
    }


def writing() -> Dict[str, Any]:
    """A program that writes to its input."""
    return {
        "format": "tandem-graph",
        "version": 1,
        "name": "writing",
        "inputs": [{"name": "x", "type": "f32", "shape": [2, 3]}],
        "nodes": [
            {"op": "sin", "inputs": ["x"], "outputs": ["s"], "no_grad": True},
            {"op": "write", "inputs": ["s", "x"]},
            {"op": "add", "inputs": ["s", "s"], "outputs": ["y"]},
        ],
        "outputs": [{"name": "y", "value": "y"}],
    }


def needs_archives():
    """Of a test module: skips it where the program reads no models of PyTorch."""
    if ".pt2" not in tandem.help_of("compile"):
        raise unittest.SkipTest("this program reads no archives of torch.export")
