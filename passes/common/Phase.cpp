//===- Phase.cpp - where a module is, and what belongs to which pass ------===//
#include "passes/common/Phase.h"

using namespace mlir;
using namespace tandem;

LogicalResult tandem::expectPhase(ModuleOp module, StringRef phase) {
  auto stamp = module->getAttrOfType<StringAttr>(kPhaseAttr);
  if (stamp && stamp.getValue() == phase)
    return success();
  InFlightDiagnostic error = module.emitError()
                             << "expected phase '" << phase << "' but got ";
  if (stamp)
    error << "'" << stamp.getValue() << "'";
  else
    error << "none";
  return error;
}

void tandem::setPhase(ModuleOp module, StringRef phase) {
  module->setAttr(kPhaseAttr, StringAttr::get(module.getContext(), phase));
}

StringRef tandem::passOf(Operation *op) {
  auto tag = op->getAttrOfType<StringAttr>(kPassAttr);
  return tag ? tag.getValue() : "";
}

bool tandem::isBackward(RoleAttr role) {
  return role.getKind() == RoleKind::Cotangent ||
         role.getKind() == RoleKind::Grad || role.has(RoleAttr::kPass);
}
