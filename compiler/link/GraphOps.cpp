//===- GraphOps.cpp - ops of a run-time graph in the dialect --------------===//
#include "compiler/link/GraphOps.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::link;

Type link::elementOf(StringRef name, OpBuilder &builder) {
  return llvm::StringSwitch<Type>(name)
      .Case("f16", builder.getF16Type())
      .Case("bf16", builder.getBF16Type())
      .Case("f32", builder.getF32Type())
      .Case("f64", builder.getF64Type())
      .Default({});
}

/// True if `from`, seen from the right, is `to` with some sizes 1 or missing.
static bool stretches(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  return from.size() <= to.size() &&
         llvm::all_of(llvm::zip(from, to.take_back(from.size())),
                      [](auto sizes) {
                        auto [small, large] = sizes;
                        return small == large || small == 1;
                      });
}

bool link::canGive(const GraphNode &one, RankedTensorType x,
                   RankedTensorType result) {
  if (one.name == "cast")
    return x.getShape() == result.getShape();
  if (x.getElementType() != result.getElementType())
    return false;
  if (one.name == "reshape")
    return x.getNumElements() == result.getNumElements();
  // A sum undoes an expansion.
  if (one.name == "sum")
    return stretches(result.getShape(), x.getShape());
  return one.name != "expand" || stretches(x.getShape(), result.getShape());
}

/// The sum over dimensions that `shape`, seen from the right, lacks or has 1
/// of.
static Expr sumTo(const Expr &x, ArrayRef<int64_t> shape) {
  int64_t skip = x.rank() - static_cast<int64_t>(shape.size());
  SmallVector<int64_t> dims;
  for (int64_t d = 0; d < x.rank(); ++d)
    if (d < skip || (shape[size_t(d - skip)] == 1 && x.dim(d) != 1))
      dims.push_back(d);
  Expr sum = dims.empty() ? x : x.reduceSum(dims);
  return sum.shape() == shape ? sum : sum.reshape(shape);
}

/// The opposite.
static Expr expand(const Expr &x, ArrayRef<int64_t> shape) {
  int64_t skip = static_cast<int64_t>(shape.size()) - x.rank();
  SmallVector<int64_t> dims, kept;
  for (int64_t d = 0; d < x.rank(); ++d)
    if (x.dim(d) != 1 || shape[size_t(skip + d)] == 1) {
      dims.push_back(skip + d);
      kept.push_back(x.dim(d));
    }
  Expr from = x.shape() == ArrayRef<int64_t>(kept) ? x : x.reshape(kept);
  return from.broadcastTo(shape, dims);
}

/// x * factor, as the run-time graph has it: the product of f64 with the factor
/// itself, rounded once. Where the type has the factor, products of the type
/// are the same; those of f32 may differ by the rounding of a factor that f32
/// holds to 24 bits.
static Expr scale(const Expr &x, double factor) {
  Type element = x.type().getElementType();
  const llvm::fltSemantics &semantics =
      cast<FloatType>(element).getFloatSemantics();
  llvm::APFloat held(factor);
  bool losesInfo = false;
  held.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  if (!losesInfo || (element.isF32() && held.isNormal()))
    return x * factor;
  return (x.cast(x.builder->getF64Type()) * factor).cast(element);
}

Expr link::buildOp(const GraphNode &one, ArrayRef<Expr> operands,
                   RankedTensorType result) {
  const Expr &x = operands[0];
  if (one.name == "add")
    return x + operands[1];
  if (one.name == "mul")
    return x * operands[1];
  if (one.name == "scale")
    return scale(x, *one.factor);
  if (one.name == "cast")
    return x.cast(result.getElementType());
  if (one.name == "reshape")
    return x.reshape(result.getShape());
  return one.name == "sum" ? sumTo(x, result.getShape())
                           : expand(x, result.getShape());
}
