//===- Models.cpp - small models for the tests of shardings ---------------===//
#include "tests/shard/Models.h"

#include "compiler/trace/Flow.h"

using namespace tandem;
using namespace tandem::test;

constexpr int64_t kBatch = 12, kTime = 4, kWidth = 8, kHeads = 4,
                  kVocabulary = 8;

static Tensor dense(Trace &trace, const std::string &name, const Tensor &x,
                    int64_t out) {
  ModuleScope scope = trace.module(name);
  Tensor w = trace.parameter("w", {out, x.size(-1)}, Init::uniform(-0.5, 0.5));
  Tensor bias = trace.parameter("bias", {out}, Init::uniform(-0.1, 0.1));
  return linear(x, w, bias);
}

static Tensor normalized(Trace &trace, const std::string &name,
                         const Tensor &x) {
  ModuleScope scope = trace.module(name);
  Tensor scale = trace.parameter("scale", {kWidth}, Init::constant(1.0));
  Tensor bias = trace.parameter("bias", {kWidth}, Init::constant(0.0));
  return layerNorm(x, scale, bias);
}

void tandem::test::mlp(Trace &trace) {
  Tensor x = trace.input("x", {kBatch, 6});
  Tensor labels = trace.input("labels", {kBatch}, DType::I64, {.high = 4});
  Tensor h = relu(dense(trace, "up", x, 8));
  Tensor logits = dense(trace, "down", h, 4);
  trace.output("loss", crossEntropy(logits, labels, /*ignoreIndex=*/-1));
  trace.output("logits", logits);
}

static Tensor heads(const Tensor &x) {
  return x.view({kBatch, kTime, kHeads, kWidth / kHeads}).transpose(1, 2);
}

static void decode(Trace &trace, bool isFused) {
  Tensor tokens =
      trace.input("tokens", {kBatch, kTime}, DType::I64, {.high = kVocabulary});
  Tensor labels =
      trace.input("labels", {kBatch, kTime}, DType::I64, {.high = kVocabulary});
  Tensor table =
      trace.parameter("table", {kVocabulary, kWidth}, Init::uniform(-0.5, 0.5));
  Tensor places =
      trace.parameter("places", {kTime, kWidth}, Init::uniform(-0.5, 0.5));
  Tensor h = embedding(table, tokens) + places;
  Tensor n = normalized(trace, "norm1", h);
  Tensor y;
  if (isFused) {
    Tensor qkv = dense(trace, "qkv", n, 3 * kWidth)
                     .view({kBatch, kTime, 3, kHeads, kWidth / kHeads})
                     .permute({2, 0, 3, 1, 4});
    y = attention(qkv.select(0, 0), qkv.select(0, 1), qkv.select(0, 2),
                  /*causal=*/true);
  } else {
    y = attention(heads(dense(trace, "q", n, kWidth)),
                  heads(dense(trace, "k", n, kWidth)),
                  heads(dense(trace, "v", n, kWidth)), /*causal=*/true);
  }
  y = y.transpose(1, 2).view({kBatch, kTime, kWidth});
  h = h + dense(trace, "out", y, kWidth);
  Tensor m = gelu(dense(trace, "up", normalized(trace, "norm2", h), 4 * kWidth),
                  /*tanh=*/true);
  h = h + dense(trace, "down", m, kWidth);
  Tensor logits =
      dense(trace, "head", normalized(trace, "norm", h), kVocabulary);
  trace.output("loss", crossEntropy(logits, labels, /*ignoreIndex=*/-1));
}

void tandem::test::decoder(Trace &trace) { decode(trace, /*isFused=*/false); }

void tandem::test::fusedDecoder(Trace &trace) {
  decode(trace, /*isFused=*/true);
}

void tandem::test::convolutions(Trace &trace) {
  Tensor x = trace.input("x", {kBatch, 2, 6, 6});
  Tensor labels = trace.input("labels", {kBatch}, DType::I64, {.high = 4});
  auto block = [&](const std::string &name, const Tensor &in, int64_t out) {
    ModuleScope scope = trace.module(name);
    Tensor w =
        trace.parameter("w", {out, in.size(1), 3, 3}, Init::uniform(-0.5, 0.5));
    Tensor scale = trace.parameter("scale", {out}, Init::constant(1.0));
    Tensor bias = trace.parameter("bias", {out}, Init::constant(0.0));
    Tensor mean = trace.state("mean", {out}, Init::constant(0.0));
    Tensor variance = trace.state("variance", {out}, Init::constant(1.0));
    return relu(batchNorm(conv2d(in, w, {}, {.padding = {1, 1}}), scale, bias,
                          mean, variance));
  };
  Tensor h = maxPool2d(block("conv1", x, 4), {.kernel = {2, 2}});
  h = avgPool2d(block("conv2", h, 4), {.kernel = {3, 3}}).view({kBatch, -1});
  Tensor logits = dense(trace, "fc", h, 4);
  trace.output("loss", crossEntropy(logits, labels));
  trace.output("logits", logits);
}

void tandem::test::dropouts(Trace &trace) {
  Tensor x = trace.input("x", {kBatch, kTime, kWidth});
  Tensor target = trace.input("target", {kBatch, kTime, kWidth});
  Tensor h = dropout(gelu(dense(trace, "up", x, 8)), 0.4);
  h = dropout(dense(trace, "down", h, kWidth), 0.3);
  trace.output("loss", mseLoss(h, target));
}

void tandem::test::mixture(Trace &trace) {
  Tensor x = trace.input("x", {kBatch, kWidth});
  Tensor rows = trace.input("rows", {kBatch}, DType::I64, {.high = kBatch});
  Tensor w = trace.parameter("w", {kWidth, kWidth}, Init::uniform(-0.5, 0.5));
  Tensor h = linear(x, w);
  // Each row sees others.
  Tensor mixed = embedding(h, rows);
  Tensor scores = softmax(matmul(mixed, h.transpose(0, 1)), 0);
  Tensor y = matmul(scores, h) * softmax(mixed, -1);
  trace.output("loss", mean(y * y));
  trace.output("y", y);
}

void tandem::test::flow(Trace &trace) {
  Tensor x = trace.input("x", {kBatch, kTime, kWidth});
  Tensor w = trace.parameter("w", {kWidth, kWidth}, Init::uniform(-0.5, 0.5));
  Tensor v = trace.parameter("v", {kWidth, kWidth}, Init::uniform(-0.5, 0.5));
  Tensor start = linear(x.select(1, 0), v);
  ScanStep loop = scan({start}, {x.transpose(0, 1)}, {w},
                       [](const Tensors &carries, const Tensors &slices,
                          const Tensors &constants) -> ScanStep {
                         Tensor h =
                             tanh(matmul(carries[0], constants[0]) + slices[0]);
                         return {{h}, {h}};
                       });
  Tensor y = cond(
      greater(mean(x), -1.0), {loop.carries[0], w},
      [](const Tensors &in) { return Tensors{matmul(in[0], in[1])}; },
      [](const Tensors &in) { return Tensors{in[0]}; })[0];
  trace.output("loss", mean(y * y) + mean(loop.outputs[0]));
  trace.output("y", y);
}

void tandem::test::outputs(Trace &trace) {
  Tensor x = trace.input("x", {kBatch, 6}, DType::F32, {.requiresGrad = true});
  Tensor h = tanh(dense(trace, "up", x, 8));
  trace.output("y", dense(trace, "down", h, 4));
  trace.output("total", sum(h, {0}));
}

void tandem::test::tied(Trace &trace) {
  Tensor tokens =
      trace.input("tokens", {kBatch, kTime}, DType::I64, {.high = kVocabulary});
  Tensor labels =
      trace.input("labels", {kBatch, kTime}, DType::I64, {.high = kVocabulary});
  Tensor table =
      trace.parameter("table", {kVocabulary, kWidth}, Init::uniform(-0.5, 0.5));
  Tensor h = normalized(trace, "norm", embedding(table, tokens));
  trace.output("loss",
               crossEntropy(linear(h, table), labels, /*ignoreIndex=*/-1));
}
