//===- Narrow.cpp - types of few bits, whose numbers wider ones hold ------===//
#include "compiler/import/onnx/Narrow.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

namespace {

struct Format {
  ElementKind kind;
  int bits;
  bool isSigned;
  bool isFloat = false;
  // Of floats: bits of the fraction, the exponents of the least and the largest
  // normal number, the bias, and the largest number.
  int fraction = 0, low = 0, high = 0, bias = 0;
  double most = 0;
};

} // namespace

static const Format *formatOf(ElementKind kind) {
  static constexpr Format formats[] = {
      {ElementKind::I4, 4, true},
      {ElementKind::U4, 4, false},
      {ElementKind::I2, 2, true},
      {ElementKind::U2, 2, false},
      {ElementKind::F4E2M1, 4, true, true, 1, 0, 2, 1, 6},
      {ElementKind::F8E4M3FNUZ, 8, true, true, 3, -7, 7, 8, 240},
      {ElementKind::F8E5M2FNUZ, 8, true, true, 2, -15, 15, 16, 57344}};
  for (const Format &format : formats)
    if (format.kind == kind)
      return &format;
  return nullptr;
}

ElementKind onnx::carrierOf(ElementKind kind) {
  const Format *format = formatOf(kind);
  return !format            ? ElementKind::Undefined
         : format->isFloat  ? ElementKind::F32
         : format->isSigned ? ElementKind::I8
                            : ElementKind::U8;
}

int64_t onnx::packedSize(ElementKind kind, int64_t elements) {
  const Format *format = formatOf(kind);
  int64_t whole = format ? 8 / format->bits : 1;
  return elements / whole + (elements % whole != 0);
}

/// The number that the lowest bits of a float's code stand for.
static float decoded(const Format &format, unsigned code) {
  unsigned sign = code >> (format.bits - 1);
  unsigned fraction = code & ((1U << format.fraction) - 1);
  int exponent = static_cast<int>((code & ((1U << (format.bits - 1)) - 1)) >>
                                  format.fraction);
  // The negative zero of formats that have none.
  if (format.bits == 8 && code == 0x80)
    return std::numeric_limits<float>::quiet_NaN();
  double scaled = exponent ? 1 + std::ldexp(fraction, -format.fraction)
                           : std::ldexp(fraction, -format.fraction);
  double number = std::ldexp(scaled, (exponent ? exponent : 1) - format.bias);
  return static_cast<float>(sign ? -number : number);
}

TensorPtr onnx::carried(const TensorPtr &data) {
  const Format *format = data ? formatOf(data->kind) : nullptr;
  if (!format)
    return data;
  auto to = std::make_shared<TensorData>();
  to->name = data->name;
  to->kind = carrierOf(data->kind);
  to->shape = data->shape;
  int64_t whole = 8 / format->bits, count = data->elements();
  unsigned mask = (1U << format->bits) - 1;
  to->bytes.resize(count * byteSize(to->kind));
  for (int64_t i = 0; i < count; ++i) {
    // The first element has the lowest bits.
    auto byte = static_cast<unsigned char>(data->bytes[i / whole]);
    unsigned code = (byte >> (i % whole * format->bits)) & mask;
    if (format->isFloat) {
      float number = decoded(*format, code);
      std::memcpy(to->bytes.data() + i * sizeof number, &number, sizeof number);
      continue;
    }
    bool isNegative = format->isSigned && (code >> (format->bits - 1)) != 0;
    to->bytes[i] = static_cast<char>(isNegative ? code | ~mask : code);
  }
  return to;
}

Datum onnx::datumOf(const TensorPtr &data) {
  Datum made(carried(data));
  if (data && isNarrow(data->kind))
    made.kind = data->kind;
  return made;
}

/// The low bits of integers.
static Expr wrapped(Node &node, const Expr &x, const Format &format) {
  auto whole = static_cast<double>(1 << format.bits);
  Value bits = node.call("bitwise_and", {x.value, x.like(whole - 1).value});
  if (!bits)
    return {};
  Expr y = node.wrap(bits);
  if (!format.isSigned)
    return y;
  return select(compare(ComparePredicate::ge, y, y.like(whole / 2)), y - whole,
                y);
}

/// Rounded to the fraction that numbers of x's size have.
static Expr rounded(const Expr &x, const Format &format, bool saturates) {
  Expr size = maximum(x, -x);
  Expr step = x.like(std::ldexp(1, format.low - format.fraction));
  for (int e = format.low + 1; e <= format.high; ++e)
    step = select(compare(ComparePredicate::ge, size, x.like(std::ldexp(1, e))),
                  x.like(std::ldexp(1, e - format.fraction)), step);
  Expr y = round(x / step) * step;
  Expr most = x.like(format.most), least = x.like(-format.most);
  if (saturates)
    return minimum(maximum(y, least), most);
  Expr fits = logicalAnd(compare(ComparePredicate::le, y, most),
                         compare(ComparePredicate::ge, y, least));
  return select(fits, y, x.like(std::numeric_limits<double>::quiet_NaN()));
}

Expr onnx::narrowed(Node &node, const Expr &x, ElementKind kind,
                    bool saturates) {
  const Format *format = formatOf(kind);
  if (!x || !format)
    return {};
  OpBuilder &b = node.builder();
  Type element = x.type().getElementType();
  bool isDouble = element.isF64();
  if (!format->isFloat) {
    Type carrier = IntegerType::get(b.getContext(), 8,
                                    format->isSigned ? IntegerType::Signless
                                                     : IntegerType::Unsigned);
    Expr y = wrapped(node, x.cast(b.getI32Type()), *format);
    return y ? y.cast(carrier) : y;
  }
  Expr y = rounded(isDouble ? x : x.cast(b.getF32Type()), *format,
                   saturates || format->bits < 8);
  // A format of 4 bits has no NaN.
  if (format->bits < 8)
    y = select(compare(ComparePredicate::eq, y, y), y, y.like(0));
  return y.cast(b.getF32Type());
}

Expr onnx::clampedTo(const Expr &x, ElementKind kind) {
  const Format *format = formatOf(kind);
  if (!x || !format || format->isFloat)
    return x;
  int bits = format->bits;
  double low = format->isSigned ? -(1 << (bits - 1)) : 0;
  double high = format->isSigned ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
  return maximum(minimum(x, x.like(high)), x.like(low));
}
