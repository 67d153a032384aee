//===- Program.cpp - kernels and launches ---------------------------------===//
#include "ir/HostCopy.h"
#include "ir/KernelAttributes.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;

#define GET_OP_CLASSES
#include "ir/ops/Program.cpp.inc"

void TandemDialect::addProgramOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ops/Program.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/ops/HostCopy.cpp.inc"
      >();
}

/// One place per result, where there are places.
static LogicalResult verifyBuffers(Operation *op, ArrayAttr buffers) {
  if (!buffers)
    return success();
  if (buffers.size() != op->getNumResults())
    return op->emitOpError()
           << "expected one buffer per result (" << op->getNumResults()
           << ") but got " << buffers.size();
  for (Attribute buffer : buffers)
    if (!isa<BufferAttr>(buffer))
      return op->emitOpError()
             << "expected '#tandem.buffer' but got " << buffer;
  return success();
}

int64_t KernelOp::getFlops() {
  int64_t flops = 0;
  for (Operation &op : getBody().front())
    if (auto cost = dyn_cast<CostOpInterface>(op))
      flops += cost.getFlops();
  return flops;
}

FailureOr<SmallVector<InPlacePair, 2>> tandem::readInPlace(EmitError error,
                                                           Attribute attribute,
                                                           unsigned results,
                                                           unsigned inputs) {
  SmallVector<InPlacePair, 2> pairs;
  if (!attribute)
    return pairs;
  auto list = dyn_cast<ArrayAttr>(attribute);
  bool isRight = list != nullptr;
  for (Attribute one : list ? list.getValue() : ArrayRef<Attribute>()) {
    auto pair = dyn_cast<DenseI64ArrayAttr>(one);
    isRight &= pair && pair.size() == 2 && pair[0] >= 0 && pair[0] < results &&
               pair[1] >= 0 && pair[1] < inputs;
    if (isRight)
      pairs.push_back(
          {static_cast<unsigned>(pair[0]), static_cast<unsigned>(pair[1])});
  }
  if (isRight)
    return pairs;
  return error() << "expected '" << kInPlaceAttr
                 << "' to be pairs array<i64: RESULT, INPUT> of one of "
                 << results << " results and one of " << inputs
                 << " inputs, but got " << attribute;
}

/// What plan adds to the record.
static LogicalResult verifyPlanned(KernelOp kernel) {
  auto error = [&] { return kernel.emitOpError(); };
  if (failed(readInPlace(error, kernel->getAttr(kInPlaceAttr),
                         kernel.getNumResults(), kernel.getInputs().size())))
    return failure();
  auto countOf = [&](StringRef name, auto isRight) -> LogicalResult {
    Attribute attribute = kernel->getAttr(name);
    auto numbers = dyn_cast_or_null<DenseI64ArrayAttr>(attribute);
    if (!attribute || (numbers && isRight(numbers.asArrayRef())))
      return success();
    return error() << "expected '" << name << "' to be of its "
                   << kernel.getNumResults() << " results, but got "
                   << attribute;
  };
  auto results = static_cast<int64_t>(kernel.getNumResults());
  auto isResult = [&](int64_t n) { return n >= 0 && n < results; };
  if (failed(countOf(kPastCachesAttr, [&](ArrayRef<int64_t> numbers) {
        return llvm::all_of(numbers, isResult);
      })))
    return failure();
  return countOf(kPartsAttr, [&](ArrayRef<int64_t> sizes) {
    int64_t left = results;
    for (int64_t size : sizes) {
      if (size < 1 || size > left)
        return false;
      left -= size;
    }
    return left == 0;
  });
}

LogicalResult KernelOp::verify() {
  Block &block = getBody().front();
  if (block.empty())
    return emitOpError() << "expected the region to end with 'tandem.yield'";
  if (block.getArgumentTypes() != getInputs().getTypes())
    return emitOpError() << "expected the region's arguments to have the types "
                            "of the inputs";
  auto yield = dyn_cast<YieldOp>(block.back());
  if (!yield || yield.getValues().getTypes() != getResultTypes())
    return emitOpError() << "expected the region to yield the types of the "
                            "results";
  if (failed(verifyPlanned(*this)))
    return failure();
  return verifyBuffers(*this, getBuffersAttr());
}

LogicalResult LaunchOp::verify() {
  int64_t work = getWork(), grain = getGrain();
  if (work < 0 || grain < 1)
    return emitOpError() << "expected 'work' of at least 0 and 'grain' of at "
                            "least 1, but got "
                         << work << " and " << grain;
  if (std::optional<ArrayRef<int64_t>> grid = getGrid()) {
    int64_t blocks = 1;
    bool isCount = grid->size() == 3;
    for (int64_t size : *grid)
      isCount &= size >= 0 && !llvm::MulOverflow(blocks, size, blocks);
    if (!isCount || blocks != work)
      return emitOpError() << "expected 'grid' to have 3 sizes and 'work' ("
                           << work << ") blocks in all";
  }
  return verifyBuffers(*this, getBuffersAttr());
}
