//===- Weights.cpp - what values and names say of an initializer ----------===//
//
// Exporters put into a model what was no parameter before: masks that they
// calculated, and transposed copies of weights. An initializer does not say so;
// its values and its name do.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/Expressions.h"
#include "compiler/import/onnx/GraphTranslator.h"
#include "ir/Signature.h"

#include "llvm/ADT/StringExtras.h"

#include <bit>
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

/// Calls `isOne` with each element's bits until it is one.
template <typename Bits, typename IsOne>
static bool anyElement(const TensorData &data, IsOne isOne) {
  for (size_t at = 0; at + sizeof(Bits) <= data.bytes.size();
       at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, data.bytes.data() + at, sizeof bits);
    if (isOne(bits))
      return true;
  }
  return false;
}

bool onnx::hasValuesOfMasks(const TensorData &data) {
  constexpr double least = 1e30;
  switch (data.kind) {
  case ElementKind::F64:
    return anyElement<uint64_t>(data, [](uint64_t bits) {
      return std::abs(std::bit_cast<double>(bits)) >= least;
    });
  case ElementKind::F32:
    return anyElement<uint32_t>(data, [](uint32_t bits) {
      return std::abs(std::bit_cast<float>(bits)) >= least;
    });
  case ElementKind::BF16: // the upper half of an f32
    return anyElement<uint16_t>(data, [](uint16_t bits) {
      return std::abs(std::bit_cast<float>(uint32_t(bits) << 16)) >= least;
    });
  case ElementKind::F16: // from 65504 to infinity
    return anyElement<uint16_t>(data, [](uint16_t bits) {
      return (bits & 0x7fff) >= 0x7bff && (bits & 0x7fff) <= 0x7c00;
    });
  default:
    return false;
  }
}

//===----------------------------------------------------------------------===//
// Notes
//===----------------------------------------------------------------------===//

SmallVector<TensorPtr> GraphTranslator::trainedWeights() {
  SmallVector<TensorPtr> weights;
  for (auto [i, argument] : llvm::enumerate(func.getArguments())) {
    RoleAttr role = roleOfArgument(func, i);
    auto it = parameters.find(argument);
    if (it != parameters.end() && role.getKind() == RoleKind::Param &&
        role.has(RoleAttr::kRequiresGrad))
      weights.push_back(it->second);
  }
  return weights;
}

static StringRef elementOf(const TensorData &data, int64_t index,
                           int64_t unit) {
  return StringRef(data.bytes).substr(index * unit, unit);
}

/// True if all elements are the same: that says nothing of where they are from.
static bool isUniform(const TensorData &data) {
  int64_t unit = byteSize(data.kind);
  StringRef bytes = data.bytes;
  return data.isSplat || bytes.drop_front(unit) == bytes.drop_back(unit);
}

/// True if one matrix is the other, transposed, and both are not one matrix.
static bool isTransposed(const TensorData &a, const TensorData &b) {
  if (a.kind != b.kind || a.shape.size() != 2 ||
      b.shape != std::vector<int64_t>{a.shape[1], a.shape[0]})
    return false;
  int64_t unit = byteSize(a.kind), rows = a.shape[0], columns = a.shape[1];
  if (isUniform(a) || isUniform(b) ||
      (a.shape == b.shape && a.bytes == b.bytes))
    return false;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      if (elementOf(a, i * columns + j, unit) !=
          elementOf(b, j * rows + i, unit))
        return false;
  return true;
}

/// Exporters that fold constants give a weight that is read transposed too a
/// second initializer.
void GraphTranslator::noteTransposed() {
  SmallVector<TensorPtr> weights = trainedWeights();
  std::string pairs;
  for (size_t i = 0; i < weights.size(); ++i)
    for (size_t j = i + 1; j < weights.size(); ++j)
      if (isTransposed(*weights[i], *weights[j]))
        pairs += (pairs.empty() ? "'" : ", '") + candidates[weights[i].get()] +
                 "' and '" + candidates[weights[j].get()] + "'";
  if (!pairs.empty())
    notes.push_back("equal when one is transposed: " + printable(pairs) +
                    "; they are trained apart; export with optimize=False to "
                    "keep them one");
}

/// PyTorch's newer exporter numbers the values that it makes.
void GraphTranslator::noteMadeNames() {
  std::set<std::string> made;
  for (const TensorPtr &data : trainedWeights()) {
    StringRef digits = candidates[data.get()];
    if (digits.consume_front("val_") && !digits.empty() &&
        llvm::all_of(digits, llvm::isDigit))
      made.insert(candidates[data.get()]);
  }
  if (!made.empty())
    notes.push_back(
        "trained under names that the exporter made: " + listed(made) +
        "; they will not fit state_dict(); export with "
        "optimize=False to keep the names");
}
