//===- TurnFactors.cpp - factors of bytes along k -------------------------===//
//
// Products by warpgroup (wgmma) take factors of 8 bits along k alone. Gradients
// read what the forward reads along k along the lines:
//
//   %y = matmul (cast %q), (cast %w)                      %w is [k, n]
// ->
//   %t = permute %w by [1, 0]
//   %y = matmul (cast %q), (cast %t) {transpose_rhs}
//
// A kernel of its own turns the bytes, once for all that read them so, where
// that takes less time than the products gain: mma.sync, which turns factors on
// their way, has about a third of wgmma's rate.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/plan/FormKernels.h"
#include "passes/target/ByteProducts.h"
#include "passes/target/CudaModel.h"
#include "passes/target/Rates.h"
#include "passes/target/Target.h"

namespace tandem {
#define GEN_PASS_DEF_TURNFACTORS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

static RankedTensorType tensorTypeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static bool isAlongK(MatmulOp product, unsigned factor) {
  return factor == 0 ? !product.getTransposeLhs() : product.getTransposeRhs();
}

/// True if nobody else asks for the wider numbers of a factor: then its product
/// reads the bytes (ByteCasts.cpp).
static bool isReadAsBytes(MatmulOp product, unsigned factor) {
  return llvm::all_of(product->getOperand(factor).getUsers(),
                      [](Operation *user) {
                        auto other = dyn_cast<MatmulOp>(user);
                        return other && multipliesBytes(other);
                      });
}

namespace {
class FactorTurner {
public:
  explicit FactorTurner(func::FuncOp func)
      : func(func), rates(Rates::of(func)),
        wanted(TargetAttr::of(func).getProducts()) {}
  /// How many factors are turned.
  unsigned run();

private:
  /// Seconds that the product takes less by warpgroups than by warps.
  double gain(MatmulOp product) const;
  /// Those of a kernel that turns `bytes`.
  double cost(Value bytes) const {
    return rates.seconds(
        0, 2.0 * static_cast<double>(byteSize(tensorTypeOf(bytes))));
  }
  void turn(MatmulOp product, unsigned factor);

  func::FuncOp func;
  Rates rates;
  StringRef wanted;
  DenseMap<Value, Value> turned;
  unsigned count = 0;
};
} // namespace

double FactorTurner::gain(MatmulOp product) const {
  bool isFloat =
      isa<FloatType>(tensorTypeOf(bytesOfFactor(product, 0)).getElementType());
  int64_t sm = cudaArchOf(product).sm;
  double flops = static_cast<double>(product.getFlops());
  return flops / (rates.narrow * byteRateByWarps(sm, isFloat) * mmaOnHopper) -
         flops / (rates.narrow * byteRateOfWarpgroups);
}

void FactorTurner::turn(MatmulOp product, unsigned factor) {
  Value bytes = bytesOfFactor(product, factor);
  auto cast = product->getOperand(factor).getDefiningOp<CastOp>();
  OpBuilder b(product);
  auto tagged = [&](Operation *made) {
    for (StringRef tag : {kPassAttr, kStreamAttr})
      if (Attribute value = product->getAttr(tag))
        made->setAttr(tag, value);
    return made->getResult(0);
  };
  Value &other = turned[bytes];
  if (!other) {
    unsigned rank = tensorTypeOf(bytes).getRank();
    auto order = llvm::to_vector(llvm::seq<int64_t>(rank));
    std::swap(order[rank - 2], order[rank - 1]);
    other = tagged(PermuteOp::create(b, cast.getLoc(), bytes, order));
    ++count;
  }
  Type element = tensorTypeOf(product->getOperand(factor)).getElementType();
  product->setOperand(factor, tagged(CastOp::create(
                                  b, cast.getLoc(),
                                  tensorTypeOf(other).clone(element), other)));
  if (factor == 0)
    product.setTransposeLhs(false);
  else
    product.setTransposeRhs(true);
  if (cast->use_empty())
    cast->erase();
}

unsigned FactorTurner::run() {
  if (wanted == "mma")
    return 0;
  for (auto product : func.getOps<MatmulOp>()) {
    if (!multipliesBytes(product) || !isReadAsBytes(product, 0) ||
        !isReadAsBytes(product, 1) || !fitsWarpgroups(product))
      continue;
    SmallVector<unsigned, 2> factors;
    double seconds = 0;
    bool isView = false;
    for (unsigned factor : {0, 1}) {
      if (isAlongK(product, factor))
        continue;
      factors.push_back(factor);
      Value bytes = bytesOfFactor(product, factor);
      if (!turned.contains(bytes))
        seconds += cost(bytes);
      // What views repeat or cut is not in memory as it is.
      auto view = bytes.getDefiningOp<ViewOpInterface>();
      isView |= view && !view.isFree();
    }
    if (isView || (wanted != "wgmma" && gain(product) <= seconds))
      continue;
    for (unsigned factor : factors)
      turn(product, factor);
  }
  return count;
}

namespace {
struct TurnFactors : tandem::impl::TurnFactorsBase<TurnFactors> {
  void runOnOperation() final {
    func::FuncOp func = getOperation();
    if (isForCuda(func) && hasWarpgroups(cudaArchOf(func)))
      turned += FactorTurner(func).run();
    if (turned == 0)
      markAllAnalysesPreserved();
  }
};
} // namespace
