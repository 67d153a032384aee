//===- OpsSignal.cpp - ONNX: windows, transforms, counts of n-grams -------===//
#include "compiler/import/onnx/Ops.h"

#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

static LogicalResult translateWindow(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  auto length = node.needInt(0, "the length");
  bool periodic = node.integer("periodic", 1) != 0;
  Type element = node.elementTypeOf(node.integer("output_datatype", 1));
  if (failed(length) || !element)
    return failure();
  SmallVector<NamedAttribute> list{
      node.attr("window_length", *length),
      node.attr("periodic", node.builder().getBoolAttr(periodic))};
  StringRef name = "hann_window";
  if (node.op() == "HammingWindow") {
    name = "hamming_window";
    list.push_back(node.attr("alpha", 25.0 / 46.0));
  } else if (node.op() == "BlackmanWindow") {
    name = "blackman_window";
  }
  return give(node, castTo(node, node.call(name, {}, list), element));
}

static LogicalResult translateDFT(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  OpBuilder &b = node.builder();
  int64_t axis = node.opset() < 20 ? node.integer("axis", 1) : -2;
  if (node.opset() >= 20 && node.has(2)) {
    auto given = node.needInt(2, "the axis");
    if (failed(given))
      return failure();
    axis = *given;
  }
  bool onesided = node.integer("onesided", 0) != 0;
  bool inverse = node.integer("inverse", 0) != 0;
  SmallVector<NamedAttribute> list{
      node.attr("dim", axis), node.attr("onesided", b.getBoolAttr(onesided)),
      node.attr("inverse", b.getBoolAttr(inverse))};
  if (node.has(1)) {
    auto length = node.needInt(1, "the length");
    if (failed(length))
      return failure();
    list.push_back(node.attr("length", *length));
  }
  return give(node, node.call("dft", node.operand(0), list));
}

static LogicalResult translateSTFT(Node &node) {
  if (failed(expectOperands(node, 2)))
    return failure();
  auto step = node.needInt(1, "the step");
  bool onesided = node.integer("onesided", 1) != 0;
  if (failed(step))
    return failure();
  SmallVector<NamedAttribute> list{
      node.attr("frame_step", *step),
      node.attr("onesided", node.builder().getBoolAttr(onesided))};
  if (node.has(3)) {
    auto length = node.needInt(3, "the length of frames");
    if (failed(length))
      return failure();
    list.push_back(node.attr("frame_length", *length));
  }
  SmallVector<Value> operands{node.operand(0)};
  if (node.has(2))
    operands.push_back(node.operand(2));
  return give(node, node.call("stft", operands, list));
}

/// Triangles over the bins of a spectrum, evenly spaced on the mel scale.
static LogicalResult translateMelWeights(Node &node) {
  if (failed(expectOperands(node, 5)))
    return failure();
  auto bands = node.needInt(0, "the number of bands");
  auto length = node.needInt(1, "the length of the transform");
  auto rate = node.needInt(2, "the sample rate");
  auto low = node.needNumber(3, "the lower edge");
  auto high = node.needNumber(4, "the upper edge");
  Type element = node.elementTypeOf(node.integer("output_datatype", 1));
  if (failed(bands) || failed(length) || failed(rate) || failed(low) ||
      failed(high) || !element)
    return failure();
  constexpr int64_t most = int64_t(1) << 22;
  if (*bands < 1 || *length < 1 || *rate < 1 || *bands > most ||
      *length > most || *bands * (*length / 2 + 1) > most || !(*low >= 0) ||
      !(*high >= *low))
    return node.error("expected numbers of bands and bins of at least 1 and "
                      "edges that rise");
  int64_t bins = *length / 2 + 1;
  auto mel = [](double f) { return 2595 * std::log10(1 + f / 700); };
  double step = (mel(*high) - mel(*low)) / double(*bands + 2);
  SmallVector<int64_t> edges;
  for (int64_t i = 0; i < *bands + 2; ++i) {
    double f = 700 * (std::pow(10, (double(i) * step + mel(*low)) / 2595) - 1);
    edges.push_back(static_cast<int64_t>(
        std::floor(double(*length + 1) * f / double(*rate))));
  }
  if (edges.back() > bins)
    return node.error("expected an upper edge of at most half of the sample "
                      "rate");
  SmallVector<float> weights(bins * *bands, 0.0F);
  auto set = [&](int64_t bin, int64_t band, double value) {
    if (bin < bins)
      weights[bin * *bands + band] = static_cast<float>(value);
  };
  for (int64_t i = 0; i < *bands; ++i) {
    int64_t from = edges[i], middle = edges[i + 1], to = edges[i + 2];
    if (middle == from)
      set(middle, i, 1);
    for (int64_t k = from; middle > from && k <= middle; ++k)
      set(k, i, double(k - from) / double(middle - from));
    for (int64_t k = middle; to > middle && k < to; ++k)
      set(k, i, double(to - k) / double(to - middle));
  }
  auto type =
      RankedTensorType::get({bins, *bands}, node.builder().getF32Type());
  Value y = node.constant(DenseElementsAttr::get(type, ArrayRef(weights)));
  return give(node, castTo(node, y, element));
}

//===----------------------------------------------------------------------===//
// Counts of n-grams
//===----------------------------------------------------------------------===//

/// How often each n-gram of one length stands in rows of x [rows, L], with up
/// to `skips` elements between neighbours: [rows, n-grams], as f32.
static Value countOf(Node &node, const Expr &x, ArrayRef<int64_t> pool,
                     int64_t length, int64_t skips) {
  OpBuilder &b = node.builder();
  int64_t rows = x.dim(0), size = x.dim(1);
  int64_t grams = static_cast<int64_t>(pool.size()) / length;
  Value sum;
  // A single element has no neighbours.
  for (int64_t step = 1; step <= (length == 1 ? 1 : skips + 1); ++step) {
    int64_t places = size - (length - 1) * step;
    if (places < 1)
      break;
    Expr all;
    SmallVector<int64_t> shape{rows, places, grams};
    for (int64_t k = 0; k < length; ++k) {
      SmallVector<int64_t> wanted;
      for (int64_t g = 0; g < grams; ++g)
        wanted.push_back(pool[g * length + k]);
      Value part =
          node.call("narrow", x.value,
                    {node.attr("dim", int64_t(1)), node.attr("start", k * step),
                     node.attr("length", places)});
      if (!part)
        return {};
      Expr here = node.wrap(part).broadcastTo(shape, {0, 1});
      Expr there =
          node.wrap(node.constant(node.ints(wanted))).broadcastTo(shape, {2});
      Expr same = compare(ComparePredicate::eq, here, there);
      all = all ? logicalAnd(all, same) : same;
    }
    Expr count = all.cast(b.getF32Type()).reduceSum({1});
    sum = sum ? (node.wrap(sum) + count).value : count.value;
  }
  if (!sum)
    sum = node.splat(RankedTensorType::get({rows, grams}, b.getF32Type()), 0);
  return sum;
}

static LogicalResult translateTfIdf(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  std::string mode = node.choice("mode", {"TF", "IDF", "TFIDF"});
  int64_t least = node.integer("min_gram_length", 1);
  int64_t most = node.integer("max_gram_length", 1);
  int64_t skips = node.integer("max_skip_count", 0);
  SmallVector<int64_t> counts = node.integers("ngram_counts");
  SmallVector<int64_t> columns = node.integers("ngram_indexes");
  SmallVector<int64_t> pool = node.integers("pool_int64s");
  SmallVector<double> weights = node.numbers("weights");
  if (node.hasAttribute("pool_strings"))
    return node.unsupported("n-grams of strings");
  if (isa<FloatType>(node.elementType(0)) || node.rank(0) < 1 ||
      node.rank(0) > 2)
    return node.error("expected one or two dimensions of integers");
  int64_t width = 0;
  for (int64_t column : columns) {
    if (column < 0 || column >= kMaxElements)
      return node.error("expected 'ngram_indexes' of at least 0");
    width = std::max(width, column + 1);
  }
  OpBuilder &b = node.builder();
  Expr x = node.expr(0).cast(b.getI64Type());
  bool flat = x.rank() == 1;
  if (flat)
    x = x.reshape({1, x.dim(0)});
  // n-grams of each length stand one after the other.
  Value found;
  size_t next = 0, at = 0;
  SmallVector<Value> parts;
  for (auto [i, start] : llvm::enumerate(counts)) {
    int64_t length = int64_t(i) + 1;
    int64_t end = i + 1 < counts.size() ? counts[i + 1]
                                        : static_cast<int64_t>(pool.size());
    if (start != int64_t(at) || end < start || end > int64_t(pool.size()) ||
        (end - start) % length)
      return node.error("expected 'ngram_counts' to divide the pool into "
                        "n-grams");
    ArrayRef<int64_t> grams =
        ArrayRef(pool).slice(start, static_cast<size_t>(end - start));
    at = end;
    next += grams.size() / length;
    if (grams.empty())
      continue;
    bool counted = length >= least && length <= most;
    int64_t number = static_cast<int64_t>(grams.size()) / length;
    parts.push_back(counted
                        ? countOf(node, x, grams, length, skips)
                        : node.splat(RankedTensorType::get({x.dim(0), number},
                                                           b.getF32Type()),
                                     0));
    if (!parts.back())
      return failure();
  }
  if (next != columns.size() || parts.empty() ||
      (!weights.empty() && weights.size() != columns.size()))
    return node.error("expected an index (and a weight) for each n-gram");
  found = node.call("cat", parts, node.attr("dim", int64_t(1)));
  if (!found)
    return failure();
  Expr count = node.wrap(found);
  if (mode != "TF") {
    Expr some = compare(ComparePredicate::gt, count, count.like(0));
    if (mode == "IDF")
      count = some.cast(b.getF32Type());
    if (!weights.empty()) {
      SmallVector<float> list(weights.begin(), weights.end());
      auto type = RankedTensorType::get({count.dim(1)}, b.getF32Type());
      Value w = node.constant(DenseElementsAttr::get(type, ArrayRef(list)));
      count = count * node.wrap(w).broadcastTo(count.shape(), {1});
    }
  }
  Value zeros =
      node.splat(RankedTensorType::get({x.dim(0), width}, b.getF32Type()), 0);
  Value y = node.call("index_add",
                      {zeros, node.constant(node.ints(columns)), count.value},
                      node.attr("dim", int64_t(1)));
  if (y && flat)
    y = node.wrap(y).reshape({width});
  return give(node, y);
}

void onnx::addSignalOps(OpTable &table) {
  for (const char *op : {"HannWindow", "HammingWindow", "BlackmanWindow"})
    table.add(op, translateWindow, 17);
  table.add("DFT", translateDFT, 17);
  table.add("STFT", translateSTFT, 17);
  table.add("MelWeightMatrix", translateMelWeights, 17);
  table.add("TfIdfVectorizer", translateTfIdf, 9);
}
