//===- VectorFinish.cpp - what follows from results, of whole vectors -----===//
#include "passes/lower/common/VectorFinish.h"

#include "ir/ops/Scalar.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

std::optional<VectorFinish> VectorFinish::of(AnchorKernel &kernel,
                                             ArrayRef<AffineExpr> index,
                                             ArrayRef<int64_t> sizes,
                                             unsigned line) {
  if (kernel.anchor->getNumResults() != 1 || kernel.companion)
    return std::nullopt;
  Code &code = kernel.code;
  VectorFinish made;
  made.line = line;
  made.element = std::make_shared<Block>();
  for (size_t d = 0; d < sizes.size(); ++d)
    made.element->addArgument(code.b.getIndexType(), code.loc);
  Type type = getElementTypeOrSelf(kernel.anchor->getResult(0).getType());
  Value sum = made.element->addArgument(scalar::computeType(type), code.loc);
  {
    OpBuilder::InsertionGuard guard(code.b);
    code.b.setInsertionPointToStart(made.element.get());
    kernel.finish(index, made.element->getArguments().drop_back(), sizes, sum);
  }
  if (made.element->empty() || !made.widen(line))
    return std::nullopt;
  made.lanes = kernel.target.lanes(scalar::computeType(type));
  return made;
}

bool VectorFinish::widen(unsigned line) {
  strides[element->getArgument(line)] = 1;
  vectors.insert(element->getArguments().back());
  return llvm::all_of(*element, [&](Operation &op) { return widen(op); });
}

/// Functions of f32 that are polynomials (Polynomials.h).
static bool isPolynomial(Operation &op) {
  return isa<math::ExpOp, math::LogOp, math::Log1pOp, math::TanhOp,
             math::ErfOp>(op) &&
         op.getResult(0).getType().isF32();
}

/// Whether the passes behind make code of it with vectors as they do of one
/// number; what is a call would be one for each lane.
static bool isOfLanes(Operation &op) {
  if (!op.hasTrait<OpTrait::Vectorizable>())
    return false;
  return !isa<math::MathDialect>(op.getDialect()) ||
         isa<math::AbsFOp, math::FloorOp, math::CeilOp, math::TruncOp,
             math::RoundEvenOp, math::SqrtOp, math::FmaOp>(op) ||
         isPolynomial(op);
}

/// Finds out what of `op` differs from lane to lane; whether that can be
/// written with vectors.
bool VectorFinish::widen(Operation &op) {
  auto isLine = [&](Value x) { return strides.contains(x); };
  auto isVector = [&](Value x) { return vectors.contains(x); };
  // Of numbers as they are in memory: booleans and narrow floats are not.
  auto isPlain = [](Type memref) {
    Type element = cast<MemRefType>(memref).getElementType();
    return element.isF32() || element.isF64();
  };
  if (op.getNumRegions())
    return false;
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return isPlain(store.getMemRefType()) && !store.getNontemporal() &&
           store.getIndices().size() == 1 &&
           strideOf(store.getIndices()[0]) == 1;
  bool hasLine = llvm::any_of(op.getOperands(), isLine);
  bool hasVector = llvm::any_of(op.getOperands(), isVector);
  if (!hasLine && !hasVector)
    return isMemoryEffectFree(&op) || isa<memref::LoadOp>(op);
  if (auto load = dyn_cast<memref::LoadOp>(op)) {
    vectors.insert(load.getResult());
    return isPlain(load.getMemRefType()) && load.getIndices().size() == 1 &&
           strideOf(load.getIndices()[0]) == 1;
  }
  if (hasLine) {
    if (isa<arith::AddIOp>(op)) {
      strides[op.getResult(0)] =
          strideOf(op.getOperand(0)) + strideOf(op.getOperand(1));
    } else if (auto mul = dyn_cast<arith::MulIOp>(op)) {
      auto factor = getConstantIntValue(mul.getRhs());
      if (!factor)
        return false;
      strides[mul] = *factor * strideOf(mul.getLhs());
    } else {
      return false;
    }
    return true;
  }
  vectors.insert(op.result_begin(), op.result_end());
  return isOfLanes(op);
}

bool VectorFinish::hasFunctions() const {
  return llvm::any_of(*element, isPolynomial);
}

void VectorFinish::emit(Code &code, ArrayRef<Value> dims, Value sums,
                        Value mask) const {
  int64_t lanes = cast<VectorType>(sums.getType()).getDimSize(0);
  IRMapping map;
  for (auto [argument, value] :
       llvm::zip_equal(element->getArguments().drop_back(), dims))
    map.map(argument, value ? value : code.index(0));
  map.map(element->getArguments().back(), sums);
  auto vectorOf = [&](Value x) {
    Value known = map.lookupOrDefault(x);
    return vectors.contains(x) ? known : code.splat(known, lanes);
  };
  for (Operation &op : *element) {
    if (auto store = dyn_cast<memref::StoreOp>(op)) {
      code.store(vectorOf(store.getValue()), store.getMemref(),
                 map.lookup(store.getIndices()[0]), mask);
      continue;
    }
    bool isVector = op.getNumResults() && vectors.contains(op.getResult(0));
    if (!isVector) {
      code.b.clone(op, map);
      continue;
    }
    if (auto load = dyn_cast<memref::LoadOp>(op)) {
      map.map(load.getResult(),
              code.load(load.getMemref(), map.lookup(load.getIndices()[0]),
                        lanes, mask));
      continue;
    }
    Code::Values operands = llvm::map_to_vector(
        op.getOperands(), [&](Value x) { return vectorOf(x); });
    Operation *wide = code.b.clone(op);
    wide->setOperands(operands);
    for (auto [result, made] :
         llvm::zip_equal(op.getResults(), wide->getResults())) {
      made.setType(VectorType::get({lanes}, result.getType()));
      map.map(result, made);
    }
  }
}

void VectorFinish::emitRun(Code &code, SmallVector<Value> dims,
                           const Run &run) const {
  Value first = dims[line] ? dims[line] : code.index(0);
  auto finish = [&](Value done, Value mask) {
    SmallVector<Value> at(run.at);
    at.back() = code.add(at.back(), done);
    dims[line] = code.add(first, done);
    emit(code, dims, code.load(run.memref, at, lanes, mask), mask);
  };
  Value whole = code.mul(code.div(run.count, lanes), lanes);
  code.loop(code.index(0), whole, lanes, [&](Value done) { finish(done, {}); });
  code.when(code.less(whole, run.count), [&] {
    finish(whole, code.firstLanes(code.sub(run.count, whole), lanes));
  });
}
