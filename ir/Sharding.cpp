//===- Sharding.cpp - how programs are divided among ranks ----------------===//
#include "ir/Sharding.h"

using namespace mlir;
using namespace tandem;

Type tandem::wholeType(func::FuncOp func, RoleAttr role, Type type) {
  MeshAttr mesh = MeshAttr::of(func);
  auto tensor = dyn_cast<RankedTensorType>(type);
  ArrayAttr sharding = role.getSharding();
  if (!mesh || !tensor || !sharding || !func->hasAttr(kLocalAttr))
    return type;
  if (auto sizes = role.getProperty<DenseI64ArrayAttr>(kWholeSizes))
    return tensor.clone(sizes.asArrayRef());
  SmallVector<int64_t> shape(tensor.getShape());
  for (auto [size, axes] : llvm::zip(shape, sharding.getAsRange<ArrayAttr>()))
    size *= mesh.groupSize(axes);
  return tensor.clone(shape);
}

void tandem::setLocalAs(func::FuncOp func, func::FuncOp like) {
  if (Attribute local = like->getAttr(kLocalAttr))
    func->setAttr(kLocalAttr, local);
}
