//===- Tensor.cpp - views, writes and operators of the proxy --------------===//
#include "compiler/trace/Tensor.h"
#include "compiler/capture/ViewChain.h"
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
  for (int i = 0; i <= static_cast<int>(artifact::kLastDType); ++i)
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
  // A handle of its own even where nothing is repeated.
  return valid() && shape() == to ? view(to, where)
                                  : broadcastTo(*this, to, where);
}

std::vector<Tensor> Tensor::split(Shape sizes, int64_t dim, Where where) const {
  std::vector<Tensor> pieces(sizes.size(), Tensor(recorder_, -1));
  if (!valid())
    return pieces;
  auto d = wrap(*this, dim, where);
  if (!d)
    return pieces;
  int64_t total = 0, whole = size(*d);
  bool fits = true;
  for (int64_t size : sizes) {
    fits = fits && size >= 0 && size <= whole - total;
    total += fits ? size : 0;
  }
  if (!fits || total != whole) {
    recorder_->mistake(where, "expected sizes of at least 0 that add up to " +
                                  Twine(whole) + ", the size of dimension " +
                                  Twine(*d));
    return pieces;
  }
  Builder b = recorder_->attributes();
  int64_t start = 0;
  for (auto [piece, size] : llvm::zip_equal(pieces, sizes)) {
    Shape starts(rank(), 0), limits = shape(), steps(rank(), 1);
    starts[*d] = start;
    limits[*d] = start += size;
    piece = recorder_->recordView(
        "slice", *this,
        {ints(b, "starts", starts), ints(b, "limits", limits),
         ints(b, "strides", steps),
         b.getNamedAttr(kPartOfAttr, b.getStringAttr("split"))},
        where);
  }
  return pieces;
}

std::vector<Tensor> Tensor::chunk(int64_t count, int64_t dim,
                                  Where where) const {
  Shape sizes;
  if (valid()) {
    auto d = wrap(*this, dim, where);
    if (d && count < 1)
      recorder_->mistake(where,
                         "expected at least 1 chunk, but got " + Twine(count));
    if (d && count >= 1) {
      int64_t whole = size(*d), each = (whole - 1) / count + 1;
      for (int64_t start = 0; start < whole; start += each)
        sizes.push_back(std::min(each, whole - start));
      return split(sizes, *d, where);
    }
  }
  return std::vector<Tensor>(std::clamp<int64_t>(count, 1, 1 << 16),
                             Tensor(recorder_, -1));
}

Tensor Tensor::detach(Where where) const {
  return valid() ? recorder_->recordView("detach", *this, {}, where) : *this;
}

Tensor Tensor::asStrided(Shape sizes, Shape strides, int64_t offset,
                         Where where) const {
  if (!valid())
    return *this;
  Builder b = recorder_->attributes();
  return recorder_->recordView(
      "as_strided", *this,
      {ints(b, "sizes", sizes), ints(b, "strides", strides),
       b.getNamedAttr("offset", b.getI64IntegerAttr(offset))},
      where);
}

Tensor Tensor::bitcast(DType dtype, Where where) const {
  if (!valid())
    return *this;
  Type element = recorder_->elementType(dtype);
  if (!element)
    return recorder_->mistake(where, "unsupported element type");
  return recorder_->recordView(
      "bitcast", *this, {}, where,
      viewType("bitcast", recorder_->typeOf(*this), element));
}

Tensor Tensor::clone(Where where) const {
  if (!valid())
    return *this;
  return recorder_->record("reshape", *this,
                           ints(recorder_->attributes(), "shape", shape()),
                           where)[0];
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

#define TANDEM_IN_PLACE(NAME, OPERATOR)                                        \
  Tensor Tensor::NAME(const Tensor &other, Where where) const {                \
    return copy_(Operand(*this, where) OPERATOR Operand(other, where), where); \
  }                                                                            \
  Tensor Tensor::NAME(double number, Where where) const {                      \
    return copy_(Operand(*this, where) OPERATOR Operand(number, where),        \
                 where);                                                       \
  }
TANDEM_IN_PLACE(add_, +)
TANDEM_IN_PLACE(sub_, -)
TANDEM_IN_PLACE(mul_, *)
TANDEM_IN_PLACE(div_, /)
#undef TANDEM_IN_PLACE

#define TANDEM_IN_PLACE(NAME, OP)                                              \
  Tensor Tensor::NAME(Where where) const {                                     \
    return copy_(unary(OP, *this, where), where);                              \
  }
TANDEM_IN_PLACE(neg_, "neg")
TANDEM_IN_PLACE(exp_, "exp")
TANDEM_IN_PLACE(sqrt_, "sqrt")
TANDEM_IN_PLACE(relu_, "relu")
TANDEM_IN_PLACE(sigmoid_, "sigmoid")
TANDEM_IN_PLACE(tanh_, "tanh")
#undef TANDEM_IN_PLACE

Tensor Tensor::zero_(Where where) const { return fill_(0.0, where); }
Tensor Tensor::fill_(double number, Where where) const {
  if (!valid())
    return *this;
  return copy_(recorder_->addConstant(recorder_->typeOf(*this).getTensorType(),
                                      number, where),
               where);
}

//===----------------------------------------------------------------------===//
// Handles
//===----------------------------------------------------------------------===//

Tensor Tensor::transpose_(int64_t a, int64_t b, Where where) const {
  if (!valid())
    return *this;
  auto first = wrap(*this, a, where), second = wrap(*this, b, where);
  if (!first || !second)
    return *this;
  Builder builder = recorder_->attributes();
  recorder_->recordHandle(
      "transpose_", *this, {},
      {builder.getNamedAttr("a", builder.getI64IntegerAttr(*first)),
       builder.getNamedAttr("b", builder.getI64IntegerAttr(*second))},
      where);
  return *this;
}

Tensor Tensor::set_(const Tensor &other, Where where) const {
  if (!valid() || !other.valid())
    return *this;
  if (recorder_->usable({*this, other}, where)) {
    if (dtype() != other.dtype())
      recorder_->mistake(
          where, "expected a tensor of type '" + StringRef(spelling(dtype())) +
                     "', but got '" + StringRef(spelling(other.dtype())) + "'");
    else
      recorder_->recordHandle("set_", *this, other, {}, where);
  }
  return *this;
}

Tensor Tensor::resize_(int64_t elements, Where where) const {
  if (!valid())
    return *this;
  if (elements < 0) {
    recorder_->mistake(where, "expected at least 0 elements, but got " +
                                  Twine(elements));
    return *this;
  }
  Builder b = recorder_->attributes();
  recorder_->recordHandle(
      "resize_", *this, {},
      b.getNamedAttr("elements", b.getI64IntegerAttr(elements)), where);
  return *this;
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

Tensor tandem::operator+(Operand a, Operand b) { return binary("add", a, b); }
Tensor tandem::operator-(Operand a, Operand b) { return binary("sub", a, b); }
Tensor tandem::operator*(Operand a, Operand b) { return binary("mul", a, b); }
Tensor tandem::operator/(Operand a, Operand b) { return binary("div", a, b); }
Tensor tandem::operator-(Operand a) { return unary("neg", a.tensor, a.where); }

const Tensor &tandem::operator+=(const Tensor &x, Operand y) {
  x.copy_(Operand(x, y.where) + y, y.where);
  return x;
}
const Tensor &tandem::operator-=(const Tensor &x, Operand y) {
  x.copy_(Operand(x, y.where) - y, y.where);
  return x;
}
const Tensor &tandem::operator*=(const Tensor &x, Operand y) {
  x.copy_(Operand(x, y.where) * y, y.where);
  return x;
}
const Tensor &tandem::operator/=(const Tensor &x, Operand y) {
  x.copy_(Operand(x, y.where) / y, y.where);
  return x;
}
