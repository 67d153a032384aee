//===- Models.cpp - the benchmark models, as traced programs --------------===//
#include "tools/bench/workloads/Models.h"
#include "compiler/trace/Functions.h"

#include <cmath>
#include <map>

using namespace tandem;
using namespace tandem::workloads;

namespace {

/// What every model of the benchmark is traced with.
struct Setting {
  DType dtype;
  Purpose purpose;
  std::optional<int64_t> rows; ///< of a batch; the model's own without
  bool isSmall = false;        ///< layers, widths and rows that can be emulated
};

/// Declares parameters in the workload's order: parameter j uses stream j.
class Parameters {
public:
  Parameters(Trace &trace, DType dtype) : trace(trace), dtype(dtype) {}
  Tensor uniform(const std::string &name, Shape shape, double scale) {
    return trace.parameter(name, std::move(shape),
                           Init::counter(stream++, scale), dtype);
  }
  Tensor constant(const std::string &name, Shape shape, double value) {
    ++stream;
    return trace.parameter(name, std::move(shape), Init::constant(value),
                           dtype);
  }
  Trace &trace;
  DType dtype;
  int64_t stream = 0;
};

/// The end of a classifier: in training the loss against labels, which are an
/// input, and the scores; in inference the scores alone.
class Head {
public:
  Head(Trace &trace, Purpose purpose, const Shape &shape, int64_t classes)
      : trace(trace), training(purpose == Purpose::Training) {
    if (training)
      labels = trace.input("labels", shape, DType::I64, {.high = classes});
  }
  void finish(const Tensor &logits) {
    if (training)
      trace.output("loss", crossEntropy(logits, labels));
    trace.output("logits", logits);
  }

private:
  Trace &trace;
  bool training;
  Tensor labels;
};

/// The scale of the uniform distribution with standard deviation `s`.
double std_(double s) { return 2.0 * std::sqrt(3.0) * s; }

//===----------------------------------------------------------------------===//
// Multilayer perceptrons
//===----------------------------------------------------------------------===//

void perceptron(Trace &trace, Setting setting, const Shape &sizes,
                int64_t batch) {
  batch = setting.rows.value_or(batch);
  Parameters parameters(trace, setting.dtype);
  Tensor x = trace.input("x", {batch, sizes.front()}, setting.dtype);
  Head head(trace, setting.purpose, {batch}, sizes.back());
  std::vector<std::pair<Tensor, Tensor>> layers;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    std::string n = std::to_string(i);
    Tensor w = parameters.uniform("w" + n, {sizes[i + 1], sizes[i]},
                                  std_(std::sqrt(2.0 / sizes[i])));
    layers.emplace_back(w, parameters.constant("b" + n, {sizes[i + 1]}, 0.0));
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    x = linear(x, layers[i].first, layers[i].second);
    if (i + 1 < layers.size())
      x = relu(x);
  }
  head.finish(x);
}

void traceMlp(Trace &trace, Setting setting) {
  perceptron(trace, setting, {784, 1024, 1024, 10}, 256);
}
void traceMnist(Trace &trace, Setting setting) {
  perceptron(trace, setting, {784, 500, 10}, 500);
}

//===----------------------------------------------------------------------===//
// Residual networks
//===----------------------------------------------------------------------===//

/// A convolution and its batch norm on batch statistics.
struct ConvNorm {
  ConvNorm(Parameters &p, const std::string &name, int64_t out, int64_t in,
           int64_t kernel, int64_t stride)
      : stride(stride), pad(kernel / 2) {
    w = p.uniform(name + ".w", {out, in, kernel, kernel},
                  std_(std::sqrt(2.0 / (in * kernel * kernel))));
    scale = p.constant(name + ".g", {out}, 1.0);
    bias = p.constant(name + ".b", {out}, 0.0);
    channels = out;
  }
  Tensor operator()(Trace &trace, const Tensor &x) const {
    Tensor y =
        conv2d(x, w, {}, {.stride = {stride, stride}, .padding = {pad, pad}});
    // In inference: mean 0, variance 1. No running statistics are kept.
    Tensor mean = trace.constant({channels}, 0.0, scale.dtype());
    Tensor variance = trace.constant({channels}, 1.0, scale.dtype());
    return batchNorm(y, scale, bias, mean, variance, /*momentum=*/0.0);
  }
  Tensor w, scale, bias;
  int64_t stride, pad, channels;
};

void residual(Trace &trace, Setting setting, int64_t width, int stages,
              int blocks, int64_t batch) {
  batch = setting.rows.value_or(batch);
  Parameters p(trace, setting.dtype);
  Tensor x = trace.input("x", {batch, 3, 32, 32}, setting.dtype);
  Head head(trace, setting.purpose, {batch}, 10);
  ConvNorm stem(p, "stem", width, 3, 3, 1);
  struct Block {
    ConvNorm first, second;
    std::vector<ConvNorm> shortcut;
  };
  std::vector<Block> network;
  int64_t in = width;
  for (int s = 0; s < stages; ++s)
    for (int b = 0; b < blocks; ++b) {
      int64_t out = width << s, stride = s > 0 && b == 0 ? 2 : 1;
      std::string name = "s" + std::to_string(s) + "b" + std::to_string(b);
      Block block{ConvNorm(p, name + ".c1", out, in, 3, stride),
                  ConvNorm(p, name + ".c2", out, out, 3, 1),
                  {}};
      if (stride != 1 || in != out)
        block.shortcut.emplace_back(p, name + ".sc", out, in, 1, stride);
      network.push_back(std::move(block));
      in = out;
    }
  Tensor w = p.uniform("fc.w", {10, in}, std_(std::sqrt(1.0 / in)));
  Tensor bias = p.constant("fc.b", {10}, 0.0);

  x = relu(stem(trace, x));
  for (const Block &block : network) {
    Tensor y = block.second(trace, relu(block.first(trace, x)));
    x = relu(y + (block.shortcut.empty() ? x : block.shortcut[0](trace, x)));
  }
  Tensor logits = linear(mean(x, {2, 3}), w, bias);
  head.finish(logits);
}

void traceResnet8(Trace &trace, Setting setting) {
  residual(trace, setting, 16, 3, 1, 32);
}
void traceResnet18(Trace &trace, Setting setting) {
  residual(trace, setting, 64, 4, 2, 32);
}
void traceResnet18Large(Trace &trace, Setting setting) {
  residual(trace, setting, 64, 4, 2, 256);
}

//===----------------------------------------------------------------------===//
// Decoder-only transformers: pre-norm, learned positions, tied embedding
//===----------------------------------------------------------------------===//

struct GptLayer {
  Tensor ln1w, ln1b, qkvw, qkvb, projw, projb;
  Tensor ln2w, ln2b, fcw, fcb, fcprojw, fcprojb;
};

GptLayer gptLayer(Parameters &p, const std::string &name, const GptSize &g) {
  int64_t c = g.width;
  double s = std_(0.02), r = std_(0.02 / std::sqrt(2.0 * g.layers));
  GptLayer l;
  l.ln1w = p.constant(name + "ln1w", {c}, 1.0);
  l.ln1b = p.constant(name + "ln1b", {c}, 0.0);
  l.qkvw = p.uniform(name + "qkvw", {3 * c, c}, s);
  l.qkvb = p.constant(name + "qkvb", {3 * c}, 0.0);
  l.projw = p.uniform(name + "projw", {c, c}, r);
  l.projb = p.constant(name + "projb", {c}, 0.0);
  l.ln2w = p.constant(name + "ln2w", {c}, 1.0);
  l.ln2b = p.constant(name + "ln2b", {c}, 0.0);
  l.fcw = p.uniform(name + "fcw", {4 * c, c}, s);
  l.fcb = p.constant(name + "fcb", {4 * c}, 0.0);
  l.fcprojw = p.uniform(name + "fcprojw", {c, 4 * c}, r);
  l.fcprojb = p.constant(name + "fcprojb", {c}, 0.0);
  return l;
}

void transformer(Trace &trace, Setting setting, GptSize g) {
  if (setting.isSmall) {
    // An odd vocabulary stays one.
    g = {2,
         std::min<int64_t>(g.width, 384),
         std::min<int64_t>(g.heads, 6),
         64,
         1,
         std::min<int64_t>(g.vocabulary, 5003),
         g.positions};
  }
  g.batch = setting.rows.value_or(g.batch);
  int64_t c = g.width, d = c / g.heads;
  Parameters p(trace, setting.dtype);
  Tensor tokens =
      trace.input("x", {g.batch, g.time}, DType::I64, {.high = g.vocabulary});
  Head head(trace, setting.purpose, {g.batch, g.time}, g.vocabulary);
  Tensor wte = p.uniform("wte", {g.vocabulary, c}, std_(0.02));
  Tensor wpe = p.uniform("wpe", {g.positions, c}, std_(0.02));
  std::vector<GptLayer> layers;
  for (int64_t i = 0; i < g.layers; ++i)
    layers.push_back(gptLayer(p, "h" + std::to_string(i) + ".", g));
  Tensor lnfw = p.constant("lnfw", {c}, 1.0);
  Tensor lnfb = p.constant("lnfb", {c}, 0.0);

  Tensor h = embedding(wte, tokens) + wpe.slice(0, 0, g.time);
  for (const GptLayer &l : layers) {
    Tensor a = linear(layerNorm(h, l.ln1w, l.ln1b), l.qkvw, l.qkvb);
    Tensor qkv =
        a.view({g.batch, g.time, 3, g.heads, d}).permute({2, 0, 3, 1, 4});
    Tensor o = attention(qkv.select(0, 0), qkv.select(0, 1), qkv.select(0, 2),
                         /*causal=*/true);
    o = o.transpose(1, 2).view({g.batch, g.time, c});
    h = h + linear(o, l.projw, l.projb);
    a = gelu(linear(layerNorm(h, l.ln2w, l.ln2b), l.fcw, l.fcb), true);
    h = h + linear(a, l.fcprojw, l.fcprojb);
  }
  Tensor logits = linear(layerNorm(h, lnfw, lnfb), wte);
  head.finish(logits);
}

void traceGpt(Trace &trace, Setting setting) {
  transformer(trace, setting, kGpt);
}
void traceGpt2(Trace &trace, Setting setting) {
  transformer(trace, setting, kGpt2);
}
void traceGpt2Large(Trace &trace, Setting setting) {
  transformer(trace, setting, kGpt2Large);
}

//===----------------------------------------------------------------------===//
// A chain of normalizations: nothing but memory traffic
//===----------------------------------------------------------------------===//

constexpr int kChain = 4;

void traceNormchain(Trace &trace, Setting setting) {
  bool training = setting.purpose == Purpose::Training;
  Parameters p(trace, setting.dtype);
  p.stream = 1; // stream 0 is x, an input whose gradient is wanted
  Tensor h = trace.input("x", {setting.isSmall ? 64 : kRows, kColumns},
                         setting.dtype, {.requiresGrad = training});
  std::vector<std::pair<Tensor, Tensor>> layers;
  for (int i = 0; i < kChain; ++i) {
    std::string n = std::to_string(i);
    Tensor g = p.constant("g" + n, {kColumns}, 1.0);
    layers.emplace_back(g, p.constant("b" + n, {kColumns}, 0.0));
  }
  for (auto &[g, b] : layers)
    h = h + gelu(layerNorm(h, g, b), true);
  if (training)
    trace.output("loss", mean(h * h));
  else
    trace.output("y", h);
}

} // namespace

void workloads::trace(const Workload &workload, Trace &trace, DType dtype,
                      Purpose purpose, std::optional<int64_t> rows,
                      bool isSmall) {
  using Model = void (*)(Trace &, Setting);
  static const std::map<std::string, Model> models = {
      {"mlp", traceMlp},
      {"resnet8", traceResnet8},
      {"resnet18", traceResnet18},
      {"gpt", traceGpt},
      {"gpt2-124m", traceGpt2},
      {"normchain", traceNormchain},
      {"mnist-fc", traceMnist},
      {"gpt2-124m-large", traceGpt2Large},
      {"resnet18-large", traceResnet18Large},
  };
  if (isSmall && !rows && workload.data.size() > 1)
    rows = workload.data[0].kind == DataSpec::Uniform ? 2 : 1;
  models.at(workload.name)(trace, {dtype, purpose, rows, isSmall});
}
