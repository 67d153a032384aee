"""What is read off a graph that torch.export made, and changed in it."""

from __future__ import annotations

from typing import Any, Dict, Set

import torch

__all__ = ["OVERLAPS", "inner_outputs", "program_with_copies", "unused_values"]

# What the compiler says of outputs of which each is a part of what no output
# shows whole.
OVERLAPS = "overlap in storage that no output and no argument"


def program_with_copies(program: Any) -> Any:
    """The program, changed so that its outputs have memory of their own."""
    graph = program.graph_module.graph
    result = next(n for n in graph.nodes if n.op == "output")
    signature = program.graph_signature
    kind = torch.export.graph_signature.OutputKind.USER_OUTPUT
    values = list(result.args[0])
    copies: Dict[Any, Any] = {}  # what is returned twice is one
    for index, (spec, value) in enumerate(zip(signature.output_specs, values)):
        if spec.kind != kind or not isinstance(value, torch.fx.Node):
            continue
        node = copies.get(value)
        if node is None:
            with graph.inserting_before(result):
                node = graph.call_function(torch.ops.aten.clone.default, (value,))
            node.meta.update(value.meta)
            copies[value] = node
        spec.arg.name = node.name
        values[index] = node
    result.args = (tuple(values),)
    program.graph_module.recompile()
    return program


def inner_outputs(program: Any) -> Set[str]:
    """Of the outputs those from which another one follows."""
    nodes = {node.name: node for node in program.graph.nodes}
    kind = torch.export.graph_signature.OutputKind.USER_OUTPUT
    made = [
        nodes.get(getattr(spec.arg, "name", ""))
        for spec in program.graph_signature.output_specs
        if spec.kind == kind
    ]
    inner: Set[str] = set()
    for number, node in enumerate(made):
        others = [n for n in made if n is not None and n is not node]
        if node is None or node.op != "call_function":
            continue
        seen = {node}
        rest = [node]
        while rest:
            for user in rest.pop().users:
                # No gradient goes further up than that.
                if user not in seen and "detach" not in str(user.target):
                    seen.add(user)
                    rest.append(user)
        if any(other in seen for other in others):
            inner.add(f"output{number}")
    return inner


def unused_values(program: Any) -> Set[str]:
    """Parameters and buffers that nothing reads: of a tensor with two names,
    torch.export has one in the graph."""
    users = {node.name: len(node.users) for node in program.graph.nodes}
    return {
        spec.target
        for spec in program.graph_signature.input_specs
        if spec.target is not None and not users.get(spec.arg.name, 1)
    }
