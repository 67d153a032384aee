//===- Rates.cpp - what a target does in a second -------------------------===//
#include "passes/target/Rates.h"

#include "passes/target/ByteProducts.h"
#include "passes/target/CpuModel.h"
#include "passes/target/CudaModel.h"
#include "passes/target/Machines.h"
#include "passes/target/Target.h"

#include "ir/Keys.h"
#include "ir/Sharding.h"
#include "ir/ops/Scalar.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tandem;

/// What plans for several ranks are made for, whatever they run on.
static const LinkRow &linksOfPlans() {
  return Machines::builtin().links().find("ethernet-25")->second;
}

/// Data sheets count a fused multiply-add as two operations. Functions run at a
/// quarter of the rate of f32 instructions (CUDA C++ Programming Guide,
/// "Arithmetic Instructions"), and take some four of them.
static Rates cudaRates(const DeviceRow &device) {
  double instructions = device.f32 / 2;
  const LinkRow &links = linksOfPlans();
  // Ranks send from the host's memory.
  return {device.memory, device.f32,        device.narrow,
          instructions,  instructions / 16, device.launches,
          device.host,   links.rate,        1 / links.latency};
}

static Rates cpuRates(const DeviceRow &cpu, int64_t vectorBits) {
  const LinkRow &links = linksOfPlans();
  double coreCycles = cpu.cores * cpu.clock;
  double lanes = static_cast<double>(vectorBits) / 32;
  double products = coreCycles * lanes * 2 * cpu.vectorUnits;
  // Element code loads and stores beside what it computes: one result a cycle.
  // A function is a polynomial of some twenty operations.
  return {cpu.memory,
          products,
          products,
          coreCycles * lanes,
          coreCycles * lanes / 20,
          cpu.launches,
          cpu.host,
          links.rate,
          1 / links.latency};
}

Rates Rates::of(const DeviceRow &row, int64_t vectorBits) {
  return row.isCpu() ? cpuRates(row, vectorBits) : cudaRates(row);
}

Rates Rates::of(Operation *op) {
  if (isForCuda(op))
    return cudaRates(CudaModel::of(cudaArchOf(op).sm).device());
  return cpuRates(Machines::builtin().devices().find("cpu")->second,
                  CpuModel::of(op).bits);
}

int64_t tandem::bucketBytes(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  if (auto said = module->getAttrOfType<IntegerAttr>(kBucketBytesAttr))
    return said.getInt();
  // A quarter of a bucket, up to which a sum is small, takes about as long on
  // the links as an exchange takes to begin.
  Rates rates = Rates::of(op);
  return 4 * static_cast<int64_t>(llvm::PowerOf2Ceil(
                 static_cast<uint64_t>(rates.links / rates.messages)));
}

static bool isNarrow(Operation *op) {
  auto precision = op->getAttrOfType<StringAttr>(key::kPrecision);
  Type type = getElementTypeOrSelf(op->getOperand(0));
  auto product = dyn_cast<MatmulOp>(op);
  return (precision && precision.getValue() == "tf32") || type.isF16() ||
         type.isBF16() || (product && multipliesBytes(product));
}

/// How many times the rate of narrow types a narrow contraction has.
static double ofNarrow(Operation *op) {
  auto product = dyn_cast<MatmulOp>(op);
  if (!product || !multipliesBytes(product))
    return 1;
  bool isFloat =
      isa<FloatType>(getElementTypeOrSelf(bytesOfFactor(product, 0)));
  // By warpgroups data sheets' rate: the plan gives them factors that these
  // take (passes/plan/TurnFactors.cpp).
  return fitsWarpgroups(product) ? byteRateOfWarpgroups
                                 : byteRateByWarps(cudaArchOf(op).sm, isFloat);
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
    return flops / (isNarrow(op) ? narrow * ofNarrow(op) : products);
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
