//===- ByteCasts.cpp - casts of bytes that products read ------------------===//
//
// Tensor cores multiply the bytes of which a product's factors are casts
// (passes/target/ByteProducts.h). Such a cast is repeated in front of each
// product, and the wider tensor exists nowhere.
//
//===----------------------------------------------------------------------===//
#include "passes/plan/Collectives.h"
#include "passes/plan/Units.h"
#include "passes/target/ByteProducts.h"

using namespace mlir;
using namespace tandem;

static bool isFree(Operation *op) {
  auto view = dyn_cast<ViewOpInterface>(op);
  return view && view.isFree();
}

/// The cast that is the factor `number` of a product of bytes.
static Operation *castOf(MatmulOp product, unsigned number) {
  return product->getOperand(number).getDefiningOp();
}

/// True if all that ask for the result of a cast in memory are products that
/// read the bytes of both their factors.
bool Units::isReadAsBytes(Operation *cast) const {
  return llvm::all_of(cast->getUsers(), [&](Operation *user) {
    if (auto product = dyn_cast<MatmulOp>(user))
      return multipliesBytes(product) && !conditions.choices(product) &&
             byteCasts.contains(castOf(product, 0)) &&
             byteCasts.contains(castOf(product, 1));
    return !isAnchor(user) && !standsAlone(user) && !conditions.choices(user) &&
           !user->hasTrait<OpTrait::IsTerminator>() &&
           !(isFree(user) && mustExist(user->getResult(0)));
  });
}

/// True if the unit turns bytes for products (TurnFactors.cpp) that somebody
/// else asks for as they are: a kernel with both, or with what else reads them,
/// would store or read one of them byte by byte.
bool Units::turnsBytes(unsigned unit) const {
  Operation *op = members[unit].front();
  bool isTurn =
      isa<PermuteOp>(op) && llvm::all_of(op->getUsers(), [&](Operation *user) {
        return byteCasts.contains(user);
      });
  ArrayRef<Operation *> from = isTurn ? producers(op) : ArrayRef<Operation *>();
  return isTurn && (from.size() != 1 || users(from.front()).size() != 1);
}

/// Finds the casts of bytes that products read. A factor of which somebody asks
/// for the wider numbers is read as these, and so is then the other one.
void Units::decideBytes(Block &body) {
  SmallVector<Operation *> casts;
  for (auto product : body.getOps<MatmulOp>())
    if (multipliesBytes(product))
      for (unsigned i : {0, 1})
        if (Operation *cast = castOf(product, i); !conditions.choices(cast) &&
                                                  !crossesStreams(cast) &&
                                                  byteCasts.insert(cast).second)
          casts.push_back(cast);
  for (bool isDone = false; !isDone;) {
    isDone = true;
    for (Operation *cast : casts)
      if (byteCasts.contains(cast) && !isReadAsBytes(cast)) {
        byteCasts.erase(cast);
        isDone = false;
      }
  }
}
