#!/usr/bin/env python3
"""Measures a workload's inference in ONNX Runtime on the CPU; prints one line of JSON.

  onnx_cpu.py WORKLOAD --phase=infer --onnx=FILE [--threads=N] [--seconds=S]

FILE is what export_onnx.py wrote. All optimizations are on, inputs and outputs bound to memory of their own.
"""
import measure

args = measure.arguments(__doc__, ["session"])

import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
import workloads  # noqa: E402


class Inference:
    def __init__(self, workload):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = args.threads
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        self.session = onnxruntime.InferenceSession(args.onnx, options, providers=["CPUExecutionProvider"])
        inputs = [workload.infer_input(b) for b in range(workloads.BATCHES)]
        shape = self.session.run(None, {"x": inputs[0]})[0].shape
        self.bindings = [self.session.io_binding() for _ in inputs]
        for binding, array in zip(self.bindings, inputs):
            binding.bind_ortvalue_input("x", onnxruntime.OrtValue.ortvalue_from_numpy(array))
            binding.bind_ortvalue_output("y", onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(shape, np.float32)))

    def restart(self):
        pass

    def step(self, number):
        self.session.run_with_iobinding(self.bindings[number % len(self.bindings)])


def main():
    if args.phase != "infer" or not args.onnx:
        raise SystemExit("onnx_cpu.py: expected --phase=infer and --onnx=FILE")
    about = dict(peer="onnxruntime", version=onnxruntime.__version__)
    measure.measure(args, about, Inference(workloads.named(args.workload)))


if __name__ == "__main__":
    main()
