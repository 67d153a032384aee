//===- TensorData.h - a dense tensor that an importer read ----------------===//
//
// Elements are dense, row-major, little-endian, a bool a byte.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_TENSORDATA_H
#define TANDEM_COMPILER_IMPORT_TENSORDATA_H

#include "runtime/artifact/Text.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mlir {
class DenseElementsAttr;
class RankedTensorType;
} // namespace mlir

namespace tandem {

/// The numbers of ONNX's TensorProto.DataType.
enum class ElementKind : int32_t {
  Undefined = 0,
  F32 = 1,
  U8 = 2,
  I8 = 3,
  U16 = 4,
  I16 = 5,
  I32 = 6,
  I64 = 7,
  String = 8,
  Bool = 9,
  F16 = 10,
  F64 = 11,
  U32 = 12,
  U64 = 13,
  Complex64 = 14,
  Complex128 = 15,
  BF16 = 16,
  F8E4M3FN = 17,
  F8E4M3FNUZ = 18,
  F8E5M2 = 19,
  F8E5M2FNUZ = 20,
  U4 = 21,
  I4 = 22,
  F4E2M1 = 23,
  F8E8M0 = 24,
  U2 = 25,
  I2 = 26,
};

/// "float", "uint8", ...: ONNX's own words.
std::string spelling(ElementKind kind);
/// The bytes of an element; 0 of what has no whole bytes (strings, 4 bits).
int64_t byteSize(ElementKind kind);

struct TensorData {
  int64_t elements() const;

  std::string name;
  ElementKind kind = ElementKind::Undefined;
  std::vector<int64_t> shape; ///< each at least 0
  std::string bytes;          ///< of every kind but strings
  bool isSplat = false;       ///< `bytes` are one element, which all are
  std::vector<std::string> strings;
};
using TensorPtr = std::shared_ptr<const TensorData>;

/// The elements as an attribute of `type`, which has the data's shape and kind.
mlir::DenseElementsAttr elementsOf(mlir::RankedTensorType type,
                                   const TensorData &data);

} // namespace tandem

#endif
