//===- Rates.cpp - what a target does in a second -------------------------===//
#include "passes/target/Rates.h"

#include "passes/target/CpuModel.h"
#include "passes/target/CudaModel.h"
#include "passes/target/Target.h"

#include "ir/Keys.h"
#include "ir/ops/Scalar.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tandem;

/// Ethernet of 25 Gb/s between machines, with 50 us from program to program.
static constexpr double cpuLinks = 25e9 / 8, cpuMessages = 2e4;

/// Data sheets count a fused multiply-add as two operations. Functions run at a
/// quarter of the rate of f32 instructions (CUDA C++ Programming Guide,
/// "Arithmetic Instructions"), and take some four of them.
static Rates cudaRates(const CudaModel &model) {
  double instructions = model.f32 / 2;
  // Ranks send from the host's memory.
  return {model.memory, model.f32,         model.narrow,
          instructions, instructions / 16, 4e5,
          model.host,   cpuLinks,          cpuMessages};
}

/// A desktop, or a part of a server with memory of its own: eight cores at
/// 3 GHz, two vector units each, that share two channels of DDR4-3200 (51 GB/s
/// at most, four fifths of which programs see).
static Rates cpuRates(int64_t vectorBits) {
  constexpr double coreCycles = 8 * 3e9;
  double lanes = static_cast<double>(vectorBits) / 32;
  double products = coreCycles * lanes * 2 * 2;
  // Element code loads and stores beside what it computes: one result a cycle.
  // A function is a polynomial of some twenty operations.
  return {40e9, products, products, coreCycles * lanes, coreCycles * lanes / 20,
          1e6,  40e9,     cpuLinks, cpuMessages};
}

Rates Rates::of(Operation *op) {
  if (isForCuda(op))
    return cudaRates(CudaModel::of(cudaArchOf(op).sm));
  return cpuRates(CpuModel::of(op).bits);
}

static bool isNarrow(Operation *op) {
  auto precision = op->getAttrOfType<StringAttr>(key::kPrecision);
  Type type = getElementTypeOrSelf(op->getOperand(0));
  return (precision && precision.getValue() == "tf32") || type.isF16() ||
         type.isBF16();
}

double Rates::arithmetic(Operation *op) const {
  auto cost = dyn_cast<CostOpInterface>(op);
  if (!cost)
    return 0;
  double flops = static_cast<double>(cost.getFlops());
  switch (cost.getOpClass()) {
  case OpClass::Constant:
  case OpClass::View:
    return 0;
  case OpClass::Contraction:
    return flops / (isNarrow(op) ? narrow : products);
  default:
    break;
  }
  if (auto pointwise = dyn_cast<PointwiseOpInterface>(op))
    if (isExpensive(pointwise))
      return flops / functions;
  return flops / elements;
}

/// Of operands and results.
static double bytesMoved(Operation *op) {
  double bytes = 0;
  for (TypeRange types :
       {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types)
      bytes += static_cast<double>(byteSize(cast<RankedTensorType>(type)));
  return bytes;
}

double Rates::seconds(KernelOp kernel) const {
  double computing = 0;
  for (Operation &op : kernel.getBody().front().without_terminator())
    computing += arithmetic(&op);
  return seconds(computing, bytesMoved(kernel));
}

double Rates::secondsAlone(Operation *op) const {
  return seconds(arithmetic(op), bytesMoved(op));
}

bool tandem::isExpensive(PointwiseOpInterface op) {
  OpBuilder b(op->getContext());
  Block block;
  b.setInsertionPointToStart(&block);
  SmallVector<Value> x;
  for (Value operand : op->getOperands()) {
    Type element = getElementTypeOrSelf(operand);
    x.push_back(block.addArgument(scalar::computeType(element), op->getLoc()));
  }
  op.emitScalar(b, op->getLoc(), x);
  return llvm::any_of(block, [](Operation &code) {
    return isa<arith::RemFOp>(code) ||
           (isa<math::MathDialect>(code.getDialect()) &&
            !isa<math::AbsFOp, math::AbsIOp, math::FloorOp, math::CeilOp,
                 math::RoundEvenOp, math::TruncOp, math::SqrtOp>(code));
  });
}
