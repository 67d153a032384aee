//===- Known.cpp - values that are known when compiling -------------------===//
#include "compiler/import/onnx/Known.h"
#include "ir/Ops.h"
#include "ir/reference/Rounding.h"

#include "llvm/ADT/SetVector.h"

#include <cmath>
#include <cstring>

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

/// What is larger is no shape, and not evaluated.
static constexpr int64_t maxKnownElements = int64_t(1) << 22;

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

Type onnx::elementTypeOf(ElementKind kind, MLIRContext *context) {
  auto integer = [&](unsigned width, bool isUnsigned = false) -> Type {
    return IntegerType::get(context, width,
                            isUnsigned ? IntegerType::Unsigned
                                       : IntegerType::Signless);
  };
  Type type;
  switch (kind) {
  case ElementKind::F32:
    return Float32Type::get(context);
  case ElementKind::F64:
    return Float64Type::get(context);
  case ElementKind::F16:
    return Float16Type::get(context);
  case ElementKind::BF16:
    return BFloat16Type::get(context);
  case ElementKind::Bool:
    return integer(1);
  case ElementKind::I8:
    return integer(8);
  case ElementKind::I16:
    return integer(16);
  case ElementKind::I32:
    return integer(32);
  case ElementKind::I64:
    return integer(64);
  case ElementKind::U8:
    type = integer(8, true);
    break;
  case ElementKind::U16:
    type = integer(16, true);
    break;
  case ElementKind::U32:
    type = integer(32, true);
    break;
  case ElementKind::U64:
    type = integer(64, true);
    break;
  case ElementKind::F8E4M3FN:
    type = Float8E4M3FNType::get(context);
    break;
  case ElementKind::F8E5M2:
    type = Float8E5M2Type::get(context);
    break;
  default:
    return {};
  }
  return isElementType(type) ? type : Type();
}

ElementKind onnx::kindOf(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type)) {
    bool isUnsigned = integer.isUnsigned();
    switch (integer.getWidth()) {
    case 1:
      return ElementKind::Bool;
    case 8:
      return isUnsigned ? ElementKind::U8 : ElementKind::I8;
    case 16:
      return isUnsigned ? ElementKind::U16 : ElementKind::I16;
    case 32:
      return isUnsigned ? ElementKind::U32 : ElementKind::I32;
    default:
      return isUnsigned ? ElementKind::U64 : ElementKind::I64;
    }
  }
  return type.isF32()                  ? ElementKind::F32
         : type.isF64()                ? ElementKind::F64
         : type.isF16()                ? ElementKind::F16
         : type.isBF16()               ? ElementKind::BF16
         : isa<Float8E4M3FNType>(type) ? ElementKind::F8E4M3FN
         : isa<Float8E5M2Type>(type)   ? ElementKind::F8E5M2
                                       : ElementKind::Undefined;
}

RankedTensorType onnx::typeOf(const TensorData &data, MLIRContext *context) {
  Type element = elementTypeOf(data.kind, context);
  return element ? RankedTensorType::get(data.shape, element)
                 : RankedTensorType();
}

DenseElementsAttr onnx::attributeOf(const TensorData &data,
                                    MLIRContext *context) {
  return elementsOf(typeOf(data, context), data);
}

/// Calls `integer` with an element of an integer kind (booleans are bytes), or
/// `floating` with the semantics of a kind of float.
template <typename Integer, typename Floating>
static void ofKind(ElementKind kind, Integer integer, Floating floating) {
  switch (kind) {
  case ElementKind::I8:
    return integer(int8_t());
  case ElementKind::I16:
    return integer(int16_t());
  case ElementKind::I32:
    return integer(int32_t());
  case ElementKind::I64:
    return integer(int64_t());
  case ElementKind::Bool:
  case ElementKind::U8:
    return integer(uint8_t());
  case ElementKind::U16:
    return integer(uint16_t());
  case ElementKind::U32:
    return integer(uint32_t());
  case ElementKind::U64:
    return integer(uint64_t());
  case ElementKind::F64:
    return floating(llvm::APFloat::IEEEdouble());
  case ElementKind::F32:
    return floating(llvm::APFloat::IEEEsingle());
  case ElementKind::F16:
    return floating(llvm::APFloat::IEEEhalf());
  case ElementKind::BF16:
    return floating(llvm::APFloat::BFloat());
  case ElementKind::F8E4M3FN:
    return floating(llvm::APFloat::Float8E4M3FN());
  case ElementKind::F8E5M2:
    return floating(llvm::APFloat::Float8E5M2());
  default:
    return; // a tensor of another kind is refused when it is read
  }
}

/// Writes `number` as an element.
static void store(double number, ElementKind kind, char *to) {
  // Beyond the range of an integer its ends are meant (as INT64_MAX, the end
  // of a slice, is 2^63 in double).
  auto integer = [&]<typename T>(T) {
    constexpr T low = std::numeric_limits<T>::min(),
                high = std::numeric_limits<T>::max();
    T element = std::isnan(number)                    ? T(0)
                : number >= static_cast<double>(high) ? high
                : number <= static_cast<double>(low)  ? low
                                                      : T(number);
    std::memcpy(to, &element, sizeof element);
  };
  auto floating = [&](const llvm::fltSemantics &semantics) {
    llvm::APFloat value(number);
    bool isInexact;
    value.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &isInexact);
    llvm::APInt bits = value.bitcastToAPInt();
    std::memcpy(to, bits.getRawData(), bits.getBitWidth() / 8);
  };
  if (kind == ElementKind::Bool)
    *to = number != 0;
  else
    ofKind(kind, integer, floating);
}

/// Calls `visit` with each element, as itself or, of floats, as a double.
template <typename Visit>
static void forEachElement(const TensorData &data, Visit visit) {
  int64_t unit = byteSize(data.kind), count = data.elements();
  auto place = [&](int64_t i) {
    return data.bytes.data() + (data.isSplat ? 0 : i * unit);
  };
  auto all = [&]<typename T>(T) {
    for (int64_t i = 0; i < count; ++i) {
      T element;
      std::memcpy(&element, place(i), sizeof element);
      visit(element);
    }
  };
  auto floating = [&](const llvm::fltSemantics &semantics) {
    for (int64_t i = 0; i < count; ++i) {
      uint64_t bits = 0;
      std::memcpy(&bits, place(i), unit);
      llvm::APFloat value(semantics, llvm::APInt(8 * unit, bits));
      bool isInexact;
      value.convert(llvm::APFloat::IEEEdouble(),
                    llvm::APFloat::rmNearestTiesToEven, &isInexact);
      visit(value.convertToDouble());
    }
  };
  ofKind(data.kind, all, floating);
}

SmallVector<int64_t> onnx::integersOf(const TensorData &data) {
  SmallVector<int64_t> list;
  forEachElement(data, [&]<typename T>(T element) {
    int64_t integer;
    if constexpr (std::is_floating_point_v<T>)
      store(element, ElementKind::I64, reinterpret_cast<char *>(&integer));
    else
      integer = static_cast<int64_t>(element);
    list.push_back(integer);
  });
  return list;
}

SmallVector<double> onnx::numbersOf(const TensorData &data) {
  SmallVector<double> list;
  forEachElement(data, [&](auto element) {
    list.push_back(static_cast<double>(element));
  });
  return list;
}

TensorPtr onnx::dataOf(DenseElementsAttr attribute) {
  auto type = cast<RankedTensorType>(attribute.getType());
  auto to = std::make_shared<TensorData>();
  to->kind = kindOf(type.getElementType());
  to->shape.assign(type.getShape().begin(), type.getShape().end());
  int64_t unit = byteSize(to->kind);
  to->isSplat = attribute.isSplat();
  to->bytes.resize((to->isSplat ? 1 : type.getNumElements()) * unit);
  char *out = to->bytes.data();
  auto put = [&](uint64_t bits) {
    std::memcpy(out, &bits, unit);
    out += unit;
  };
  if (to->isSplat)
    put(isa<FloatType>(type.getElementType())
            ? attribute.getSplatValue<APFloat>().bitcastToAPInt().getZExtValue()
            : attribute.getSplatValue<APInt>().getZExtValue());
  else if (isa<FloatType>(type.getElementType()))
    for (const APFloat &element : attribute.getValues<APFloat>())
      put(element.bitcastToAPInt().getZExtValue());
  else
    for (const APInt &element : attribute.getValues<APInt>())
      put(element.getZExtValue());
  return to;
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

static std::shared_ptr<const reference::Array> arrayOf(const TensorData &data) {
  auto array = std::make_shared<reference::Array>();
  array->shape = data.shape;
  SmallVector<double> numbers = numbersOf(data);
  array->data.assign(numbers.begin(), numbers.end());
  return array;
}

/// True if what it computes follows from its operands, and is not much.
static bool isEvaluable(Operation *op) {
  if (!isa<ReferenceOpInterface>(op) || op->getNumRegions() > 0 ||
      isa<MakeRefOp, ReadOp, WriteOp>(op))
    return false;
  return llvm::all_of(op->getResultTypes(), [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getNumElements() <= maxKnownElements;
  });
}

const reference::Array *KnownValues::find(Value value) {
  auto it = arrays.find(value);
  return it == arrays.end() ? nullptr : it->second.get();
}

bool KnownValues::evaluate(Operation *op) {
  if (!isEvaluable(op))
    return false;
  SmallVector<const Array *> in;
  for (Value operand : op->getOperands())
    in.push_back(find(operand));
  if (llvm::is_contained(in, nullptr))
    return false;
  SmallVector<Array> out;
  for (Type type : op->getResultTypes())
    out.emplace_back(cast<RankedTensorType>(type));
  cast<ReferenceOpInterface>(op).evaluate(in, out);
  for (auto [result, array] : llvm::zip(op->getResults(), out)) {
    reference::roundToType(getElementTypeOrSelf(result.getType()), array);
    arrays[result] = std::make_shared<Array>(std::move(array));
  }
  return true;
}

TensorPtr KnownValues::of(Value value, SmallVectorImpl<Value> *unknown) {
  if (auto constant = value.getDefiningOp<ConstantOp>())
    if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue()))
      return dataOf(dense);
  // Operands before what uses them, without recursion.
  SmallVector<std::pair<Value, bool>> stack = {{value, false}};
  DenseSet<Value> seen;
  bool isKnown = true;
  while (!stack.empty()) {
    auto [current, areOperandsDone] = stack.pop_back_val();
    if (find(current))
      continue;
    Operation *op = current.getDefiningOp();
    if (areOperandsDone) {
      isKnown = evaluate(op) && isKnown;
      continue;
    }
    if (!seen.insert(current).second)
      continue;
    auto read = current.getDefiningOp<ReadOp>();
    Value argument = read ? read.getOperand() : op ? Value() : current;
    if (argument) {
      if (TensorPtr data = leaf(argument)) {
        arrays[current] = arrayOf(*data);
      } else {
        isKnown = false;
        if (unknown)
          unknown->push_back(argument);
      }
      continue;
    }
    if (auto constant = dyn_cast<ConstantOp>(op)) {
      if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue()))
        arrays[current] = arrayOf(*dataOf(dense));
      else
        isKnown = false;
      continue;
    }
    stack.push_back({current, true});
    for (Value operand : op->getOperands())
      stack.push_back({operand, false});
  }
  const Array *array = isKnown ? find(value) : nullptr;
  if (!array)
    return nullptr;
  auto to = std::make_shared<TensorData>();
  to->kind = kindOf(cast<RankedTensorType>(value.getType()).getElementType());
  to->shape = array->shape;
  int64_t unit = byteSize(to->kind);
  to->bytes.resize(array->size() * unit);
  for (int64_t i = 0; i < array->size(); ++i)
    store((*array)[i], to->kind, to->bytes.data() + i * unit);
  return to;
}
