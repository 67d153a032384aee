//===- TensorData.cpp - a dense tensor that an importer read --------------===//
#include "compiler/import/TensorData.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace tandem {

std::string spelling(ElementKind kind) {
  static const char *const names[] = {
      "undefined",      "float",      "uint8",
      "int8",           "uint16",     "int16",
      "int32",          "int64",      "string",
      "bool",           "float16",    "double",
      "uint32",         "uint64",     "complex64",
      "complex128",     "bfloat16",   "float8e4m3fn",
      "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
      "uint4",          "int4",       "float4e2m1",
      "float8e8m0",     "uint2",      "int2"};
  auto number = static_cast<size_t>(kind);
  if (number < std::size(names))
    return names[number];
  return "number " + std::to_string(static_cast<int32_t>(kind));
}

int64_t byteSize(ElementKind kind) {
  switch (kind) {
  case ElementKind::U8:
  case ElementKind::I8:
  case ElementKind::Bool:
  case ElementKind::F8E4M3FN:
  case ElementKind::F8E4M3FNUZ:
  case ElementKind::F8E5M2:
  case ElementKind::F8E5M2FNUZ:
  case ElementKind::F8E8M0:
    return 1;
  case ElementKind::U16:
  case ElementKind::I16:
  case ElementKind::F16:
  case ElementKind::BF16:
    return 2;
  case ElementKind::F32:
  case ElementKind::I32:
  case ElementKind::U32:
    return 4;
  case ElementKind::F64:
  case ElementKind::I64:
  case ElementKind::U64:
  case ElementKind::Complex64:
    return 8;
  case ElementKind::Complex128:
    return 16;
  default:
    return 0;
  }
}

int64_t TensorData::elements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

} // namespace tandem

mlir::DenseElementsAttr tandem::elementsOf(mlir::RankedTensorType type,
                                           const TensorData &data) {
  if (data.kind != ElementKind::Bool)
    return mlir::DenseElementsAttr::getFromRawBuffer(
        type, llvm::ArrayRef<char>(data.bytes.data(), data.bytes.size()));
  // MLIR takes bools as bits, of which there are bytes here.
  llvm::SmallVector<bool> truths;
  for (char byte : data.bytes)
    truths.push_back(byte != 0);
  return mlir::DenseElementsAttr::get(type, llvm::ArrayRef<bool>(truths));
}
