//===- Functions.cpp - what a traced program can call ---------------------===//
#include "compiler/trace/Functions.h"
#include "compiler/trace/Broadcast.h"
#include "compiler/trace/Recorder.h"

#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::trace;

using Attributes = SmallVector<NamedAttribute>;

/// Collects the attributes of an op.
class AttributeList {
public:
  explicit AttributeList(Recorder &recorder) : b(recorder.attributes()) {}
  AttributeList &ints(StringRef name, ArrayRef<int64_t> list) {
    return add(name, b.getDenseI64ArrayAttr(list));
  }
  AttributeList &integer(StringRef name, int64_t value) {
    return add(name, b.getI64IntegerAttr(value));
  }
  AttributeList &number(StringRef name, double value) {
    return add(name, b.getF64FloatAttr(value));
  }
  AttributeList &text(StringRef name, StringRef value) {
    return add(name, b.getStringAttr(value));
  }
  AttributeList &unit(StringRef name, bool on) {
    return on ? add(name, b.getUnitAttr()) : *this;
  }
  AttributeList &flag(StringRef name, bool value) {
    return add(name, b.getBoolAttr(value));
  }
  AttributeList &add(StringRef name, Attribute value) {
    list.push_back(b.getNamedAttr(name, value));
    return *this;
  }
  operator ArrayRef<NamedAttribute>() const { return list; }

private:
  Builder b;
  Attributes list;
};

/// Records an op with one result; invalid operands give an invalid result.
static Tensor call(StringRef op, std::vector<Tensor> operands,
                   const AttributeList &attributes, Where where) {
  return recorderOf(operands)->record(op, operands, attributes, where)[0];
}

static bool anyInvalid(std::initializer_list<Tensor> tensors) {
  return llvm::any_of(tensors, [](const Tensor &t) { return !t.valid(); });
}

//===----------------------------------------------------------------------===//
// Pointwise
//===----------------------------------------------------------------------===//

#define TANDEM_UNARY(FUNCTION, OP, MNEMONIC)                                   \
  Tensor tandem::FUNCTION(const Tensor &x, Where where) {                      \
    return unary(MNEMONIC, x, where);                                          \
  }
#define TANDEM_BINARY(FUNCTION, OP, MNEMONIC)                                  \
  Tensor tandem::FUNCTION(const Tensor &x, const Operand &y) {                 \
    return binary(MNEMONIC, Operand(x, y.where), y);                           \
  }
#include "ir/ops/PointwiseFunctions.h.inc"

Tensor tandem::silu(const Tensor &x, Where where) {
  return unary("silu", x, where);
}

Tensor tandem::gelu(const Tensor &x, bool tanhApproximation, Where where) {
  if (!x.valid())
    return x;
  AttributeList attributes(*x.recorder());
  attributes.text("approximate", tanhApproximation ? "tanh" : "none");
  return call("gelu", {x}, attributes, where);
}

Tensor tandem::cast(const Tensor &x, DType dtype, Where where) {
  if (!x.valid())
    return x;
  Type element = x.recorder()->elementType(dtype);
  if (!element)
    return x.recorder()->mistake(where, "unsupported element type");
  if (x.recorder()->typeOf(x).getElementType() == element)
    return x;
  Type type = x.recorder()->typeOf(x).getTensorType().clone(element);
  return x.recorder()->record("cast", x, {}, where, type)[0];
}

Tensor tandem::detach(const Tensor &x, Where where) { return x.detach(where); }

Tensor tandem::dropout(const Tensor &x, double p, bool training, Where where) {
  if (!x.valid())
    return x;
  if (!(p >= 0 && p <= 1))
    return x.recorder()->mistake(where, "expected 'p' in [0, 1], but got " +
                                            Twine(std::to_string(p)));
  if (!training || p == 0)
    return x;
  AttributeList attributes(*x.recorder());
  attributes.number("p", p).unit("training", true);
  return x.recorder()->recordDraw("dropout", x, attributes, where);
}

std::vector<Tensor> tandem::grad(const Tensor &e,
                                 const std::vector<Tensor> &wrt, Where where) {
  std::vector<Tensor> operands{e};
  operands.insert(operands.end(), wrt.begin(), wrt.end());
  Recorder *recorder = recorderOf(operands);
  std::vector<Tensor> invalid(wrt.size(), Tensor(recorder, -1));
  if (!recorder || !recorder->usable(operands, where))
    return invalid;
  if (wrt.empty()) {
    recorder->mistake(where, "expected tensors to differentiate with respect "
                             "to");
    return invalid;
  }
  if (recorder->inRegion()) {
    recorder->mistake(where, "unsupported: 'grad' inside of " +
                                 Twine(recorder->regionName()));
    return invalid;
  }
  SmallVector<Type> types;
  for (const Tensor &x : wrt)
    types.push_back(recorder->typeOf(x).getTensorType());
  return recorder->record("grad", operands, {}, where, types);
}

static Tensor compare(ComparePredicate predicate, Tensor x, const Operand &y) {
  Tensor other = asTensor(y, x);
  if (!broadcastTogether(x, other, y.where))
    return {};
  AttributeList attributes(*x.recorder());
  attributes.add("predicate",
                 ComparePredicateAttr::get(
                     x.recorder()->attributes().getContext(), predicate));
  return call("compare", {x, other}, attributes, y.where);
}
Tensor tandem::equal(const Tensor &x, const Operand &y) {
  return ::compare(ComparePredicate::eq, x, y);
}
Tensor tandem::notEqual(const Tensor &x, const Operand &y) {
  return ::compare(ComparePredicate::ne, x, y);
}
Tensor tandem::less(const Tensor &x, const Operand &y) {
  return ::compare(ComparePredicate::lt, x, y);
}
Tensor tandem::lessEqual(const Tensor &x, const Operand &y) {
  return ::compare(ComparePredicate::le, x, y);
}
Tensor tandem::greater(const Tensor &x, const Operand &y) {
  return ::compare(ComparePredicate::gt, x, y);
}
Tensor tandem::greaterEqual(const Tensor &x, const Operand &y) {
  return ::compare(ComparePredicate::ge, x, y);
}

Tensor tandem::where(const Tensor &condition, const Operand &x,
                     const Operand &y) {
  Tensor a = asTensor(x, y.tensor), b = asTensor(y, x.tensor), c = condition;
  if (!a.valid() && !b.valid() && c.valid())
    return c.recorder()->mistake(x.where, "expected 'where' to choose between "
                                          "a tensor and something");
  if (!broadcastTogether(a, b, x.where) || !broadcastTogether(c, a, x.where))
    return {};
  b = broadcastTo(b, a.shape(), x.where);
  return call("select", {c, a, b}, AttributeList(*c.recorder()), x.where);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Non-negative, rising dims; all where none are given.
static std::optional<Shape> reducedDims(const Tensor &x, Shape dims,
                                        Where where) {
  int64_t rank = x.rank();
  if (dims.empty())
    for (int64_t d = 0; d < rank; ++d)
      dims.push_back(d);
  for (int64_t &d : dims) {
    if (d < -rank || d >= rank) {
      x.recorder()->mistake(where, "expected dimensions in [" + Twine(-rank) +
                                       ", " + Twine(rank) + "), but got " +
                                       Twine(d));
      return std::nullopt;
    }
    d = d < 0 ? d + rank : d;
  }
  llvm::sort(dims);
  if (std::adjacent_find(dims.begin(), dims.end()) != dims.end()) {
    x.recorder()->mistake(where, "expected each dimension once");
    return std::nullopt;
  }
  return dims;
}

static Tensor reduce(StringRef op, const Tensor &x, Shape dims, bool keep,
                     Where where) {
  if (!x.valid())
    return x;
  auto over = reducedDims(x, dims, where);
  if (!over)
    return {};
  Tensor y =
      call(op, {x}, AttributeList(*x.recorder()).ints("dims", *over), where);
  if (!keep || !y.valid())
    return y;
  Shape kept = x.shape();
  for (int64_t d : *over)
    kept[d] = 1;
  return y.view(kept, where);
}

Tensor tandem::sum(const Tensor &x, Shape dims, bool keep, Where where) {
  return reduce("reduce_sum", x, dims, keep, where);
}
Tensor tandem::mean(const Tensor &x, Shape dims, bool keep, Where where) {
  return reduce("reduce_mean", x, dims, keep, where);
}
Tensor tandem::max(const Tensor &x, Shape dims, bool keep, Where where) {
  return reduce("reduce_max", x, dims, keep, where);
}
Tensor tandem::min(const Tensor &x, Shape dims, bool keep, Where where) {
  return reduce("reduce_min", x, dims, keep, where);
}

/// Records an op with an attribute `dim`, counted from the front.
static Tensor alongDim(StringRef op, const Tensor &x, int64_t dim,
                       Where where) {
  if (!x.valid())
    return x;
  auto over = reducedDims(x, {dim}, where);
  if (!over)
    return {};
  return call(op, {x},
              AttributeList(*x.recorder()).integer("dim", over->front()),
              where);
}

Tensor tandem::argmax(const Tensor &x, int64_t dim, Where where) {
  return alongDim("argmax", x, dim, where);
}
Tensor tandem::softmax(const Tensor &x, int64_t dim, Where where) {
  return alongDim("softmax", x, dim, where);
}
Tensor tandem::logSoftmax(const Tensor &x, int64_t dim, Where where) {
  return alongDim("log_softmax", x, dim, where);
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

Tensor tandem::concat(const std::vector<Tensor> &tensors, int64_t dim,
                      Where where) {
  if (tensors.empty() ||
      llvm::any_of(tensors, [](const Tensor &t) { return !t.valid(); }))
    return {};
  auto over = reducedDims(tensors[0], {dim}, where);
  if (!over)
    return {};
  AttributeList attributes(*tensors[0].recorder());
  return call("concat", tensors, attributes.integer("dim", over->front()),
              where);
}

Tensor tandem::pad(const Tensor &x, Shape low, Shape high, double number,
                   Where where) {
  if (!x.valid())
    return x;
  Type element = x.recorder()->typeOf(x).getElementType();
  Builder b = x.recorder()->attributes();
  AttributeList attributes(*x.recorder());
  attributes.ints("low", low)
      .ints("high", high)
      .ints("interior", Shape(x.rank(), 0));
  if (isa<FloatType>(element))
    attributes.add("value", b.getFloatAttr(element, number));
  else
    attributes.add("value",
                   b.getIntegerAttr(element, static_cast<int64_t>(number)));
  return call("pad", {x}, attributes, where);
}

//===----------------------------------------------------------------------===//
// Contractions and pooling
//===----------------------------------------------------------------------===//

Tensor tandem::matmul(const Tensor &a, const Tensor &b, Where where) {
  if (anyInvalid({a, b}))
    return {};
  Tensor x = a, y = b;
  if (x.rank() > 2 || y.rank() > 2) {
    // Leading dimensions broadcast; the last two stay.
    int64_t rank = std::max(x.rank(), y.rank());
    if (x.rank() < 2 || y.rank() < 2)
      return x.recorder()->mistake(where, "expected matrices, but got ranks " +
                                              Twine(x.rank()) + " and " +
                                              Twine(y.rank()));
    Shape p = x.shape(), q = y.shape();
    p.insert(p.begin(), rank - p.size(), 1);
    q.insert(q.begin(), rank - q.size(), 1);
    for (int64_t d = 0; d < rank - 2; ++d) {
      int64_t common = p[d] == 1 ? q[d] : p[d];
      p[d] = common;
      q[d] = q[d] == 1 ? common : q[d];
    }
    x = broadcastTo(x, p, where);
    y = broadcastTo(y, q, where);
    if (anyInvalid({x, y}))
      return {};
  }
  return call("matmul", {x, y}, AttributeList(*x.recorder()), where);
}

Tensor tandem::linear(const Tensor &x, const Tensor &w, const Tensor &bias,
                      Where where) {
  if (anyInvalid({x, w}) || (bias.recorder() && !bias.valid()))
    return {};
  std::vector<Tensor> operands = {x, w};
  if (bias.valid())
    operands.push_back(bias);
  return call("linear", operands, AttributeList(*x.recorder()), where);
}

/// Four paddings from two.
static Shape fourSides(const Shape &padding) {
  if (padding.size() != 2)
    return padding;
  return {padding[0], padding[0], padding[1], padding[1]};
}

/// x plus one number per channel.
static Tensor addChannels(const Tensor &x, const Tensor &bias, Where where) {
  if (!bias.recorder() || !x.valid())
    return x;
  if (!bias.valid())
    return {};
  return Operand(x, where) + Operand(bias.view({1, -1, 1, 1}, where), where);
}

Tensor tandem::conv2d(const Tensor &x, const Tensor &w, const Tensor &bias,
                      Conv2dOptions options, Where where) {
  if (anyInvalid({x, w}))
    return {};
  AttributeList attributes(*x.recorder());
  attributes.ints("strides", options.stride)
      .ints("padding", fourSides(options.padding))
      .ints("dilation", options.dilation)
      .integer("groups", options.groups);
  return addChannels(call("conv2d", {x, w}, attributes, where), bias, where);
}

static AttributeList poolAttributes(const Tensor &x,
                                    const Pool2dOptions &options) {
  AttributeList attributes(*x.recorder());
  attributes.ints("kernel", options.kernel)
      .ints("strides", options.stride.empty() ? options.kernel : options.stride)
      .ints("padding", fourSides(options.padding));
  return attributes;
}

Tensor tandem::maxPool2d(const Tensor &x, Pool2dOptions options, Where where) {
  if (!x.valid())
    return x;
  AttributeList attributes = poolAttributes(x, options);
  return call("max_pool2d", {x}, attributes.ints("dilation", options.dilation),
              where);
}

Tensor tandem::avgPool2d(const Tensor &x, Pool2dOptions options, Where where) {
  if (!x.valid())
    return x;
  AttributeList attributes = poolAttributes(x, options);
  return call("avg_pool2d", {x},
              attributes.flag("count_include_pad", options.countPadding),
              where);
}

//===----------------------------------------------------------------------===//
// Normalizations, lookups, losses
//===----------------------------------------------------------------------===//

Tensor tandem::layerNorm(const Tensor &x, const Tensor &scale,
                         const Tensor &bias, double epsilon, Where where) {
  if (anyInvalid({x, scale, bias}))
    return {};
  return call("layer_norm", {x, scale, bias},
              AttributeList(*x.recorder())
                  .integer("axis", x.rank() - scale.rank())
                  .number("epsilon", epsilon),
              where);
}

Tensor tandem::batchNorm(const Tensor &x, const Tensor &scale,
                         const Tensor &bias, const Tensor &mean,
                         const Tensor &variance, double momentum,
                         double epsilon, Where where) {
  if (anyInvalid({x, scale, bias, mean, variance}))
    return {};
  Recorder &recorder = *x.recorder();
  auto results = recorder.record(
      "batch_norm", {x, scale, bias, mean, variance},
      AttributeList(recorder).unit("training", true).number("epsilon", epsilon),
      where);
  if (anyInvalid({results[0]}))
    return {};
  if (momentum == 0.0)
    return results[0];
  // The running variance is the unbiased one, as PyTorch's.
  int64_t channels = x.size(1), count = 1;
  for (int64_t size : x.shape())
    count *= size;
  count = channels ? count / channels : 0;
  double unbias = count > 1 ? static_cast<double>(count) / (count - 1) : 1.0;
  NoGradScope noGrad(recorder, where);
  auto number = [&](double value) { return Operand(value, where); };
  auto at = [&](const Tensor &t) { return Operand(t, where); };
  mean.copy_(at(at(mean) * number(1 - momentum)) +
                 at(at(results[1]) * number(momentum)),
             where);
  variance.copy_(at(at(variance) * number(1 - momentum)) +
                     at(at(results[2]) * number(momentum * unbias)),
                 where);
  return results[0];
}

Tensor tandem::attention(const Tensor &q, const Tensor &k, const Tensor &v,
                         bool causal, std::optional<double> scale,
                         Where where) {
  if (anyInvalid({q, k, v}))
    return {};
  double factor =
      scale.value_or(1.0 / std::sqrt(static_cast<double>(q.size(-1))));
  return call("attention", {q, k, v},
              AttributeList(*q.recorder())
                  .unit("causal", causal)
                  .number("scale", factor),
              where);
}

Tensor tandem::embedding(const Tensor &table, const Tensor &indices,
                         Where where) {
  if (anyInvalid({table, indices}))
    return {};
  return call("take", {table, indices}, AttributeList(*table.recorder()),
              where);
}

Tensor tandem::crossEntropy(const Tensor &logits, const Tensor &labels,
                            std::optional<int64_t> ignoreIndex, Where where) {
  if (anyInvalid({logits, labels}))
    return {};
  AttributeList attributes(*logits.recorder());
  attributes.text("reduction", "mean");
  if (ignoreIndex)
    attributes.integer("ignore_index", *ignoreIndex);
  return call("cross_entropy", {logits, labels}, attributes, where);
}

Tensor tandem::mseLoss(const Tensor &x, const Tensor &target, Where where) {
  if (anyInvalid({x, target}))
    return {};
  return call("mse_loss", {x, target}, AttributeList(*x.recorder()), where);
}
