//===- Program.cpp - kernels and launches ---------------------------------===//
#include "ir/HostCopy.h"

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

void KernelOp::build(OpBuilder &builder, OperationState &state,
                     TypeRange results, ValueRange inputs, StringRef name,
                     int64_t stream, ArrayAttr needs) {
  build(builder, state, results, inputs, builder.getStringAttr(name),
        /*buffers=*/ArrayAttr(), builder.getI64IntegerAttr(stream), needs,
        /*choices=*/ArrayAttr(), InPlaceAttr(), /*parts=*/DenseI64ArrayAttr(),
        /*non_temporal=*/DenseI64ArrayAttr(), ScheduleAttr(),
        /*scratch_bytes=*/IntegerAttr(), LibraryCallAttr());
}

int64_t KernelOp::getFlops() {
  int64_t flops = 0;
  for (Operation &op : getBody().front())
    if (auto cost = dyn_cast<CostOpInterface>(op))
      flops += cost.getFlops();
  return flops;
}

/// `parts` cuts the results into runs.
static LogicalResult verifyParts(KernelOp kernel, ArrayRef<int64_t> sizes) {
  auto results = static_cast<int64_t>(kernel.getNumResults());
  int64_t left = results;
  for (int64_t size : sizes) {
    if (size < 1 || size > left)
      return kernel.emitOpError()
             << "expected 'parts' to cut its " << results
             << " results into parts of at least 1, but got "
             << kernel.getPartsAttr();
    left -= size;
  }
  if (left)
    return kernel.emitOpError()
           << "expected 'parts' to have all of its " << results
           << " results, but got " << results - left;
  return success();
}

/// `non_temporal` names results, rising: so none twice.
static LogicalResult verifyNonTemporal(KernelOp kernel,
                                       ArrayRef<int64_t> numbers) {
  int64_t before = -1;
  for (int64_t number : numbers) {
    if (number <= before || number >= kernel.getNumResults())
      return kernel.emitOpError()
             << "expected 'non_temporal' to be rising numbers of its "
             << kernel.getNumResults() << " results, but got "
             << kernel.getNonTemporalAttr();
    before = number;
  }
  return success();
}

static LogicalResult verifyLibrary(Operation *op, LibraryCallAttr call) {
  if (!call)
    return success();
  return call.verifyBounds([&] { return op->emitOpError(); },
                           op->getNumOperands() + op->getNumResults());
}

/// What plan adds to the record; reports everything that is wrong.
static LogicalResult verifyPlanned(KernelOp kernel) {
  bool isRight = true;
  if (InPlaceAttr pairs = kernel.getInPlaceAttr())
    isRight &= succeeded(
        pairs.verifyBounds([&] { return kernel.emitOpError(); },
                           kernel.getNumResults(), kernel.getInputs().size()));
  if (auto sizes = kernel.getParts())
    isRight &= succeeded(verifyParts(kernel, *sizes));
  if (auto numbers = kernel.getNonTemporal())
    isRight &= succeeded(verifyNonTemporal(kernel, *numbers));
  isRight &= succeeded(verifyLibrary(kernel, kernel.getLibraryAttr()));
  return success(isRight);
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
  if (failed(verifyLibrary(*this, getLibraryAttr())))
    return failure();
  return verifyBuffers(*this, getBuffersAttr());
}
