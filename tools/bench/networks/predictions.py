"""The contenders of tools/bench/networks --inference: one network's scores, by each of them."""

import copy
import os
import tempfile

import tandem
import torch
from loops import Loop, floating


class Scores(torch.nn.Module):
    """The network without its loss; the output is named."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, *inputs):
        return {"scores": self.net.scores(*inputs)}


class InPyTorch(Loop):
    def __init__(self, name, net, inputs, args):
        self.net, self.inputs = copy.deepcopy(net), inputs
        super().__init__(name)

    def prepare(self):
        if self.name.endswith("-last"):
            self.net = self.net.to(memory_format=torch.channels_last)
            self.inputs = [x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x for x in self.inputs]
        self.run = torch.compile(self.net.scores) if self.name.startswith("compile") else self.net.scores

    def step(self):
        with torch.inference_mode():
            return self.run(*self.inputs)


class OfOnnx(Loop):
    """Of a file that PyTorch exports."""

    def __init__(self, name, net, inputs, args):
        self.net, self.inputs = net, inputs
        super().__init__(name)

    def prepare(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnx")
            torch.onnx.export(Scores(self.net).eval(), tuple(self.inputs), path, dynamo=True, verbose=False)
            self.open(path)
        self.net = None

    def step(self):
        return torch.from_numpy(self.run())


class OnnxRuntime(OfOnnx):
    def open(self, path):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        given = {slot.name: x.numpy() for slot, x in zip(session.get_inputs(), self.inputs)}
        self.run = lambda: session.run(None, given)[0]


class OpenVino(OfOnnx):
    def open(self, path):
        import openvino

        settings = {"INFERENCE_NUM_THREADS": torch.get_num_threads(), "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
        core = openvino.Core()
        request = core.compile_model(core.read_model(path), "CPU", settings).create_infer_request()
        for i, x in enumerate(self.inputs):
            request.set_input_tensor(i, openvino.Tensor(x.numpy(), shared_memory=True))

        def run():
            request.infer()
            return request.get_output_tensor(0).data

        self.run = run


class Predict(Loop):
    """The program `evaluate` of one artifact."""

    def __init__(self, name, net, inputs, args):
        self.net, self.inputs, self.args = net, inputs, args
        super().__init__(name)

    def prepare(self):
        options = dict(dict(inference=True, prepare=True), **self.args.options)
        artifact = tandem.compile(Scores(self.net).eval(), tuple(self.inputs), **options)
        self.net = None
        self.compiled = tandem.Step(artifact, threads=torch.get_num_threads())

    def step(self):
        return self.compiled.evaluate(*self.inputs).scores


KINDS = {"onnxruntime": OnnxRuntime, "openvino": OpenVino, "predict": Predict}


def contenders(net, inputs, args):
    """Those that the arguments ask for, and what is wrong with their scores beside those in f64."""
    net, inputs = net.eval(), inputs[:-1]
    with torch.inference_mode():
        exact = copy.deepcopy(net).double().scores(*floating(inputs, torch.Tensor.double))
    made = [KINDS.get(name, InPyTorch)(name, net, inputs, args) for name in args.contenders]
    scale = exact.abs().max().item() or 1.0  # Scores may all be 0.
    errors = {one.name: (one.first.double() - exact).abs().max().item() / scale for one in made}
    bound = max(1e-5, 4 * errors.get("eager", 0.0))
    return made, [f"{name} is off by {error:.1e}, PyTorch's own f32 by {errors.get('eager', 0.0):.1e}"
                  for name, error in errors.items() if not error <= bound], errors
