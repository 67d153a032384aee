//===- Broadcast.cpp - operands of one shape, as NumPy makes them ---------===//
#include "compiler/trace/Broadcast.h"
#include "compiler/trace/Recorder.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::trace;

static std::string text(const Shape &shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

Tensor trace::broadcastTo(const Tensor &x, const Shape &shape, Where where) {
  if (!x.valid() || x.shape() == shape)
    return x;
  int64_t offset = static_cast<int64_t>(shape.size()) - x.rank();
  bool fits = offset >= 0;
  for (int64_t d = 0; fits && d < x.rank(); ++d)
    fits = x.size(d) == 1 || x.size(d) == shape[d + offset];
  if (!fits)
    return x.recorder()->mistake(where, "a tensor of shape " + text(x.shape()) +
                                            " cannot be broadcast to " +
                                            text(shape));
  Shape dims;
  for (int64_t d = 0; d < x.rank(); ++d)
    dims.push_back(d + offset);
  Builder b = x.recorder()->attributes();
  return x.recorder()->recordView(
      "broadcast", x,
      {b.getNamedAttr("shape", b.getDenseI64ArrayAttr(shape)),
       b.getNamedAttr("dims", b.getDenseI64ArrayAttr(dims))},
      where);
}

bool trace::broadcastTogether(Tensor &a, Tensor &b, Where where) {
  if (!a.valid() || !b.valid())
    return false;
  Shape x = a.shape(), y = b.shape(), common(std::max(x.size(), y.size()));
  for (size_t i = 0; i < common.size(); ++i) {
    int64_t p = i < x.size() ? x[x.size() - 1 - i] : 1;
    int64_t q = i < y.size() ? y[y.size() - 1 - i] : 1;
    if (p != q && p != 1 && q != 1) {
      a.recorder()->mistake(where, "shapes " + text(x) + " and " + text(y) +
                                       " do not broadcast: " + Twine(p) +
                                       " against " + Twine(q));
      return false;
    }
    common[common.size() - 1 - i] = p == 1 ? q : p;
  }
  a = broadcastTo(a, common, where);
  b = broadcastTo(b, common, where);
  return a.valid() && b.valid();
}

Tensor trace::asTensor(const Operand &operand, const Tensor &other) {
  if (!operand.isNumber || !other.valid())
    return operand.tensor;
  Recorder *recorder = other.recorder();
  return recorder->addConstant(recorder->typeOf(other).getTensorType(),
                               operand.number, operand.where);
}

Tensor trace::unary(std::string_view op, const Tensor &x, Where where) {
  return x.valid() ? x.recorder()->record(op, x, {}, where)[0] : Tensor();
}

Tensor trace::binary(std::string_view op, const Operand &a, const Operand &b) {
  Tensor x = asTensor(a, b.tensor), y = asTensor(b, a.tensor);
  if (!broadcastTogether(x, y, a.where))
    return {};
  return x.recorder()->record(op, {x, y}, {}, a.where)[0];
}
