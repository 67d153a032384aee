//===- KnownAttributes.cpp - no attribute that nobody reads ---------------===//
#include "ir/KnownAttributes.h"
#include "ir/Autocast.h"
#include "ir/IndexRange.h"
#include "ir/KernelFunctions.h"
#include "ir/Nearest.h"
#include "ir/Ops.h"
#include "ir/PartitionMarks.h"
#include "ir/Pipeline.h"
#include "ir/Report.h"
#include "ir/RowPadding.h"
#include "ir/Sharding.h"
#include "ir/Tags.h"
#include "ir/UpdateAttributes.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tandem;

namespace {
struct OfDialect {
  StringLiteral name;
  AttributePlace place;
};
} // namespace

static constexpr OfDialect ofDialect[] = {
    {kPhaseAttr, AttributePlace::Module},
    {kWithinAttr, AttributePlace::Module},
    {kLossAttr, AttributePlace::Module},
    {kOptimizerAttr, AttributePlace::Module},
    {kClipAttr, AttributePlace::Module},
    {kGradientNoiseAttr, AttributePlace::Module},
    {kCentralizeAttr, AttributePlace::Module},
    {kLossScaleAttr, AttributePlace::Module},
    {kAccumulateAttr, AttributePlace::Module},
    {kGroupsAttr, AttributePlace::Module},
    {kLrScheduleAttr, AttributePlace::Module},
    {kEmaAttr, AttributePlace::Module},
    {kLoraAttr, AttributePlace::Module},
    {kAmpAttr, AttributePlace::Module},
    {kFp8Attr, AttributePlace::Module},
    {kBackwardTypeAttr, AttributePlace::Module},
    {kPrepareAttr, AttributePlace::Module},
    {kTargetAttr, AttributePlace::Module},
    {kMeshAttr, AttributePlace::Module},
    {kParallelAttr, AttributePlace::Module},
    {kShardAttr, AttributePlace::Module},
    {kBatchNormAttr, AttributePlace::Module},
    {kBucketBytesAttr, AttributePlace::Module},
    {kPipelineAttr, AttributePlace::Module},
    {kMutatedInBackwardAttr, AttributePlace::Module},
    {kStepMemoryAttr, AttributePlace::Module},
    {kPartitionReportAttr, AttributePlace::Module},
    {kGraphDigestAttr, AttributePlace::Module},
    {kPlanAttr, AttributePlace::Function},
    {kLocalAttr, AttributePlace::Function},
    {kAliasesAttr, AttributePlace::Function},
    {kSavedByAttr, AttributePlace::Function},
    {kPassAttr, AttributePlace::Op},
    {kNoGradAttr, AttributePlace::Op},
    {kAutocastAttr, AttributePlace::Op},
    {kComputeTypeAttr, AttributePlace::Op},
    {kFirstOrderAttr, AttributePlace::Op},
    {kPartOfAttr, AttributePlace::Op},
    {kIndexRangeAttr, AttributePlace::Op},
    {kRowPaddingAttr, AttributePlace::Op},
    {kStreamAttr, AttributePlace::Op},
    {kSaveAttr, AttributePlace::Op},
    {kRecomputeAttr, AttributePlace::Op},
    {kOffloadAttr, AttributePlace::Op},
    {kCheckpointAttr, AttributePlace::Op},
    {kStageAttr, AttributePlace::Op},
    {kSavedAttr, AttributePlace::Op},
    {kPreparedAttr, AttributePlace::Op},
    {kBufferAttr, AttributePlace::Op},
    {kFunctionAttr, AttributePlace::Op},
    {kRegionsAttr, AttributePlace::Op},
    {kCodeAttr, AttributePlace::Op},
    {kCompiledAttr, AttributePlace::Op},
    {kKernelAttr, AttributePlace::KernelFunction},
    {kGrainAttr, AttributePlace::KernelFunction},
    // Last: of names that are as near to a wrong one, the first is suggested.
    {kSwaAttr, AttributePlace::Module}};

std::optional<AttributePlace> tandem::placeOfAttribute(StringRef name) {
  for (const OfDialect &known : ofDialect)
    if (known.name == name)
      return known.place;
  return std::nullopt;
}

/// The names that follow "tandem.", with the prefix or without.
static SmallVector<StringRef> dialectNames(bool isWhole) {
  SmallVector<StringRef> names;
  for (const OfDialect &known : ofDialect)
    names.push_back(StringRef(known.name).drop_front(isWhole ? 0 : 7));
  return names;
}

std::string tandem::suggestAttribute(StringRef name) {
  return didYouMean(name, dialectNames(/*isWhole=*/true));
}

/// The attributes that a model can give the op, in its own order.
static SmallVector<StringRef> namesOf(OperationName op) {
  SmallVector<StringRef> names;
  for (StringAttr name : op.getAttributeNames())
    if (!name.getValue().ends_with("SegmentSizes"))
      names.push_back(name);
  return names;
}

LogicalResult tandem::verifyAttributeName(EmitError error, OperationName op,
                                          StringRef name) {
  SmallVector<StringRef> known = namesOf(op);
  if (llvm::is_contained(known, name) || name.ends_with("SegmentSizes"))
    return success();
  InFlightDiagnostic diagnostic =
      error() << "'" << op << "' op has no attribute '" << name << "'";
  std::string nearest = didYouMean(name, known);
  StringRef ofDialectToo = nearestName(name, dialectNames(/*isWhole=*/false));
  if (!nearest.empty())
    diagnostic << nearest;
  else if (!ofDialectToo.empty() &&
           placeOfAttribute(("tandem." + ofDialectToo).str()) ==
               AttributePlace::Op)
    diagnostic << " (did you mean 'tandem." << ofDialectToo << "'?)";
  else if (known.empty())
    diagnostic << "; it has none";
  else
    diagnostic << "; it has '" << llvm::join(known, "', '") << "'";
  return diagnostic;
}

LogicalResult tandem::verifyAttributeNames(func::FuncOp func) {
  bool failed = false;
  func.walk([&](Operation *op) {
    if (op != func && !isa_and_nonnull<TandemDialect>(op->getDialect()))
      return;
    auto error = [&] {
      failed = true;
      return op->emitError();
    };
    for (NamedAttribute attribute : op->getDiscardableAttrs())
      if (StringRef name = attribute.getName(); !name.contains('.'))
        (void)verifyAttributeName(error, op->getName(), name);
  });
  return failure(failed);
}
