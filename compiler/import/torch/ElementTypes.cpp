//===- ElementTypes.cpp - PyTorch's element types -------------------------===//
#include "compiler/import/torch/ElementTypes.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tandem;

namespace {
struct ElementType {
  int64_t dtype;
  const char *spelling;
  ElementKind kind;
};
} // namespace

static constexpr ElementType types[] = {
    {1, "uint8", ElementKind::U8},
    {2, "int8", ElementKind::I8},
    {3, "int16", ElementKind::I16},
    {4, "int32", ElementKind::I32},
    {5, "int64", ElementKind::I64},
    {6, "float16", ElementKind::F16},
    {7, "float32", ElementKind::F32},
    {8, "float64", ElementKind::F64},
    {9, "complex32", ElementKind::Undefined},
    {10, "complex64", ElementKind::Undefined},
    {11, "complex128", ElementKind::Undefined},
    {12, "bool", ElementKind::Bool},
    {13, "bfloat16", ElementKind::BF16},
    {28, "uint16", ElementKind::U16},
    {29, "float8_e4m3fn", ElementKind::F8E4M3FN},
    {30, "float8_e5m2", ElementKind::F8E5M2},
    {31, "float8_e4m3fnuz", ElementKind::Undefined},
    {32, "float8_e5m2fnuz", ElementKind::Undefined},
    {33, "float8_e8m0fnu", ElementKind::Undefined},
    {34, "uint32", ElementKind::U32},
    {35, "uint64", ElementKind::U64},
};

static const ElementType *find(int64_t dtype) {
  for (const ElementType &type : types)
    if (type.dtype == dtype)
      return &type;
  return nullptr;
}

ElementKind torch::kindOf(int64_t dtype) {
  const ElementType *type = find(dtype);
  return type ? type->kind : ElementKind::Undefined;
}

std::string torch::spellingOf(int64_t dtype) {
  const ElementType *type = find(dtype);
  return type ? type->spelling : "number " + std::to_string(dtype);
}

Type torch::elementTypeOf(int64_t dtype, MLIRContext *context) {
  Builder b(context);
  auto integer = [&](unsigned bits, bool isSigned) -> Type {
    return isSigned ? b.getIntegerType(bits)
                    : b.getIntegerType(bits, /*isSigned=*/false);
  };
  switch (kindOf(dtype)) {
  case ElementKind::U8:
    return integer(8, false);
  case ElementKind::U16:
    return integer(16, false);
  case ElementKind::U32:
    return integer(32, false);
  case ElementKind::U64:
    return integer(64, false);
  case ElementKind::I8:
    return integer(8, true);
  case ElementKind::I16:
    return integer(16, true);
  case ElementKind::I32:
    return integer(32, true);
  case ElementKind::I64:
    return integer(64, true);
  case ElementKind::Bool:
    return b.getI1Type();
  case ElementKind::F16:
    return b.getF16Type();
  case ElementKind::BF16:
    return b.getBF16Type();
  case ElementKind::F32:
    return b.getF32Type();
  case ElementKind::F64:
    return b.getF64Type();
  case ElementKind::F8E4M3FN:
    return Float8E4M3FNType::get(context);
  case ElementKind::F8E5M2:
    return Float8E5M2Type::get(context);
  default:
    return {};
  }
}
