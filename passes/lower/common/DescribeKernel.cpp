//===- DescribeKernel.cpp - what a manifest says of a kernel --------------===//
//
// `flops` are those of the ops. `bytes` is what a kernel must move if nothing
// of it is in a cache before: each operand and result once, but of a table the
// rows that are taken or updated, and of a tensor that only slices read the
// slices. `summary` and `dtype` are of the op that computes most.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/common/Kernels.h"

#include "passes/plan/InPlace.h"
#include "passes/plan/KernelBytes.h"
#include "passes/plan/PlannedSteps.h"
#include "passes/target/ByteProducts.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

/// The bytes of a result that the kernel writes, where it overwrites an input
/// (`isInPlace`) or not.
static int64_t bytesWritten(Value result, bool isInPlace) {
  if (auto scatter = result.getDefiningOp<ScatterOp>(); scatter && isInPlace)
    return std::min(bytesOf(scatter.getUpdates()), bytesOf(result));
  return bytesOf(result);
}

static int64_t bytesMoved(KernelOp kernel) {
  Block &block = kernel.getBody().front();
  SmallVector<int64_t> overwrites = inPlaceInputs(kernel);
  int64_t bytes = 0;
  for (auto [i, result] : llvm::enumerate(block.getTerminator()->getOperands()))
    bytes += bytesWritten(result, overwrites[i] >= 0);
  for (auto [i, input] : llvm::enumerate(block.getArguments())) {
    // A table that is not updated where it is, is copied.
    bool isCopied =
        llvm::any_of(input.getUsers(),
                     [](Operation *user) { return isa<ScatterOp>(user); }) &&
        !llvm::is_contained(overwrites, static_cast<int64_t>(i));
    bytes += isCopied ? bytesOf(input) : bytesRead(input);
  }
  return bytes;
}

/// The op with the most flops, the last one of equals, and views only where
/// there is nothing else; null if there is none.
static Operation *heaviest(KernelOp kernel) {
  Operation *most = nullptr;
  std::pair<bool, int64_t> of(false, 0);
  for (Operation &op : kernel.getBody().front().without_terminator())
    if (auto cost = dyn_cast<CostOpInterface>(op)) {
      std::pair<bool, int64_t> here(!isa<ViewOpInterface>(op), cost.getFlops());
      if (most && here < of)
        continue;
      most = &op;
      of = here;
    }
  return most;
}

static void printTypes(llvm::raw_ostream &stream, TypeRange types) {
  for (Type type : types) {
    auto tensor = cast<RankedTensorType>(type);
    stream << ' ';
    llvm::interleave(tensor.getShape(), stream, "x");
    if (!tensor.getElementType().isF32())
      stream << (tensor.getRank() ? "x" : "") << tensor.getElementType();
    else if (tensor.getRank() == 0)
      stream << "f32";
  }
}

/// What the op's code reads: of a product of bytes these, not their casts.
static SmallVector<Value> operandsOf(Operation *op) {
  SmallVector<Value> operands(op->getOperands());
  if (auto product = dyn_cast<MatmulOp>(op);
      product && multipliesBytes(product))
    for (auto [i, operand] : llvm::enumerate(operands))
      operand = bytesOfFactor(product, i);
  return operands;
}

/// "matmul 64x1024 64x1024 -> 64x64 transpose_rhs": the types, those in f32
/// without it, and what is not the default.
static std::string summaryOf(Operation *op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << op->getName().stripDialect();
  SmallVector<Value> operands = operandsOf(op);
  printTypes(stream, ValueRange(operands).getTypes());
  stream << " ->";
  printTypes(stream, op->getResultTypes());
  for (NamedAttribute attr : op->getAttrs()) {
    if (isa<UnitAttr>(attr.getValue()))
      stream << ' ' << attr.getName().getValue();
    auto list = dyn_cast<DenseI64ArrayAttr>(attr.getValue());
    if (!list || attr.getName() != "strides" ||
        llvm::all_of(list.asArrayRef(), [](int64_t step) { return step == 1; }))
      continue;
    stream << " strides ";
    llvm::interleave(list.asArrayRef(), stream, "x");
  }
  return text;
}

/// That of the operands, not of the result: products accumulate in f32.
static Type elementOf(Operation *op) {
  SmallVector<Value> operands = operandsOf(op);
  return getElementTypeOrSelf(operands.empty() ? op->getResult(0)
                                               : operands.front());
}

KernelFactsAttr lower::describeKernel(KernelOp kernel,
                                      const LoweredFacts &lowered) {
  Builder b(kernel.getContext());
  SmallVector<Attribute> ops;
  for (Operation &op : kernel.getBody().front().without_terminator())
    ops.push_back(b.getStringAttr(op.getName().getStringRef()));
  StringAttr summary;
  Type dtype;
  if (Operation *most = heaviest(kernel)) {
    summary = b.getStringAttr(summaryOf(most));
    dtype = elementOf(most);
  }
  auto sizes = [&](ArrayRef<int64_t> list) {
    return list.empty() ? DenseI64ArrayAttr() : b.getDenseI64ArrayAttr(list);
  };
  return KernelFactsAttr::get(
      b.getContext(), b.getStringAttr(stringify(classOf(kernel))),
      b.getArrayAttr(ops), kernel.getFlops(), bytesMoved(kernel), summary,
      dtype,
      // What a launch must agree with (passes/plan/PlannedSteps.h).
      b.getFunctionType(kernel->getOperandTypes(), kernel->getResultTypes()),
      lowered.items, lowered.scratchBytes, kernel.getInPlaceAttr(),
      kernel.getScheduleAttr(), sizes(lowered.blocks), sizes(lowered.block),
      lowered.sharedBytes,
      lowered.tensorMaps.empty() ? ArrayAttr()
                                 : b.getArrayAttr(lowered.tensorMaps));
}
