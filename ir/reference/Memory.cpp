//===- Memory.cpp - memory that refs share, for the reference ------------===//
#include "ir/reference/Memory.h"

#include "ir/Ops.h"
#include "ir/reference/Generic.h"

#include <numeric>

using namespace mlir;
using namespace tandem;
using namespace tandem::reference;

Memory::Memory(Type element, int64_t size)
    : element(element), elements(size, 0.0), filled(size, false) {}

Memory::Memory(Type element, const std::vector<double> &elements)
    : element(element), elements(elements), filled(elements.size(), true) {}

void Memory::free() { filled.clear(); }

void Memory::allocate() {
  if (isFreed())
    filled.assign(elements.size(), false);
}

Ref Ref::whole(std::shared_ptr<Memory> storage, ArrayRef<int64_t> shape) {
  Ref ref{storage, Array(shape), storage->element};
  std::iota(ref.positions.data.begin(), ref.positions.data.end(), 0.0);
  return ref;
}

Ref Ref::holding(RefType type, const Array &value) {
  return whole(std::make_shared<Memory>(type.getElementType(), value.data),
               value.shape);
}

Ref Ref::view(Operation *op) const {
  auto type = cast<RefType>(op->getResult(0).getType());
  if (isa<BitcastOp>(op))
    return {storage, positions, type.getElementType()};
  Ref result{storage, Array(type.getShape()), type.getElementType()};
  const Array *in = &positions;
  cast<ReferenceOpInterface>(op).evaluate(in, result.positions);
  return result;
}

namespace {

/// One step of an alias, applied to positions.
class Step {
public:
  Step(DictionaryAttr step, const Array &from) : step(step), from(from) {}

  /// The positions that the step shows; nothing if it is no view of `from`.
  std::optional<Array> apply() {
    StringRef op = step.getAs<StringAttr>("op").getValue();
    if (op == "detach" || op == "bitcast")
      return from;
    if (op == "reshape") {
      Array result = from;
      result.shape = list("shape");
      if (!isTensorShape(result.shape) ||
          Array(result.shape).size() != from.size())
        return std::nullopt;
      return result;
    }
    // The others: the shape, and per dimension of it the way in `from`.
    SmallVector<int64_t> strides = rowMajor(from.shape), ways;
    std::vector<int64_t> shape;
    int64_t offset = 0;
    if (op == "permute") {
      for (int64_t d : list("permutation"))
        if (d >= 0 && d < from.rank()) {
          shape.push_back(from.dim(d));
          ways.push_back(strides[d]);
        }
    } else if (op == "slice") {
      auto starts = list("starts"), limits = list("limits"),
           steps = list("strides");
      size_t rank = from.rank();
      if (starts.size() != rank || limits.size() != rank ||
          steps.size() != rank ||
          llvm::any_of(steps, [](int64_t step) { return step < 1; }))
        return std::nullopt;
      for (size_t d = 0; d < rank; ++d) {
        shape.push_back((limits[d] - starts[d] + steps[d] - 1) / steps[d]);
        ways.push_back(strides[d] * steps[d]);
        offset += strides[d] * starts[d];
      }
    } else if (op == "broadcast") {
      shape = list("shape");
      ways.assign(shape.size(), 0);
      for (auto [i, d] : llvm::enumerate(list("dims")))
        if (d >= 0 && d < static_cast<int64_t>(shape.size()) &&
            i < from.shape.size() && from.dim(i) != 1)
          ways[d] = strides[i];
    } else if (op == "as_strided") {
      shape = list("sizes");
      llvm::append_range(ways, list("strides"));
      auto attribute = step.getAs<IntegerAttr>("offset");
      offset = attribute ? attribute.getInt() : 0;
    } else {
      return std::nullopt;
    }
    return strided(shape, ways, offset);
  }

private:
  std::vector<int64_t> list(StringRef name) const {
    auto attribute = step.getAs<DenseI64ArrayAttr>(name);
    return attribute ? attribute.asArrayRef().vec() : std::vector<int64_t>();
  }
  static SmallVector<int64_t> rowMajor(ArrayRef<int64_t> shape) {
    SmallVector<int64_t> strides(shape.size(), 1);
    for (size_t d = shape.size(); d-- > 1;)
      strides[d - 1] = strides[d] * shape[d];
    return strides;
  }
  std::optional<Array> strided(const std::vector<int64_t> &shape,
                               ArrayRef<int64_t> ways, int64_t offset) const {
    if (!isTensorShape(shape) || ways.size() != shape.size())
      return std::nullopt;
    Array result(shape);
    int64_t i = 0;
    bool inside = true;
    forEachIndex(shape, [&](ArrayRef<int64_t> index) {
      int64_t position = offset;
      for (auto [at, way] : llvm::zip_equal(index, ways))
        position += at * way;
      inside &= position >= 0 && position < from.size();
      if (inside)
        result[i++] = from[position];
    });
    return inside ? std::optional(result) : std::nullopt;
  }

  DictionaryAttr step;
  const Array &from;
};

} // namespace

FailureOr<Ref> Ref::view(ArrayAttr steps, Location loc) const {
  Ref result = *this;
  for (auto step : steps.getAsRange<DictionaryAttr>()) {
    auto positions = Step(step, result.positions).apply();
    if (!positions)
      return mlir::emitError(loc) << "expected a view of shape ["
                                  << ArrayRef<int64_t>(result.positions.shape)
                                  << "], but got " << step;
    result.positions = std::move(*positions);
    if (auto type = step.getAs<TypeAttr>("type"))
      result.element = type.getValue();
  }
  return result;
}

std::optional<Array> Ref::read() const {
  Array value(positions.shape);
  for (int64_t i = 0, n = value.size(); i < n; ++i) {
    auto position = static_cast<size_t>(positions[i]);
    if (storage->isFreed() || !storage->filled[position])
      return std::nullopt;
    value[i] =
        bitcastElement(storage->element, element, storage->elements[position]);
  }
  return value;
}

bool Ref::write(const Array &value) const {
  if (storage->isFreed())
    return false;
  for (int64_t i = 0, n = value.size(); i < n; ++i) {
    auto position = static_cast<size_t>(positions[i]);
    storage->elements[position] =
        bitcastElement(element, storage->element, value[i]);
    storage->filled[position] = true;
  }
  return true;
}
