//===- gpt.cpp - the character GPT that learns to add, traced -------------===//
//
// A decoder-only transformer of four layers over the characters of
// `123+456=579.` (README.md says how they are numbered). Writes the captured
// model:
//
//   addition-gpt gpt.mlir [BATCH [LAYERS]]
//   tandem compile gpt.mlir -o gpt.tdm
//       --optimizer=adamw:lr=2e-3,weight_decay=0.01
//
//===----------------------------------------------------------------------===//
#include "compiler/trace/Functions.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace tandem;

constexpr int64_t kTime = 11, kVocabulary = 13;
constexpr int64_t kWidth = 64, kHeads = 4;
static int64_t batch = 128, layers = 4;

/// Uniform with standard deviation `std`.
static Init spread(double std) {
  double bound = std * std::sqrt(3.0);
  return Init::uniform(-bound, bound);
}

/// The parameters of a linear layer, applied. `gain` scales the weights of the
/// layers that add to the residual stream.
static Tensor dense(Trace &trace, const std::string &name, const Tensor &x,
                    int64_t out, double gain = 1.0) {
  ModuleScope scope = trace.module(name);
  int64_t in = x.size(-1);
  Tensor w = trace.parameter("w", {out, in},
                             spread(gain / std::sqrt(static_cast<double>(in))));
  Tensor bias = trace.parameter("bias", {out}, Init::constant(0.0));
  return linear(x, w, bias);
}

static Tensor norm(Trace &trace, const std::string &name, const Tensor &x) {
  ModuleScope scope = trace.module(name);
  Tensor scale = trace.parameter("scale", {kWidth}, Init::constant(1.0));
  Tensor bias = trace.parameter("bias", {kWidth}, Init::constant(0.0));
  return layerNorm(x, scale, bias);
}

static Tensor selfAttention(Trace &trace, const Tensor &x) {
  ModuleScope scope = trace.module("attention");
  Tensor qkv = dense(trace, "qkv", x, 3 * kWidth)
                   .view({batch, kTime, 3, kHeads, kWidth / kHeads})
                   .permute({2, 0, 3, 1, 4});
  Tensor y = attention(qkv.select(0, 0), qkv.select(0, 1), qkv.select(0, 2),
                       /*causal=*/true);
  y = y.transpose(1, 2).view({batch, kTime, kWidth});
  return dense(trace, "out", y, kWidth, 1.0 / std::sqrt(2.0 * layers));
}

static Tensor mlp(Trace &trace, const Tensor &x) {
  ModuleScope scope = trace.module("mlp");
  Tensor h = gelu(dense(trace, "up", x, 4 * kWidth), /*tanh=*/true);
  return dense(trace, "down", h, kWidth, 1.0 / std::sqrt(2.0 * layers));
}

/// 0 if `text` is no number.
static int64_t count(const char *text) {
  char *end;
  int64_t number = std::strtol(text, &end, 10);
  return *end || number > 4096 ? 0 : number;
}

int main(int argc, char **argv) {
  if (argc > 2)
    batch = count(argv[2]);
  if (argc > 3)
    layers = count(argv[3]);
  if (argc < 2 || argc > 4 || argv[1][0] == '-' || batch < 1 || layers < 1) {
    std::fprintf(stderr, "usage: addition-gpt OUTPUT.mlir [BATCH [LAYERS]]\n");
    return 2;
  }
  Trace trace("addition_gpt");
  Tensor tokens =
      trace.input("tokens", {batch, kTime}, DType::I64, {.high = kVocabulary});
  Tensor labels =
      trace.input("labels", {batch, kTime}, DType::I64, {.high = kVocabulary});
  Tensor characters =
      trace.parameter("characters", {kVocabulary, kWidth}, spread(0.1));
  Tensor places = trace.parameter("places", {kTime, kWidth}, spread(0.1));

  Tensor h = embedding(characters, tokens) + places;
  for (int64_t i = 0; i < layers; ++i) {
    ModuleScope scope = trace.module("layer" + std::to_string(i));
    h = h + selfAttention(trace, norm(trace, "norm1", h));
    h = h + mlp(trace, norm(trace, "norm2", h));
  }
  Tensor logits = dense(trace, "head", norm(trace, "norm", h), kVocabulary);
  trace.output("loss", crossEntropy(logits, labels, /*ignoreIndex=*/-1));
  trace.output("logits", logits);

  Status status = trace.save(argv[1]);
  if (!status)
    std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.exitCode();
}
