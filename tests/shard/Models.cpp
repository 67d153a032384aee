//===- Models.cpp - small models for the tests of shardings ---------------===//
#include "tests/shard/Models.h"

#include "compiler/trace/Flow.h"

using namespace tandem;
using namespace tandem::test;

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
  int64_t width = x.size(-1);
  Tensor scale = trace.parameter("scale", {width}, Init::constant(1.0));
  Tensor bias = trace.parameter("bias", {width}, Init::constant(0.0));
  return layerNorm(x, scale, bias);
}

void tandem::test::mlp(Trace &trace, const Sizes &sizes) {
  Tensor x = trace.input("x", {sizes.batch, 6});
  Tensor labels = trace.input("labels", {sizes.batch}, DType::I64, {.high = 4});
  Tensor h = relu(dense(trace, "up", x, sizes.width));
  Tensor logits = dense(trace, "down", h, 4);
  trace.output("loss", crossEntropy(logits, labels, /*ignoreIndex=*/-1));
  trace.output("logits", logits);
}

static Tensor heads(const Tensor &x, const Sizes &sizes) {
  return x
      .view({sizes.batch, sizes.time, sizes.heads, sizes.width / sizes.heads})
      .transpose(1, 2);
}

static void decode(Trace &trace, const Sizes &sizes, bool isFused) {
  Tensor tokens = trace.input("tokens", {sizes.batch, sizes.time}, DType::I64,
                              {.high = sizes.vocabulary});
  Tensor labels = trace.input("labels", {sizes.batch, sizes.time}, DType::I64,
                              {.high = sizes.vocabulary});
  Tensor table = trace.parameter("table", {sizes.vocabulary, sizes.width},
                                 Init::uniform(-0.5, 0.5));
  Tensor places = trace.parameter("places", {sizes.time, sizes.width},
                                  Init::uniform(-0.5, 0.5));
  Tensor h = embedding(table, tokens) + places;
  Tensor n = normalized(trace, "norm1", h);
  Tensor y;
  if (isFused) {
    Tensor qkv = dense(trace, "qkv", n, 3 * sizes.width)
                     .view({sizes.batch, sizes.time, 3, sizes.heads,
                            sizes.width / sizes.heads})
                     .permute({2, 0, 3, 1, 4});
    y = attention(qkv.select(0, 0), qkv.select(0, 1), qkv.select(0, 2),
                  /*causal=*/true);
  } else {
    y = attention(heads(dense(trace, "q", n, sizes.width), sizes),
                  heads(dense(trace, "k", n, sizes.width), sizes),
                  heads(dense(trace, "v", n, sizes.width), sizes),
                  /*causal=*/true);
  }
  y = y.transpose(1, 2).view({sizes.batch, sizes.time, sizes.width});
  h = h + dense(trace, "out", y, sizes.width);
  Tensor m =
      gelu(dense(trace, "up", normalized(trace, "norm2", h), 4 * sizes.width),
           /*tanh=*/true);
  h = h + dense(trace, "down", m, sizes.width);
  Tensor logits =
      dense(trace, "head", normalized(trace, "norm", h), sizes.vocabulary);
  trace.output("loss", crossEntropy(logits, labels, /*ignoreIndex=*/-1));
}

void tandem::test::decoder(Trace &trace, const Sizes &sizes) {
  decode(trace, sizes, /*isFused=*/false);
}

void tandem::test::fusedDecoder(Trace &trace, const Sizes &sizes) {
  decode(trace, sizes, /*isFused=*/true);
}

void tandem::test::convolutions(Trace &trace, const Sizes &sizes) {
  Tensor x = trace.input("x", {sizes.batch, 2, 6, 6});
  Tensor labels = trace.input("labels", {sizes.batch}, DType::I64, {.high = 4});
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
  h = avgPool2d(block("conv2", h, 4), {.kernel = {3, 3}})
          .view({sizes.batch, -1});
  Tensor logits = dense(trace, "fc", h, 4);
  trace.output("loss", crossEntropy(logits, labels));
  trace.output("logits", logits);
}

void tandem::test::dropouts(Trace &trace, const Sizes &sizes) {
  Tensor x = trace.input("x", {sizes.batch, sizes.time, sizes.width});
  Tensor target = trace.input("target", {sizes.batch, sizes.time, sizes.width});
  Tensor h = dropout(gelu(dense(trace, "up", x, 8)), 0.4);
  h = dropout(dense(trace, "down", h, sizes.width), 0.3);
  trace.output("loss", mseLoss(h, target));
}

void tandem::test::mixture(Trace &trace, const Sizes &sizes) {
  Tensor x = trace.input("x", {sizes.batch, sizes.width});
  Tensor rows =
      trace.input("rows", {sizes.batch}, DType::I64, {.high = sizes.batch});
  Tensor w = trace.parameter("w", {sizes.width, sizes.width},
                             Init::uniform(-0.5, 0.5));
  Tensor h = linear(x, w);
  // Each row sees others.
  Tensor mixed = embedding(h, rows);
  Tensor scores = softmax(matmul(mixed, h.transpose(0, 1)), 0);
  Tensor y = matmul(scores, h) * softmax(mixed, -1);
  // The largest and the smallest integer.
  Tensor counts =
      trace.input("counts", {sizes.batch}, DType::I64, {.high = 100});
  Tensor ends = cast(max(counts) - min(counts), DType::F32);
  trace.output("loss", mean(y * y) + mean(h) * ends);
  trace.output("y", y);
}

void tandem::test::flow(Trace &trace, const Sizes &sizes) {
  Tensor x = trace.input("x", {sizes.batch, sizes.time, sizes.width});
  Tensor w = trace.parameter("w", {sizes.width, sizes.width},
                             Init::uniform(-0.5, 0.5));
  Tensor v = trace.parameter("v", {sizes.width, sizes.width},
                             Init::uniform(-0.5, 0.5));
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

void tandem::test::outputs(Trace &trace, const Sizes &sizes) {
  Tensor x =
      trace.input("x", {sizes.batch, 6}, DType::F32, {.requiresGrad = true});
  Tensor h = tanh(dense(trace, "up", x, 8));
  trace.output("y", dense(trace, "down", h, 4));
  trace.output("total", sum(h, {0}));
}

void tandem::test::tied(Trace &trace, const Sizes &sizes) {
  Tensor tokens = trace.input("tokens", {sizes.batch, sizes.time}, DType::I64,
                              {.high = sizes.vocabulary});
  Tensor labels = trace.input("labels", {sizes.batch, sizes.time}, DType::I64,
                              {.high = sizes.vocabulary});
  Tensor table = trace.parameter("table", {sizes.vocabulary, sizes.width},
                                 Init::uniform(-0.5, 0.5));
  Tensor h = normalized(trace, "norm", embedding(table, tokens));
  trace.output("loss",
               crossEntropy(linear(h, table), labels, /*ignoreIndex=*/-1));
}

namespace {

/// Builds a model of ops that see other rows, or other columns, and of such
/// that do not, on values of two dimensions.
class Random {
public:
  Random(Trace &trace, const Sizes &sizes)
      : trace(trace), sizes(sizes), state(sizes.seed * 2 + 1) {}

  void build() {
    rows =
        trace.input("rows", {sizes.batch}, DType::I64, {.high = sizes.batch});
    values = {trace.input("x", {sizes.batch, sizes.width}),
              trace.input("z", {sizes.batch, sizes.vocabulary})};
    values.push_back(linear(values[0], weight({sizes.width, sizes.width})));
    for (int64_t made = 0, tries = 0; made < 6 && tries < 60; ++tries) {
      Tensor y = next(values[below(values.size())]);
      if (y.size(0) * y.size(1) > 160)
        continue;
      values.push_back(tanh(y));
      ++made;
    }
    Tensor loss = mean(values[0]);
    for (const Tensor &value : values)
      loss = loss + mean(value * value);
    trace.output("loss", loss);
    trace.output("last", values.back());
  }

private:
  uint64_t below(uint64_t limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % limit;
  }
  /// Another value whose dimension `dim` has `size`; none there: `x`.
  Tensor like(const Tensor &x, int64_t dim, int64_t size) {
    for (int tries = 0; tries < 8; ++tries)
      if (Tensor y = values[below(values.size())]; y.size(dim) == size)
        return y;
    return x;
  }
  Tensor weight(Shape shape) {
    return trace.parameter("w" + std::to_string(count++), std::move(shape),
                           Init::uniform(-0.5, 0.5));
  }

  Tensor next(const Tensor &x) {
    int64_t r = x.size(0), c = x.size(1), dim = int64_t(below(2));
    switch (below(19)) {
    case 0:
      return linear(x, weight({1 + int64_t(below(6)), c}));
    case 1:
      return softmax(x, dim);
    case 2:
      return x - max(x, {dim}, true);
    case 3:
      return x * min(x, {dim}, true);
    case 4:
      return x + mean(x, {dim}, true);
    case 5:
      return x * weight({r, c});
    case 6: {
      Tensor y = like(x, 0, r);
      return matmul(x.transpose(0, 1), y);
    }
    case 7:
      return matmul(x, like(x, 1, c).transpose(0, 1));
    case 8:
      return x.transpose(0, 1).clone();
    case 9:
      return c % 2 ? x.view({r * c, 1}) : x.view({r * 2, c / 2});
    case 10:
      return r % 2 ? x.view({1, r * c}) : x.view({r / 2, c * 2});
    case 11:
      return concat({x, like(x, 1, c)}, 0);
    case 12:
      return concat({x, like(x, 0, r)}, 1);
    case 13:
      return x.size(dim) > 1 ? x.slice(dim, 1, x.size(dim)) : flip(x, {dim});
    case 14:
      return flip(x, {dim});
    case 15:
      return pad(x, {1, 0}, {0, 1}, 0.5);
    case 16:
      return sort(x, dim).first;
    case 17:
      return r == sizes.batch ? embedding(x, rows) : dropout(x, 0.3);
    default:
      return layerNorm(x, weight({c}), weight({c}));
    }
  }

  Trace &trace;
  const Sizes &sizes;
  uint64_t state;
  Tensor rows;
  std::vector<Tensor> values;
  int64_t count = 0;
};

} // namespace

void tandem::test::random(Trace &trace, const Sizes &sizes) {
  Random(trace, sizes).build();
}
