//===- Composite.cpp - formulas that decompositions share -----------------===//
#include "ir/ops/Composite.h"
#include "ir/Ops.h"
#include "ir/Pullback.h"
#include "ir/reference/Generic.h"

#include "llvm/Support/Format.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tandem;

#define GET_OP_CLASSES
#include "ir/ops/Composite.cpp.inc"

void TandemDialect::addCompositeOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ops/Composite.cpp.inc"
      >();
}

Type composite::computeType(ValueRange values) {
  Type type = Float32Type::get(values.front().getContext());
  for (Value value : values)
    if (getElementTypeOrSelf(value).isF64())
      type = getElementTypeOrSelf(value);
  return type;
}

Expr composite::in(OpBuilder &b, Location loc, Value value, Type type) {
  return Expr(b, loc, value).cast(type);
}

Type composite::indexType(MLIRContext *context, int64_t size) {
  return IntegerType::get(context, size < (int64_t(1) << 31) ? 32 : 64);
}

Expr composite::iota(const Expr &at, Type element, ArrayRef<int64_t> shape,
                     int64_t dim) {
  return at.wrap(IotaOp::create(*at.builder, at.loc,
                                RankedTensorType::get(shape, element), dim));
}

Expr composite::shiftByMax(const Expr &x, int64_t dim) {
  return x - detach(x.reduceMax(dim)).expandReduced(x.shape(), dim);
}

Expr composite::shares(const Expr &parts, const Expr &sum, int64_t dim) {
  return parts * (1.0 / sum).expandReduced(parts.shape(), dim);
}

Expr composite::softmax(const Expr &x, int64_t dim) {
  Expr e = exp(shiftByMax(x, dim));
  return shares(e, e.reduceSum(dim), dim);
}

static constexpr double infinity = std::numeric_limits<double>::infinity();

Expr composite::maskScores(const Expr &scores, bool isCausal,
                           const Expr &mask) {
  Expr masked = scores;
  int64_t rank = scores.rank();
  if (isCausal) {
    Type index =
        indexType(scores.type().getContext(),
                  std::max(scores.dim(rank - 2), scores.dim(rank - 1)));
    Expr row = iota(scores, index, scores.shape(), rank - 2);
    Expr column = iota(scores, index, scores.shape(), rank - 1);
    masked = select(compare(ComparePredicate::le, column, row), masked,
                    scores.like(-infinity));
  }
  if (!mask)
    return masked;
  bool isBool = mask.type().getElementType().isInteger(1);
  return masked + (isBool ? select(mask, scores.like(0), scores.like(-infinity))
                          : mask.cast(scores.type().getElementType()));
}

Expr composite::safeSoftmax(const Expr &x) {
  int64_t dim = x.rank() - 1;
  Expr largest = detach(x.reduceMax({dim}));
  Expr isEmpty =
      compare(ComparePredicate::eq, largest, largest.like(-infinity));
  largest = select(isEmpty, largest.like(0), largest);
  Expr e = exp(x - largest.expandReduced(x.shape(), {dim}));
  Expr sum = e.reduceSum({dim});
  sum = select(isEmpty, sum.like(1), sum);
  return shares(e, sum, dim);
}

Expr composite::reduceMean(const Expr &x, ArrayRef<int64_t> dims) {
  double count = 1;
  for (int64_t d : dims)
    count *= static_cast<double>(x.dim(d));
  return x.reduceSum(dims) / count;
}

LogicalResult composite::verifyReduction(Operation *op, StringRef reduction) {
  if (reduction == "mean" || reduction == "sum" || reduction == "none")
    return success();
  return op->emitOpError() << "expected 'reduction' to be 'mean', 'sum' or "
                              "'none', but got '"
                           << reduction << "'";
}

static std::string text(double number) {
  std::string out;
  llvm::raw_string_ostream(out) << llvm::format("%g", number);
  return out;
}

LogicalResult composite::verifyNumber(Operation *op, StringRef name,
                                      double value, double low, double high) {
  if (std::isfinite(value) && value >= low && value < high)
    return success();
  auto error = op->emitOpError() << "expected '" << name << "' to be ";
  if (std::isinf(low))
    error << "finite";
  else if (std::isinf(high))
    error << "finite and at least " << text(low);
  else
    error << "in [" << text(low) << ", " << text(high) << ")";
  return error << ", but got " << text(value);
}
