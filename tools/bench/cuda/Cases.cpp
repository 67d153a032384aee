//===- Cases.cpp - single kernels, of each kind and type ------------------===//
#include "tools/bench/cuda/Cases.h"
#include "compiler/trace/Functions.h"
#include "compiler/trace/Recorder.h"

#include <cmath>

using namespace tandem;
using namespace tandem::gpu;

Tensor CaseTrace::input(const std::string &name, Shape shape) {
  return trace.input(name, std::move(shape), type, {.requiresGrad = true});
}

Tensor CaseTrace::indices(const std::string &name, Shape shape, int64_t high) {
  return trace.input(name, std::move(shape), DType::I64, {.high = high});
}

void CaseTrace::differentiate(const Tensor &y) {
  output("y", y);
  output("loss", sum(y * trace.input("dy", y.shape(), y.dtype())));
}

namespace {

using T = CaseTrace;

//===----------------------------------------------------------------------===//
// Products: y, and the gradients of both factors
//===----------------------------------------------------------------------===//

void product(T &t, int64_t m, int64_t n, int64_t k) {
  t.differentiate(matmul(t.input("a", {m, k}), t.input("b", {k, n})));
}
void plainProduct(T &t) { product(t, 256, 128, 192); }
void smallProduct(T &t) { product(t, 96, 64, 72); }
/// Rows whose bytes are no multiple of 16.
void raggedProduct(T &t) { product(t, 130, 257, 71); }
/// A sum so long, of so few results, that several blocks share it. Gradients
/// would be large.
void splitProduct(T &t) {
  t.output("y", matmul(t.input("a", {64, 8192}), t.input("b", {8192, 64})));
}
void batchedProduct(T &t) {
  t.differentiate(
      matmul(t.input("a", {3, 64, 96}), t.input("b", {3, 96, 128})));
}
void layered(T &t) {
  Tensor x = t.input("x", {192, 128}), w = t.input("w", {256, 128}),
         b = t.input("b", {256});
  t.differentiate(gelu(linear(x, w, b), true));
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

void attend(T &t, int64_t time, int64_t size, bool causal) {
  Shape shape = {1, 2, time, size};
  Tensor q = t.input("q", shape), k = t.input("k", shape),
         v = t.input("v", shape);
  t.differentiate(attention(q, k, v, causal));
}
void causalAttention(T &t) { attend(t, 192, 64, true); }
void fullAttention(T &t) { attend(t, 128, 64, false); }
void raggedAttention(T &t) { attend(t, 77, 32, true); }
void wideAttention(T &t) { attend(t, 128, 128, true); }

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

void convolve(T &t, int64_t out, int64_t in, int64_t size, int64_t stride,
              int64_t groups) {
  Tensor x = t.input("x", {2, in, 16, 16}),
         w = t.input("w", {out, in / groups, size, size});
  t.differentiate(conv2d(x, w, {},
                         {.stride = {stride, stride},
                          .padding = {size / 2, size / 2},
                          .groups = groups}));
}
void plainConvolution(T &t) { convolve(t, 32, 16, 3, 1, 1); }
void pointConvolution(T &t) { convolve(t, 64, 32, 1, 1, 1); }
void stridedConvolution(T &t) { convolve(t, 32, 16, 3, 2, 1); }
void groupedConvolution(T &t) { convolve(t, 16, 16, 3, 1, 16); }

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

void randomNumbers(T &t) {
  t.output("uniform", t.trace.uniform({33, 129}, t.type));
  t.output("normal", t.trace.normal({33, 129}, t.type));
  t.output("bernoulli", t.trace.bernoulli({33, 129}, 0.3));
  t.output("bits", t.trace.randomBits({33, 129}));
}

//===----------------------------------------------------------------------===//
// Rows by indices, orders
//===----------------------------------------------------------------------===//

void lookup(T &t) {
  t.differentiate(
      embedding(t.input("table", {300, 96}), t.indices("i", {500}, 300)));
}
/// All indices are few: many gradients of one row.
void crowdedLookup(T &t) {
  t.differentiate(
      embedding(t.input("table", {300, 96}), t.indices("i", {500}, 3)));
}
void gatherElements(T &t) {
  t.differentiate(
      gather(t.input("x", {40, 60}), 1, t.indices("i", {40, 25}, 60)));
}
void scatterElements(T &t) {
  Tensor x = t.input("x", {40, 60}), source = t.input("s", {40, 25}),
         index = t.indices("i", {40, 25}, 60);
  t.output("set", scatter(x, 1, index, source));
  t.differentiate(scatterAdd(x, 1, index, source));
}
void sortElements(T &t) {
  Tensor x = t.input("x", {37, 300});
  auto [values, places] = sort(x, 1);
  t.output("places", places);
  auto [largest, where] = topk(x, 5, 1);
  t.output("largest", largest);
  t.output("where", where);
  t.differentiate(values);
}
void accumulate(T &t) {
  Tensor x = t.input("x", {37, 300});
  mlir::Builder builder = t.trace.recorder().attributes();
  t.differentiate(t.trace.recorder().record(
      "cumsum", {x}, builder.getNamedAttr("dim", builder.getI64IntegerAttr(1)),
      Where::current())[0]);
}

//===----------------------------------------------------------------------===//
// Windows, norms, losses, sums
//===----------------------------------------------------------------------===//

void maxWindows(T &t) {
  t.differentiate(maxPool2d(t.input("x", {2, 5, 17, 17}),
                            {.kernel = {3, 3}, .stride = {2, 2}}));
}
void meanWindows(T &t) {
  t.differentiate(
      avgPool2d(t.input("x", {2, 5, 17, 17}),
                {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}));
}
void layerNorms(T &t) {
  Tensor x = t.input("x", {64, 768}), g = t.input("g", {768}),
         b = t.input("b", {768});
  t.differentiate(layerNorm(x, g, b));
}
void batchNorms(T &t) {
  Tensor x = t.input("x", {16, 24, 9, 9}), g = t.input("g", {24}),
         b = t.input("b", {24});
  Tensor zero = t.trace.constant({24}, 0.0, t.type),
         one = t.trace.constant({24}, 1.0, t.type);
  t.differentiate(batchNorm(x, g, b, zero, one, 0.0));
}
void softmaxes(T &t) { t.differentiate(softmax(t.input("x", {65, 517}), 1)); }
void columnSoftmaxes(T &t) {
  t.differentiate(softmax(t.input("x", {65, 130}), 0));
}
void crossEntropies(T &t) {
  t.differentiate(crossEntropy(t.input("x", {32, 5001}) * 4.0,
                               t.indices("labels", {32}, 5001)));
}
void squares(T &t) {
  t.differentiate(mseLoss(t.input("x", {130, 257}), t.input("y", {130, 257})));
}
void sums(T &t) {
  Tensor x = t.input("x", {66, 129, 9});
  t.output("rows", sum(x, {2}));
  t.output("columns", sum(x, {0}));
  t.output("largest", max(x, {1}));
  t.output("place", argmax(x, 1));
  t.output("variance", var(x, {0, 1}));
  t.differentiate(mean(x, {0, 2}));
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

void functions(T &t) {
  Tensor x = t.input("x", {70, 130});
  Tensor positive = x * x + 0.5;
  t.differentiate(tanh(x) + exp(x) + log(positive) + sqrt(positive) + erf(x) +
                  sigmoid(x) + gelu(x) + gelu(x, true) + silu(x) + sin(x) +
                  cos(x) + pow(positive, 1.5) + abs(x));
}
void shapes(T &t) {
  Tensor x = t.input("x", {33, 65, 7}), y = t.input("y", {33, 20, 7});
  Tensor joined = concat({x.permute({0, 1, 2}), y}, 1);
  t.differentiate(pad(joined.transpose(0, 2), {0, 1, 2}, {3, 0, 1}));
}
void resized(T &t) {
  t.differentiate(
      interpolate(t.input("x", {2, 3, 9, 9}), {15, 20}, "bilinear"));
}

/// What tanh gives waits in the host's memory for the backward.
void offloaded(T &t) {
  Tensor x = t.input("x", {128, 96}), w = t.input("w", {64, 96});
  t.differentiate(sin(tanh(linear(x, w))));
}

//===----------------------------------------------------------------------===//
// At the sizes of a training step of GPT-2
//===----------------------------------------------------------------------===//

constexpr int64_t rows = 2048, width = 768, vocabulary = 50257;

void largeLayer(T &t) {
  Tensor x = t.input("x", {rows, width}), w = t.input("w", {4 * width, width}),
         b = t.input("b", {4 * width});
  t.differentiate(gelu(linear(x, w * 0.05, b), true));
}
void largeVocabulary(T &t) {
  Tensor x = t.input("x", {512, width}), w = t.input("w", {vocabulary, width});
  t.differentiate(linear(x, w));
}
void largeAttention(T &t) {
  Shape shape = {1, 6, 1024, 64};
  Tensor q = t.input("q", shape), k = t.input("k", shape),
         v = t.input("v", shape);
  t.differentiate(attention(q, k, v, true));
}
void largeNorm(T &t) {
  Tensor x = t.input("x", {4 * rows, width}), g = t.input("g", {width}),
         b = t.input("b", {width});
  t.differentiate(layerNorm(x, g, b));
}
void largeLookup(T &t) {
  t.differentiate(embedding(t.input("table", {vocabulary, width}),
                            t.indices("i", {4 * rows}, vocabulary)));
}
void largeLoss(T &t) {
  t.differentiate(crossEntropy(t.input("x", {256, vocabulary}) * 4.0,
                               t.indices("labels", {256}, vocabulary)));
}
void largeConvolution(T &t) {
  Tensor x = t.input("x", {32, 64, 32, 32}), w = t.input("w", {64, 64, 3, 3});
  t.differentiate(conv2d(x, w, {}, {.padding = {1, 1}}));
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

/// What a type's rounding allows, over the largest magnitude.
double toleranceOf(DType type, bool isTf32) {
  return type == DType::BF16  ? 1e-2
         : type == DType::F16 ? 2e-3
         : isTf32             ? 1e-3
         : type == DType::F64 ? 1e-12
                              : 1e-5;
}

class CaseTable {
public:
  std::vector<Case> rows;

  /// A case for each of the types.
  Case &add(const std::string &name, DType type, void (*record)(T &)) {
    Case one;
    one.name = name + "-" + std::string(artifact::spelling(type));
    one.expected = one.name;
    one.type = type;
    one.record = record;
    one.tolerance = toleranceOf(type, false);
    rows.push_back(one);
    return rows.back();
  }
  void addAll(const std::string &name, std::initializer_list<DType> types,
              void (*record)(T &)) {
    for (DType type : types)
      add(name, type, record);
  }
  /// Several blocks hand their sums over, by an atomic.
  void split(Case &one) {
    one.code = "atom\\.";
    one.repeats = 1000;
    one.isDifferentiated = false;
  }
  /// A case of products on tensor cores; tf32 where the type is f32.
  Case &onCores(const std::string &name, DType type, void (*record)(T &),
                Products products) {
    Case &one = add(name, type, record);
    bool isWgmma = products == Products::Wgmma;
    one.isTf32 = type == DType::F32;
    std::string spelled =
        one.isTf32 ? "tf32" : std::string(artifact::spelling(type));
    one.name = name + (isWgmma ? "-wgmma-" : "-mma-") + spelled;
    one.products = products;
    one.code = (isWgmma ? "wgmma\\.mma_async.*" : "mma\\.sync.*") + spelled;
    one.tolerance = toleranceOf(type, one.isTf32);
    return one;
  }
};

std::vector<Case> makeCases() {
  constexpr DType f32 = DType::F32, bf16 = DType::BF16, f16 = DType::F16;
  CaseTable t;
  for (DType type : {bf16, f16, f32}) {
    for (Products products : {Products::Wgmma, Products::Mma}) {
      t.onCores("product", type, plainProduct, products).isQuick = type == bf16;
      t.onCores("layer", type, layered, products);
    }
    t.onCores("ragged", type, raggedProduct, Products::Mma);
    t.onCores("batched", type, batchedProduct, Products::Mma);
    t.split(t.onCores("split", type, splitProduct, Products::Mma));
  }
  t.add("product", f32, plainProduct);
  t.add("ragged", f32, raggedProduct).isQuick = true;
  t.add("batched", f32, batchedProduct);
  t.add("layer", f32, layered);
  t.add("product", DType::F64, smallProduct);
  t.split(t.add("split", f32, splitProduct));
  for (DType type : {bf16, f16, f32}) {
    Case &causal = t.add("attention-causal", type, causalAttention);
    causal.repeats = 1000;
    causal.code = "attention_forward";
    if (type != f32)
      t.add("attention-full", type, fullAttention).code =
          "attention_query_grad";
    Case &ragged = t.add("attention-ragged", type, raggedAttention);
    ragged.code = "attention_key_grad";
    ragged.isQuick = type == bf16;
  }
  t.add("attention-wide", bf16, wideAttention);
  for (DType type : {bf16, f16, f32}) {
    t.add("convolution", type, plainConvolution);
    t.add("convolution-point", type, pointConvolution);
    t.add("convolution-strided", type, stridedConvolution);
  }
  t.add("convolution-grouped", f32, groupedConvolution);
  Case &tf32 = t.add("convolution", f32, plainConvolution);
  tf32.name = "convolution-tf32";
  tf32.isTf32 = true;
  tf32.tolerance = toleranceOf(f32, true);
  for (DType type : {f32, bf16}) {
    Case &random = t.add("random", type, randomNumbers);
    random.isOfItsType = true;
    random.isDifferentiated = false;
    random.isQuick = type == f32;
  }
  t.addAll("lookup", {f32, bf16}, lookup);
  t.addAll("lookup-crowded", {f32, bf16}, crowdedLookup);
  t.addAll("gather", {f32, bf16}, gatherElements);
  t.addAll("scatter", {f32, bf16}, scatterElements);
  t.add("sort", f32, sortElements).isQuick = true;
  t.addAll("cumsum", {f32, bf16}, accumulate);
  t.addAll("window-max", {f32, bf16}, maxWindows);
  t.addAll("window-mean", {f32, bf16}, meanWindows);
  t.addAll("layer-norm", {f32, bf16, f16}, layerNorms);
  t.addAll("batch-norm", {f32, bf16}, batchNorms);
  t.addAll("softmax", {f32, bf16, f16}, softmaxes);
  t.add("softmax-columns", f32, columnSoftmaxes);
  t.addAll("cross-entropy", {f32, bf16}, crossEntropies);
  t.addAll("squares", {f32, bf16}, squares);
  t.addAll("sums", {f32, bf16}, sums);
  for (DType type : {f32, bf16, f16}) // sums of 14, each rounded
    t.add("functions", type, functions).tolerance *= 2;
  t.addAll("shapes", {f32, bf16}, shapes);
  t.add("resized", f32, resized);
  t.add("offload", f32, offloaded).options = "--offload=tanh";
  Case &layer = t.add("large-layer", bf16, largeLayer);
  layer.code = "wgmma";
  layer.repeats = 200;
  layer.tolerance *= 2; // each op of gelu rounds
  t.add("large-vocabulary", bf16, largeVocabulary);
  t.add("large-attention", bf16, largeAttention).repeats = 200;
  t.add("large-norm", bf16, largeNorm);
  t.add("large-lookup", bf16, largeLookup);
  t.add("large-loss", bf16, largeLoss);
  t.add("large-convolution", bf16, largeConvolution);
  return std::move(t.rows);
}

} // namespace

const std::vector<Case> &gpu::cases() {
  static const std::vector<Case> made = makeCases();
  return made;
}

Result<std::string> gpu::textOf(const Case &one, bool reference) {
  Trace trace("one");
  CaseTrace recording(trace,
                      reference && !one.isOfItsType ? DType::F64 : one.type);
  one.record(recording);
  auto text = trace.finish();
  if (!text || reference || one.products == Products::Chosen)
    return text;
  // What products are made of is no option: it is said on the module.
  std::string phase = "tandem.phase = \"capture\"";
  size_t at = text->find(phase);
  if (at == std::string::npos)
    return Status::failed("the module has no phase");
  std::string target =
      std::string(", tandem.target = #tandem.target<cuda {arch = \"sm_90a\"") +
      (one.isTf32 ? ", matmul_precision = \"tf32\"" : "") + ", products = \"" +
      (one.products == Products::Wgmma ? "wgmma" : "mma") + "\"}>";
  return text->insert(at + phase.size(), target);
}
