//===- Program.cpp - kernels and launches ---------------------------------===//
#include "ir/HostCopy.h"

#include "mlir/IR/Builders.h"

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
    for (int64_t size : *grid)
      blocks *= size;
    if (grid->size() != 3 || blocks != work)
      return emitOpError() << "expected 'grid' to have 3 sizes and 'work' ("
                           << work << ") blocks in all";
  }
  return verifyBuffers(*this, getBuffersAttr());
}
