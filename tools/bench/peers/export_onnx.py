#!/usr/bin/env python3
"""Writes a workload's model for inference as ONNX, its weights as constants: export_onnx.py WORKLOAD FILE.

It needs PyTorch with an exporter by tracing that needs no packages (1.13).
"""
import sys
import warnings

warnings.filterwarnings("ignore")
name, path = sys.argv[1:]
sys.argv = ["torch_cpu.py", name, "--phase=infer"]

import torch  # noqa: E402
import torch_cpu  # noqa: E402
import workloads  # noqa: E402

workload = workloads.named(name)
with torch.no_grad():
    network, x = torch_cpu.Network(workload).eval(), torch.from_numpy(workload.infer_input(0))
    network(x)
    torch.onnx.export(network, (x,), path,
                      opset_version=17, input_names=["x"], output_names=["y"], do_constant_folding=True)
