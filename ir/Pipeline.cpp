//===- Pipeline.cpp - a model that is cut into stages ---------------------===//
#include "ir/Pipeline.h"

using namespace mlir;
using namespace tandem;

static std::optional<int64_t> fieldOf(DictionaryAttr fields, StringRef key) {
  if (auto number = fields.getAs<IntegerAttr>(key))
    return number.getInt();
  return std::nullopt;
}

std::optional<Pipeline> Pipeline::of(ModuleOp module) {
  auto fields = module->getAttrOfType<DictionaryAttr>(kPipelineAttr);
  if (!fields)
    return std::nullopt;
  Pipeline made;
  made.stages = fieldOf(fields, pipeline::kStages).value_or(1);
  made.ranks = fieldOf(fields, pipeline::kRanks).value_or(1);
  made.stage = fieldOf(fields, pipeline::kStage);
  return made;
}

void tandem::setPipelineField(ModuleOp module, StringRef key, Attribute value) {
  NamedAttrList fields(module->getAttrOfType<DictionaryAttr>(kPipelineAttr));
  fields.set(key, value);
  module->setAttr(kPipelineAttr, fields.getDictionary(module.getContext()));
}

LogicalResult tandem::verifyPipeline(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == kStageAttr) {
    auto stage = dyn_cast<IntegerAttr>(attribute.getValue());
    if (stage && stage.getInt() >= 0 && stage.getInt() < kMostStages)
      return success();
    return op->emitOpError()
           << "expected '" << kStageAttr << "' to be the number of a stage, "
           << "but got " << attribute.getValue();
  }
  auto fields = dyn_cast<DictionaryAttr>(attribute.getValue());
  auto stages = fields ? fieldOf(fields, pipeline::kStages) : std::nullopt;
  auto ranks = fields ? fieldOf(fields, pipeline::kRanks) : std::nullopt;
  auto stage = fields ? fieldOf(fields, pipeline::kStage) : std::nullopt;
  if (!stages || !ranks || *ranks < 1 || *stages > kMostStages ||
      *stages < *ranks || *stages % *ranks != 0)
    return op->emitOpError()
           << "expected '" << kPipelineAttr
           << "' to have 'ranks', and 'stages', a multiple of it of at most "
           << kMostStages << ", but got " << attribute.getValue();
  if (stage && (*stage < 0 || *stage >= *stages))
    return op->emitOpError() << "expected '" << kPipelineAttr << "' of "
                             << *stages << " stages to be of one of them, but "
                             << "got stage " << *stage;
  return success();
}
