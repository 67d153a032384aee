//===- UnitLimits.cpp - how much code a kernel may have -------------------===//
#include "passes/plan/Units.h"

#include "ir/Ops.h"
#include "passes/target/Target.h"

using namespace mlir;
using namespace tandem;

/// More ops than this in one kernel do not pay, and take long to compile.
static constexpr size_t kLargestUnit = 320;

/// Each sine and cosine has a branch on a CPU, for angles far from 0. LLVM
/// takes a time that grows with the square of their number to assign registers.
static constexpr int64_t kMostAngles = 16;

/// The most values that a kernel computes anew for each element of tensors that
/// are several times as large. (Without a limit the gradient of cumprod found
/// the exponent of each number once for each product that the number is in.)
static constexpr int64_t kMostRepeated = 48, kSeveral = 4;
/// Units of fewer do not repeat so much.
static constexpr size_t kFewMembers = 8;

static int64_t elementsOf(Operation *op) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  return type ? type.getNumElements() : 1;
}

StringRef Units::tooLarge(unsigned into, unsigned from) const {
  SmallVector<Operation *> ops(members[into]);
  llvm::append_range(ops, members[from]);
  if (ops.size() > kLargestUnit)
    return "the kernel would have more than 320 ops";
  if (llvm::count_if(ops, llvm::IsaPred<SinOp, CosOp>) > kMostAngles &&
      !isForCuda(ops.front()))
    return "the kernel would have more than 16 sines and cosines";
  if (ops.size() < kFewMembers)
    return "";
  // With what they repeat of others.
  llvm::SmallPtrSet<Operation *, 32> seen(ops.begin(), ops.end());
  int64_t most = 1;
  for (size_t i = 0; i < ops.size(); ++i)
    for (Value operand : ops[i]->getOperands()) {
      if (auto type = dyn_cast<RankedTensorType>(operand.getType()))
        most = std::max(most, type.getNumElements());
      Operation *op = operand.getDefiningOp();
      if (op && repeated.contains(op) && seen.insert(op).second)
        ops.push_back(op);
    }
  if (llvm::count_if(ops, [&](Operation *op) {
        return isa<PointwiseOpInterface>(op) &&
               elementsOf(op) <= most / kSeveral;
      }) > kMostRepeated)
    return "the kernel would compute more than 48 values anew for each element "
           "of what is larger";
  return "";
}
