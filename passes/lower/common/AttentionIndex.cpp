//===- AttentionIndex.cpp - the dimensions of attention's code ------------===//
#include "passes/lower/common/AttentionIndex.h"
#include "passes/lower/common/Indices.h"

#include "ir/Keys.h"
#include "ir/ops/Scalar.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

AttentionIndex::AttentionIndex(Operation *op) : context(op->getContext()) {
  auto type = [&](unsigned i) { return op->getOperand(i).getType(); };
  attention = AttentionSizes::of(type(Q), type(K), type(V));
  causal = op->hasAttr(key::kCausal);
  scale = op->getAttrOfType<FloatAttr>(key::kScale).getValueAsDouble();
  element = cast<RankedTensorType>(type(Q)).getElementType();
  compute = scalar::computeType(element);
  unsigned rank = attention.leading.size();
  t = rank, s = rank + 1, d = rank + 2, e = rank + 3;
  sizes = attention.shape({attention.queries, attention.keys, attention.width,
                           attention.valueWidth});
}

SmallVector<AffineExpr> AttentionIndex::index(ArrayRef<unsigned> last) const {
  SmallVector<AffineExpr> index = dimensions(context, t);
  for (unsigned i : last)
    index.push_back(getAffineDimExpr(i, context));
  return index;
}

SmallVector<AffineExpr> AttentionIndex::operand(Number number) const {
  switch (number) {
  case Q:
    return index({t, d});
  case K:
    return index({s, d});
  case V:
    return index({s, e});
  case DY:
    return index({t, e});
  case LSE:
  case DELTA:
    break;
  }
  return index({t});
}

SmallVector<Value> AttentionIndex::at(Code &code, Value batch) const {
  SmallVector<Value> at(sizes.size(), code.index(0));
  for (unsigned i = t; i-- > 0;) {
    at[i] = i == 0 ? batch : code.rem(batch, sizes[i]);
    batch = code.div(batch, sizes[i]);
  }
  return at;
}

SmallVector<Value> AttentionIndex::resultAt(ArrayRef<Value> at, Value row,
                                            Value column) const {
  SmallVector<Value> index(at.take_front(t));
  index.push_back(row);
  if (column)
    index.push_back(column);
  return index;
}
