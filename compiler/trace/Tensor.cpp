//===- Tensor.cpp - views, writes and operators of the proxy --------------===//
#include "compiler/trace/Tensor.h"
#include "compiler/trace/Broadcast.h"
#include "compiler/trace/Functions.h"
#include "compiler/trace/Recorder.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::trace;

using Attributes = SmallVector<NamedAttribute>;

static NamedAttribute ints(Builder b, StringRef name, ArrayRef<int64_t> list) {
  return b.getNamedAttr(name, b.getDenseI64ArrayAttr(list));
}

/// `dim` counted from the front; nothing, and a mistake, if there is none.
static std::optional<int64_t> wrap(const Tensor &x, int64_t dim, Where where,
                                   int64_t extra = 0) {
  int64_t rank = x.rank() + extra;
  if (dim < -rank || dim >= rank) {
    x.recorder()->mistake(where, "expected a dimension in [" + Twine(-rank) +
                                     ", " + Twine(rank) + "), but got " +
                                     Twine(dim));
    return std::nullopt;
  }
  return dim < 0 ? dim + rank : dim;
}

Shape Tensor::shape() const {
  return valid() ? recorder_->typeOf(*this).getShape().vec() : Shape();
}

int64_t Tensor::size(int64_t dim) const {
  Shape sizes = shape();
  int64_t rank = static_cast<int64_t>(sizes.size());
  if (dim < 0)
    dim += rank;
  return dim >= 0 && dim < rank ? sizes[dim] : 0;
}

DType Tensor::dtype() const {
  if (!valid())
    return DType::F32;
  Type element = recorder_->typeOf(*this).getElementType();
  for (int i = 0; i <= static_cast<int>(DType::F64); ++i)
    if (recorder_->elementType(static_cast<DType>(i)) == element)
      return static_cast<DType>(i);
  return DType::F32;
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

Tensor Tensor::view(Shape to, Where where) const {
  if (!valid())
    return *this;
  int64_t known = 1, open = -1, total = 1;
  for (int64_t size : shape())
    total *= size;
  for (auto [i, size] : llvm::enumerate(to)) {
    if (size == -1 && open < 0)
      open = static_cast<int64_t>(i);
    else
      known *= size;
  }
  if (open >= 0) {
    if (known <= 0 || total % known)
      return recorder_->mistake(where, "-1 has no size that keeps the " +
                                           Twine(total) + " elements");
    to[open] = total / known;
  }
  return recorder_->recordView(
      "reshape", *this, ints(recorder_->attributes(), "shape", to), where);
}

Tensor Tensor::permute(Shape permutation, Where where) const {
  if (!valid())
    return *this;
  return recorder_->recordView(
      "permute", *this,
      ints(recorder_->attributes(), "permutation", permutation), where);
}

Tensor Tensor::transpose(int64_t a, int64_t b, Where where) const {
  if (!valid())
    return *this;
  auto first = wrap(*this, a, where), second = wrap(*this, b, where);
  if (!first || !second)
    return {};
  Shape permutation;
  for (int64_t d = 0; d < rank(); ++d)
    permutation.push_back(d == *first ? *second : d == *second ? *first : d);
  return permute(permutation, where);
}

Tensor Tensor::slice(int64_t dim, int64_t start, int64_t limit, int64_t step,
                     Where where) const {
  if (!valid())
    return *this;
  auto d = wrap(*this, dim, where);
  if (!d)
    return {};
  Shape starts(rank(), 0), limits = shape(), steps(rank(), 1);
  starts[*d] = start < 0 ? start + limits[*d] : start;
  limits[*d] = limit < 0 ? limit + limits[*d] : limit;
  steps[*d] = step;
  Builder b = recorder_->attributes();
  return recorder_->recordView("slice", *this,
                               {ints(b, "starts", starts),
                                ints(b, "limits", limits),
                                ints(b, "strides", steps)},
                               where);
}

Tensor Tensor::select(int64_t dim, int64_t index, Where where) const {
  if (!valid())
    return *this;
  auto d = wrap(*this, dim, where);
  if (!d)
    return {};
  int64_t first = index < 0 ? index + size(*d) : index;
  Tensor row = slice(*d, first, first + 1, 1, where);
  if (!row.valid())
    return {};
  Shape rest = row.shape();
  rest.erase(rest.begin() + *d);
  return row.view(rest, where);
}

Tensor Tensor::unsqueeze(int64_t dim, Where where) const {
  if (!valid())
    return *this;
  auto d = wrap(*this, dim, where, /*extra=*/1);
  if (!d)
    return {};
  Shape to = shape();
  to.insert(to.begin() + *d, 1);
  return view(to, where);
}

Tensor Tensor::expand(Shape to, Where where) const {
  return broadcastTo(*this, to, where);
}

//===----------------------------------------------------------------------===//
// Writes
//===----------------------------------------------------------------------===//

Tensor Tensor::copy_(const Tensor &other, Where where) const {
  if (!valid() || !other.valid())
    return *this;
  Tensor value = broadcastTo(other, shape(), where);
  if (value.valid())
    recorder_->recordWrite(*this, value, where);
  return *this;
}

Tensor Tensor::add_(const Tensor &other, Where where) const {
  return copy_(Operand(*this, where) + Operand(other, where), where);
}
Tensor Tensor::mul_(const Tensor &other, Where where) const {
  return copy_(Operand(*this, where) * Operand(other, where), where);
}
Tensor Tensor::mul_(double number, Where where) const {
  return copy_(Operand(*this, where) * Operand(number, where), where);
}
Tensor Tensor::fill_(double number, Where where) const {
  if (!valid())
    return *this;
  return copy_(recorder_->addConstant(recorder_->typeOf(*this).getTensorType(),
                                      number, where),
               where);
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

Tensor tandem::operator+(Operand a, Operand b) { return binary("add", a, b); }
Tensor tandem::operator-(Operand a, Operand b) { return binary("sub", a, b); }
Tensor tandem::operator*(Operand a, Operand b) { return binary("mul", a, b); }
Tensor tandem::operator/(Operand a, Operand b) { return binary("div", a, b); }
Tensor tandem::operator-(Operand a) { return unary("neg", a.tensor, a.where); }
