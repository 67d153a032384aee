//===- Dialect.cpp - registration, and what attributes must satisfy -------===//
#include "ir/Dialect.h"
#include "ir/Autocast.h"
#include "ir/Fold.h"
#include "ir/IndexRange.h"
#include "ir/KernelFunctions.h"
#include "ir/KnownAttributes.h"
#include "ir/Ops.h"
#include "ir/PartitionMarks.h"
#include "ir/Pipeline.h"
#include "ir/Report.h"
#include "ir/RowPadding.h"
#include "ir/Signature.h"
#include "ir/Tags.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace tandem;

#include "ir/Dialect.cpp.inc"
#include "ir/Interfaces.cpp.inc"
#include "ir/Sharding.h"
#include "ir/UpdateAttributes.h"

void TandemDialect::initialize() {
  addAttributesAndTypes();
  addInterfaces<FoldInterface>();
  addElementwiseOps();
  addRandomOps();
  addShapeOps();
  addReductionOps();
  addContractionOps();
  addPoolingOps();
  addIndexingOps();
  addCompositeOps();
  addOptimizerOps();
  addRefOps();
  addCustomOps();
  addFlowOps();
  addProgramOps();
  addCollectiveOps();
}

Operation *TandemDialect::materializeConstant(OpBuilder &builder,
                                              Attribute value, Type type,
                                              Location loc) {
  if (auto elements = dyn_cast<ElementsAttr>(value))
    if (elements.getType() == type)
      return ConstantOp::create(builder, loc, elements);
  return nullptr;
}

StringRef tandem::stringify(OpClass opClass) {
  switch (opClass) {
  case OpClass::Constant:
    return "constant";
  case OpClass::View:
    return "view";
  case OpClass::Pointwise:
    return "pointwise";
  case OpClass::Reduction:
    return "reduction";
  case OpClass::Contraction:
    return "contraction";
  case OpClass::Window:
    return "window";
  case OpClass::Indexed:
    return "indexed";
  case OpClass::Composite:
    return "composite";
  case OpClass::Flow:
    return "flow";
  case OpClass::Collective:
    return "collective";
  case OpClass::Program:
    return "program";
  }
  return "";
}

bool tandem::isTensorShape(ArrayRef<int64_t> shape) {
  int64_t elements = 1;
  for (int64_t dim : shape) {
    if (dim < 0 || dim > kMaxElements / elements)
      return false;
    elements *= std::max<int64_t>(dim, 1);
  }
  return true;
}

bool tandem::isElementType(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type)) {
    unsigned bits = integer.getWidth();
    return (bits == 1 && integer.isSignless()) ||
           (!integer.isSigned() &&
            (bits == 8 || bits == 16 || bits == 32 || bits == 64));
  }
  return type.isF32() || type.isF64() || type.isF16() || type.isBF16() ||
         isNarrowFloat(type);
}

bool tandem::isUnsignedType(Type type) {
  return type.isUnsignedInteger() || type.isSignlessInteger(1);
}

bool tandem::holds(Type type, int64_t number) {
  unsigned bits = type.getIntOrFloatBitWidth();
  if (!isUnsignedType(type))
    return llvm::isIntN(bits, number);
  return number >= 0 && llvm::isUIntN(bits, static_cast<uint64_t>(number));
}

bool tandem::isNarrowFloat(Type type) {
  return isa<Float8E4M3FNType, Float8E5M2Type>(type);
}

double tandem::numberOf(Type type, const APInt &number) {
  return number.roundToDouble(!isUnsignedType(type));
}

bool tandem::isTensorType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() && !tensor.getEncoding() &&
         isElementType(tensor.getElementType()) &&
         isTensorShape(tensor.getShape());
}

RankedTensorType tandem::tensorTypeOf(Type type) {
  if (auto ref = dyn_cast<RefType>(type))
    return ref.getTensorType();
  return dyn_cast<RankedTensorType>(type);
}

int64_t tandem::elementBytes(Type elementType) {
  return (elementType.getIntOrFloatBitWidth() + 7) / 8;
}

int64_t tandem::byteSize(RankedTensorType type) {
  return type.getNumElements() * elementBytes(type.getElementType());
}

bool tandem::isDifferentiableType(Type type) {
  Type element;
  if (auto ref = dyn_cast<RefType>(type))
    element = ref.getElementType();
  else if (auto tensor = dyn_cast<RankedTensorType>(type))
    element = tensor.getElementType();
  return element && isa<FloatType>(element) && !isNarrowFloat(element);
}

/// Whether an attribute of the dialect stands where it is read.
static LogicalResult verifyPlace(Operation *op, StringRef name) {
  std::optional<AttributePlace> place = placeOfAttribute(name);
  if (!place)
    return op->emitOpError()
           << "unknown attribute '" << name << "'" << suggestAttribute(name);
  if (*place == AttributePlace::Module && !isa<ModuleOp>(op))
    return op->emitOpError() << "'" << name << "' belongs on a module";
  if (*place == AttributePlace::Function && !isa<func::FuncOp>(op))
    return op->emitOpError() << "'" << name << "' belongs on a function";
  if (*place == AttributePlace::KernelFunction && !isa<FunctionOpInterface>(op))
    return op->emitOpError()
           << "'" << name << "' belongs on a kernel's function";
  if (*place == AttributePlace::Op && isa<ModuleOp, func::FuncOp>(op))
    return op->emitOpError() << "'" << name << "' belongs on an op";
  return success();
}

/// What a module asks for is checked against its values by
/// tandem-assign-shardings.
static LogicalResult verifyParallelPlan(Operation *op,
                                        NamedAttribute attribute) {
  StringRef name = attribute.getName();
  auto list = dyn_cast<ArrayAttr>(attribute.getValue());
  bool areNames = list && llvm::all_of(list, llvm::IsaPred<StringAttr>);
  if (name == kParallelAttr && !areNames)
    return op->emitOpError()
           << "expected '" << name << "' to be an array of strings, but got "
           << attribute.getValue();
  if (name == kShardAttr && !isa<DictionaryAttr>(attribute.getValue()))
    return op->emitOpError()
           << "expected '" << name << "' to be a dictionary, but got "
           << attribute.getValue();
  return success();
}

/// A type of mixed precision.
static LogicalResult verifyFloatType(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  bool isLow = name == kAmpAttr;
  auto type = dyn_cast<TypeAttr>(attribute.getValue());
  if (type &&
      (isLow ? isLowFloat(type.getValue()) : isMixable(type.getValue())))
    return success();
  return op->emitOpError() << "expected '" << name << "' to be "
                           << (isLow ? "bf16 or f16" : "bf16, f16 or f32")
                           << ", but got " << attribute.getValue();
}

/// Attributes on ops: the phase on modules, the pass and no_grad tags.
LogicalResult
TandemDialect::verifyOperationAttribute(Operation *op,
                                        NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (failed(verifyPlace(op, name)))
    return failure();
  auto expectString = [&](ArrayRef<StringRef> allowed) -> LogicalResult {
    auto value = dyn_cast<StringAttr>(attribute.getValue());
    if (value && (allowed.empty() || llvm::is_contained(allowed, value)))
      return success();
    auto error = op->emitOpError()
                 << "expected '" << name << "' to be a string";
    if (!allowed.empty())
      error << ", one of '" << llvm::join(allowed, "', '") << "'";
    return error << ", but got " << attribute.getValue();
  };
  if (name == kPhaseAttr)
    return expectString({"capture", "functionalize", "joint", "optimize",
                         "partition", "plan", "lower"});
  if (name == kBatchNormAttr)
    return expectString({"per-rank"});
  if (name == kBucketBytesAttr) {
    auto bytes = dyn_cast<IntegerAttr>(attribute.getValue());
    if (bytes && bytes.getType().isInteger(64) &&
        bytes.getInt() >= kLeastBucketBytes &&
        bytes.getInt() <= kMostBucketBytes)
      return success();
    return op->emitOpError() << "expected '" << name << "' to be an i64 from "
                             << kLeastBucketBytes << " to " << kMostBucketBytes
                             << ", but got " << attribute.getValue();
  }
  if (name == kPassAttr)
    return expectString({"forward", "backward"});
  if (name == kLossAttr || name == kOptimizerAttr || name == kClipAttr ||
      name == kGradientNoiseAttr || name == kLossScaleAttr ||
      name == kLrScheduleAttr || name == kEmaAttr || name == kSwaAttr ||
      name == kLoraAttr || name == kFp8Attr || name == kFirstOrderAttr ||
      name == kPartOfAttr || name == kGraphDigestAttr)
    return expectString({});
  if (name == kIndexRangeAttr) {
    auto range = dyn_cast<DenseI64ArrayAttr>(attribute.getValue());
    if (isa<CastOp>(op) && range && range.size() == 2 && range[0] <= 0 &&
        range[1] > 0)
      return success();
    return op->emitOpError()
           << "expected '" << name << "' to be a cast's, of two i64, the first "
           << "at most 0 and the second above it, but got "
           << attribute.getValue();
  }
  if (name == kMutatedInBackwardAttr) {
    if (!isa<DenseI64ArrayAttr>(attribute.getValue()))
      return op->emitOpError()
             << "expected '" << name << "' to be an array of i64";
    return verifyMutatedInBackward(cast<ModuleOp>(op));
  }
  if (name == kGroupsAttr) {
    auto groups = dyn_cast<ArrayAttr>(attribute.getValue());
    if (groups && llvm::all_of(groups, llvm::IsaPred<StringAttr>))
      return success();
    return op->emitOpError()
           << "expected '" << name << "' to be an array of strings";
  }
  if (name == kAliasesAttr) {
    if (isa<ArrayAttr>(attribute.getValue()))
      return success();
    return op->emitOpError() << "expected '" << name << "' to be an array";
  }
  if (name == kStreamAttr) {
    auto stream = dyn_cast<IntegerAttr>(attribute.getValue());
    if (stream && stream.getInt() >= 0)
      return success();
    return op->emitOpError()
           << "expected '" << name << "' to be an integer of at least 0";
  }
  if (name == kNoGradAttr || name == kPrepareAttr || name == kLocalAttr ||
      name == kAccumulateAttr || name == kCentralizeAttr) {
    if (isa<UnitAttr>(attribute.getValue()))
      return success();
    return op->emitOpError() << "expected '" << name << "' to be a unit "
                             << "attribute, but got " << attribute.getValue();
  }
  if (name == kPipelineAttr || name == kStageAttr)
    return verifyPipeline(op, attribute);
  if (name == kAmpAttr || name == kAutocastAttr || name == kComputeTypeAttr ||
      name == kBackwardTypeAttr)
    return verifyFloatType(op, attribute);
  if (name == kParallelAttr || name == kShardAttr)
    return verifyParallelPlan(op, attribute);
  if (name == kRowPaddingAttr)
    return verifyRowPadding(op, attribute);
  if (isTag(name))
    return verifyTag(op, attribute);
  if (isPartitionMark(name))
    return verifyPartitionMark(op, attribute);
  if (name == kFunctionAttr || name == kRegionsAttr || name == kGrainAttr ||
      name == kCodeAttr || name == kCompiledAttr)
    return verifyKernelFunction(op, attribute);
  if (name == kPlanAttr) {
    if (isa<PlanAttr>(attribute.getValue()))
      return success();
    return op->emitOpError()
           << "expected '" << name << "' to be '#tandem.plan', but got "
           << attribute.getValue();
  }
  if (name == kTargetAttr) {
    if (isa<TargetAttr>(attribute.getValue()))
      return success();
    return op->emitOpError()
           << "expected '" << name << "' to be '#tandem.target', but got "
           << attribute.getValue();
  }
  if (name == kMeshAttr) {
    if (isa<MeshAttr>(attribute.getValue()))
      return success();
    return op->emitOpError()
           << "expected '" << name << "' to be '#tandem.mesh', but got "
           << attribute.getValue();
  }
  if (name == kKernelAttr) {
    if (isa<KernelFactsAttr>(attribute.getValue()))
      return success();
    return op->emitOpError()
           << "expected '" << name << "' to be '#tandem.kernel_facts', but got "
           << attribute.getValue();
  }
  if (name == kWithinAttr || name == kPartitionReportAttr ||
      name == kStepMemoryAttr) {
    if (isa<DictionaryAttr>(attribute.getValue()))
      return success();
    return op->emitOpError() << "expected '" << name << "' to be a dictionary";
  }
  if (isa<BufferAttr>(attribute.getValue()))
    return success();
  return op->emitOpError() << "expected '" << name << "' to be a buffer";
}

static LogicalResult verifyRole(Operation *op, NamedAttribute attribute,
                                bool isArgument, unsigned index) {
  StringRef place = isArgument ? "argument" : "result";
  if (attribute.getName() == kSavedAttr && isArgument) {
    if (isa<StringAttr>(attribute.getValue()))
      return success();
    return op->emitOpError()
           << "expected '" << kSavedAttr << "' on argument #" << index
           << " to be a reason, as a string, but got " << attribute.getValue();
  }
  if (attribute.getName() != kRoleAttr)
    return op->emitOpError()
           << "unknown attribute '" << attribute.getName().getValue() << "' on "
           << place << " #" << index;
  if (!isa<RoleAttr>(attribute.getValue()))
    return op->emitOpError()
           << "expected '" << kRoleAttr << "' on " << place << " #" << index
           << " to be a role, but got " << attribute.getValue();
  auto func = dyn_cast<func::FuncOp>(op);
  if (!func)
    return op->emitOpError() << "roles belong to functions";
  // Reported once, with everything that is wrong. Roles make the function one
  // of ours, and what stands in it too.
  bool first = isArgument ? index == 0 : func.getNumArguments() == 0 && !index;
  if (!first)
    return success();
  bool isRight = succeeded(verifySignature(func));
  return success(succeeded(verifyAttributeNames(func)) && isRight);
}

LogicalResult
TandemDialect::verifyRegionArgAttribute(Operation *op, unsigned regionIndex,
                                        unsigned argIndex,
                                        NamedAttribute attribute) {
  return verifyRole(op, attribute, /*isArgument=*/true, argIndex);
}

LogicalResult
TandemDialect::verifyRegionResultAttribute(Operation *op, unsigned regionIndex,
                                           unsigned resultIndex,
                                           NamedAttribute attribute) {
  return verifyRole(op, attribute, /*isArgument=*/false, resultIndex);
}
