//===- cnn.cpp - a convolutional network for the digits, traced -----------===//
//
// A C++ program that is recorded instead of run: it writes the captured model.
//
//   digits-cnn cnn.mlir
//   tandem compile cnn.mlir -o cnn.tdm --optimizer=adamw:lr=2e-3
//
//===----------------------------------------------------------------------===//
#include "compiler/trace/Functions.h"

#include <cmath>
#include <cstdio>

using namespace tandem;

constexpr int64_t kBatch = 32;

/// A 3x3 convolution, batch norm with running statistics, relu.
static Tensor convBlock(Trace &trace, const Tensor &x, int64_t out) {
  int64_t in = x.size(1);
  double bound = std::sqrt(6.0 / static_cast<double>(in * 9));
  Tensor w =
      trace.parameter("w", {out, in, 3, 3}, Init::uniform(-bound, bound));
  Tensor scale = trace.parameter("scale", {out}, Init::constant(1.0));
  Tensor bias = trace.parameter("bias", {out}, Init::constant(0.0));
  Tensor mean = trace.state("mean", {out}, Init::constant(0.0));
  Tensor variance = trace.state("variance", {out}, Init::constant(1.0));
  Tensor y = conv2d(x, w, {}, {.padding = {1, 1}});
  return relu(batchNorm(y, scale, bias, mean, variance));
}

int main(int argc, char **argv) {
  if (argc != 2 || argv[1][0] == '-') {
    std::fprintf(stderr, "usage: digits-cnn OUTPUT.mlir\n");
    return 2;
  }
  Trace trace("digits_cnn");
  Tensor x = trace.input("x", {kBatch, 64}); // pixels, 0 to 16
  Tensor labels = trace.input("labels", {kBatch}, DType::I64, {.high = 10});

  Tensor h = (x * 0.125 - 1.0).view({kBatch, 1, 8, 8});
  {
    ModuleScope scope = trace.module("conv1");
    h = convBlock(trace, h, 16);
  }
  {
    ModuleScope scope = trace.module("conv2");
    h = maxPool2d(convBlock(trace, h, 32), {.kernel = {2, 2}});
  }
  {
    ModuleScope scope = trace.module("conv3");
    h = convBlock(trace, h, 32);
  }
  h = avgPool2d(h, {.kernel = {2, 2}}).view({kBatch, -1});

  ModuleScope scope = trace.module("fc");
  double bound = 1.0 / std::sqrt(static_cast<double>(h.size(1)));
  Tensor w =
      trace.parameter("w", {10, h.size(1)}, Init::uniform(-bound, bound));
  Tensor bias = trace.parameter("bias", {10}, Init::constant(0.0));
  Tensor logits = linear(h, w, bias);
  trace.output("loss", crossEntropy(logits, labels));
  trace.output("logits", logits);

  Status status = trace.save(argv[1]);
  if (!status)
    std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.exitCode();
}
