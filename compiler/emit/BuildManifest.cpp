//===- BuildManifest.cpp - the manifest of a lowered module ---------------===//
#include "compiler/emit/BuildManifest.h"
#include "compiler/emit/ManifestParts.h"
#include "ir/Collective.h"
#include "ir/HostCopy.h"
#include "ir/Keys.h"
#include "ir/Pipeline.h"
#include "ir/Report.h"
#include "ir/Signature.h"
#include "passes/plan/Parts.h"
#include "passes/target/Rates.h"
#include "runtime/artifact/View.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

#include <map>

using namespace mlir;
using namespace tandem;
namespace am = tandem::artifact;

namespace {

/// The raw bytes of a constant: dense, booleans one byte each.
std::string bytesOf(ElementsAttr value) {
  std::string bytes;
  auto type = cast<RankedTensorType>(value.getShapedType());
  int64_t width = elementBytes(type.getElementType());
  auto append = [&](const APInt &bits) {
    uint64_t word = bits.getZExtValue();
    bytes.append(reinterpret_cast<const char *>(&word), width);
  };
  if (isa<FloatType>(type.getElementType()))
    for (const APFloat &element : value.getValues<APFloat>())
      append(element.bitcastToAPInt());
  else
    for (const APInt &element : value.getValues<APInt>())
      append(element);
  return bytes;
}

/// Builds one manifest; keeps the tables that its parts share.
class ManifestBuilder {
public:
  ManifestBuilder(ModuleOp module, am::ArtifactWriter &writer)
      : code(module), module(module), writer(writer) {}

  Result<am::Manifest> run(ArrayRef<LoweredSize> sizes);

private:
  void addValue(RoleAttr role, RankedTensorType type);
  void addValues();
  Status addParts();
  Status addSize(const LoweredSize &size);
  Status addSlots(func::FuncOp func, am::Program &program);
  Status addProgram(func::FuncOp func);
  Status addLaunch(LaunchOp launch, am::Program &program);
  Status addCopy(Operation *op, am::Program &program);
  Status addCollective(CollectiveOpInterface op, am::Program &program);
  Result<int64_t> kernelIndex(LaunchOp launch);
  Result<int64_t> bufferOf(Value value, am::Program &program);
  int64_t bufferIndex(am::Program &program, const am::Buffer &buffer,
                      bool isPart = false);

  ModuleOp code;   ///< the first size's, which has all kernels
  ModuleOp module; ///< of the size at hand
  am::ArtifactWriter &writer;
  am::Manifest manifest;
  /// The numbers of the current program's buffers.
  std::map<std::tuple<bool, am::Buffer::Place, int64_t, int64_t, int64_t>,
           int64_t>
      buffers;
  llvm::StringSet<> inputs, outputs; ///< the names that `values` has
  llvm::StringMap<int64_t> kernels;
  llvm::MapVector<Attribute, int64_t> constants; ///< value to offset
};

void ManifestBuilder::addValue(RoleAttr role, RankedTensorType type) {
  auto &known = role.getKind() == RoleKind::Output ? outputs : inputs;
  if (known.insert(role.getName().getValue()).second)
    manifest.values.push_back(valueOf(role, type));
}

/// The inputs, params and states of the graph in its order, so that positions
/// among its arguments are positions here; then what only other programs have;
/// then the outputs.
void ManifestBuilder::addValues() {
  SmallVector<func::FuncOp> programs;
  for (StringRef name : {"forward", "evaluate"})
    if (auto func = module.lookupSymbol<func::FuncOp>(name))
      programs.push_back(func);
  llvm::append_range(programs, module.getOps<func::FuncOp>());
  for (func::FuncOp func : programs)
    for (auto [i, type] : llvm::enumerate(func.getArgumentTypes()))
      if (RoleAttr role = roleOfArgument(func, i);
          role.getKind() <= RoleKind::State)
        addValue(role, cast<RankedTensorType>(type));
  for (func::FuncOp func : programs)
    for (auto [i, type] : llvm::enumerate(func.getResultTypes()))
      if (RoleAttr role = roleOfResult(func, i);
          role.getKind() == RoleKind::Output)
        addValue(role, cast<RankedTensorType>(type));
}

/// A part never shares a buffer with a value that once lies in its place.
int64_t ManifestBuilder::bufferIndex(am::Program &program,
                                     const am::Buffer &buffer, bool isPart) {
  auto [it, isNew] = buffers.try_emplace(
      {isPart, buffer.place, buffer.index, buffer.offset, buffer.bytes},
      program.buffers.size());
  if (isNew)
    program.buffers.push_back(buffer);
  return it->second;
}

Result<int64_t> ManifestBuilder::bufferOf(Value value, am::Program &program) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return bufferIndex(program, am::Buffer::argument(argument.getArgNumber()));
  int64_t bytes = byteSize(cast<RankedTensorType>(value.getType()));
  Shown shown = shownBy(value);
  if (!shown.isPart && shown.source != value)
    return bufferOf(shown.source, program);
  auto *op = shown.source.getDefiningOp();
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    auto [it, isNew] = constants.insert({constant.getValue(), 0});
    if (isNew) {
      std::string raw = bytesOf(constant.getValue());
      it->second = writer.addConstant(std::as_bytes(std::span(raw)));
    }
    return bufferIndex(program, am::Buffer::constant(it->second, bytes));
  }
  BufferAttr place;
  if (auto launch = dyn_cast<LaunchOp>(op))
    place = cast<BufferAttr>(
        launch.getBuffers()[cast<OpResult>(shown.source).getResultNumber()]);
  else if (isHostCopy(op) || isCollective(op))
    place = op->getAttrOfType<BufferAttr>(key::kBuffer);
  if (!place)
    return Status::failed("expected a launch, a copy, a collective, a constant "
                          "or a free view, but got '" +
                          op->getName().getStringRef().str() + "'");
  switch (place.getPlace()) {
  case BufferPlace::Arena:
    return bufferIndex(
        program,
        isa<ToHostOp>(op)
            ? am::Buffer::host(place.getPosition(), bytes)
            : am::Buffer::arena(place.getPosition() + shown.offset, bytes),
        shown.isPart);
  case BufferPlace::Argument:
    return bufferIndex(program, am::Buffer::argument(place.getPosition()));
  case BufferPlace::Result:
    return bufferIndex(program, am::Buffer::result(place.getPosition()));
  case BufferPlace::Constant:
    break;
  }
  return Status::failed("a kernel cannot write a constant");
}

Result<int64_t> ManifestBuilder::kernelIndex(LaunchOp launch) {
  StringRef symbol = launch.getKernel().getLeafReference();
  auto [it, isNew] = kernels.try_emplace(symbol, manifest.kernels.size());
  if (!isNew)
    return it->second;
  auto function = dyn_cast_or_null<LLVM::LLVMFuncOp>(
      SymbolTable::lookupSymbolIn(code, launch.getKernel()));
  KernelFactsAttr about = KernelFactsAttr::of(function);
  if (!about)
    return Status::failed("kernel '" + symbol.str() +
                          "' is not a function "
                          "with '" +
                          kKernelAttr.str() + "'");
  am::Kernel kernel;
  kernel.symbol = symbol.str();
  kernel.kind = about.getKind().str();
  for (auto op : about.getOps().getAsRange<StringAttr>())
    kernel.ops.push_back(op.str());
  kernel.flops = about.getFlops();
  kernel.bytes = about.getBytes();
  kernel.scratchBytes = about.getScratchBytes();
  kernel.sharedBytes = about.getSharedBytes();
  if (StringAttr summary = about.getSummary())
    kernel.summary = summary.str();
  if (Type type = about.getDtype())
    kernel.dtype = dtypeOf(type);
  if (DenseI64ArrayAttr block = about.getBlock())
    kernel.block = block.asArrayRef().vec();
  kernel.tensorMaps = tensorMapsOf(about.getTensorMaps());
  manifest.kernels.push_back(std::move(kernel));
  return it->second;
}

Status ManifestBuilder::addLaunch(LaunchOp op, am::Program &program) {
  am::Launch launch;
  auto kernel = kernelIndex(op);
  if (!kernel)
    return kernel.status();
  launch.kernel = *kernel;
  launch.work = static_cast<int64_t>(op.getWork());
  launch.grain = static_cast<int64_t>(op.getGrain());
  launch.stream = static_cast<int64_t>(op.getStream());
  if (std::optional<ArrayRef<int64_t>> grid = op.getGrid())
    launch.grid = grid->vec();
  auto needs = conditionOf(op.getNeedsAttr());
  if (!needs)
    return std::move(needs).status();
  launch.needs = std::move(*needs);
  auto choices = choicesOf(op.getChoicesAttr());
  if (!choices)
    return std::move(choices).status();
  launch.choices = std::move(*choices);
  auto add = [&](Value value, std::vector<int64_t> &positions) {
    auto buffer = bufferOf(value, program);
    if (!buffer)
      return buffer.status();
    positions.push_back(static_cast<int64_t>(launch.buffers.size()));
    launch.buffers.push_back(*buffer);
    return Status::success();
  };
  for (Value input : op.getInputs())
    if (Status s = add(input, launch.reads); !s)
      return s;
  for (Value result : op.getResults())
    if (Status s = add(result, launch.writes); !s)
      return s;
  if (LibraryCallAttr attribute = op.getLibraryAttr()) {
    PlannedLibraryCall planned = libraryCallOf(attribute);
    launch.library = std::move(planned.call);
    if (planned.workspaceBytes)
      launch.library->workspace =
          bufferIndex(program, am::Buffer::arena(planned.workspace,
                                                 planned.workspaceBytes));
  }
  program.launches.push_back(std::move(launch));
  return Status::success();
}

Status ManifestBuilder::addCopy(Operation *op, am::Program &program) {
  auto from = bufferOf(op->getOperand(0), program);
  if (!from)
    return from.status();
  auto to = bufferOf(op->getResult(0), program);
  if (!to)
    return to.status();
  auto needs = conditionOf(op->getAttrOfType<ArrayAttr>(key::kNeeds));
  if (!needs)
    return std::move(needs).status();
  am::Launch &copy =
      program.launches.emplace_back(am::Launch::copy(*from, *to));
  copy.needs = std::move(*needs);
  return Status::success();
}

Status ManifestBuilder::addCollective(CollectiveOpInterface op,
                                      am::Program &program) {
  std::vector<int64_t> between;
  for (Value value : op->getOperands())
    if (auto from = bufferOf(value, program))
      between.push_back(*from);
    else
      return from.status();
  for (Value value : op->getResults())
    if (auto to = bufferOf(value, program))
      between.push_back(*to);
    else
      return to.status();
  auto needs = conditionOf(op->getAttrOfType<ArrayAttr>(key::kNeeds));
  if (!needs)
    return std::move(needs).status();
  am::Launch &launch = program.launches.emplace_back(
      am::Launch::over(collectiveOf(op), std::move(between)));
  launch.needs = std::move(*needs);
  return Status::success();
}

Status ManifestBuilder::addSlots(func::FuncOp func, am::Program &program) {
  auto add = [](RoleAttr role, Type type, std::vector<am::Slot> &slots) {
    auto slot = slotOf(role, cast<RankedTensorType>(type));
    if (!slot)
      return std::move(slot).status();
    slots.push_back(std::move(*slot));
    return Status::success();
  };
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
    RoleAttr role = roleOfArgument(func, i);
    // Whose storage a saved value is, is said where it is saved.
    if (role.getKind() == RoleKind::Saved)
      role = role.without(RoleAttr::kAlias);
    if (Status s = add(role, type, program.arguments); !s)
      return s;
  }
  for (auto [i, type] : llvm::enumerate(func.getResultTypes()))
    if (Status s = add(roleOfResult(func, i), type, program.results); !s)
      return s;
  if (auto aliases = func->getAttrOfType<ArrayAttr>(kAliasesAttr))
    for (Attribute entry : aliases) {
      auto output = outputAliasOf(entry);
      if (!output)
        return std::move(output).status();
      program.aliases.push_back(std::move(*output));
    }
  return Status::success();
}

Status ManifestBuilder::addProgram(func::FuncOp func) {
  am::Program program;
  buffers.clear();
  program.name = func.getName().str();
  if (Status s = addSlots(func, program); !s)
    return std::move(s).in("program '" + program.name + "'");
  if (PlanAttr plan = planOf(func)) {
    program.arenaBytes = plan.getArenaBytes();
    program.peakBytes = plan.getPeakBytes();
    program.hostBytes = plan.getHostBytes();
  }
  for (Operation &op : func.getOps()) {
    Status s;
    if (auto launch = dyn_cast<LaunchOp>(op))
      s = addLaunch(launch, program);
    else if (isa<ToHostOp, ToDeviceOp>(op))
      s = addCopy(&op, program);
    else if (auto collective = dyn_cast<CollectiveOpInterface>(op))
      s = addCollective(collective, program);
    if (!s)
      return std::move(s).in("program '" + program.name + "'");
  }
  manifest.programs.push_back(std::move(program));
  return Status::success();
}

Result<am::Manifest> ManifestBuilder::run(ArrayRef<LoweredSize> sizes) {
  manifest.model = module.getName().value_or("model").str();
  manifest.producer = "tandem " TANDEM_VERSION;
  auto text = [&](StringRef name) {
    auto value = module->getAttrOfType<StringAttr>(name);
    return value ? value.str() : std::string();
  };
  manifest.loss = text(kLossAttr);
  manifest.optimizer = StringRef(text(kOptimizerAttr)).split(':').first.str();
  manifest.graph = text(kGraphDigestAttr);

  if (auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr)) {
    for (auto [name, size] : mesh.getAxes())
      manifest.mesh.push_back({name.str(), size});
    manifest.bucketBytes = bucketBytes(module);
  }
  if (auto pipeline = module->getAttrOfType<DictionaryAttr>(kPipelineAttr))
    manifest.pipeline = pipelineOf(pipeline);
  if (Status s = addParts(); !s)
    return s;
  if (!sizes.empty())
    manifest.sizes.emplace_back().name = sizes.front().name;
  for (const LoweredSize &size : sizes.drop_front(sizes.empty() ? 0 : 1))
    if (Status s = addSize(size); !s)
      return std::move(s).in("size '" + size.name + "'");
  return std::move(manifest);
}

/// What is of one size: values, programs, and what is said of them.
Status ManifestBuilder::addParts() {
  addValues();
  if (auto list =
          module->getAttrOfType<DenseI64ArrayAttr>(kMutatedInBackwardAttr))
    manifest.mutatedInBackward = list.asArrayRef().vec();
  if (auto memory = module->getAttrOfType<DictionaryAttr>(kStepMemoryAttr))
    manifest.stepMemory = stepMemoryOf(memory);
  if (auto report = module->getAttrOfType<DictionaryAttr>(kPartitionReportAttr))
    manifest.partition = partitionOf(report);
  for (auto func : module.getOps<func::FuncOp>())
    if (Status s = addProgram(func); !s)
      return s;
  // Outputs that are views are values too.
  for (const am::Program &program : manifest.programs)
    for (const am::OutputAlias &output : program.aliases)
      if (outputs.insert(output.name).second) {
        am::Value &value = manifest.values.emplace_back();
        value.role = am::Role::Output;
        value.name = output.name;
        value.dtype = output.dtype;
        value.shape = output.shape;
      }
  return Status::success();
}

std::string typeOf(const am::Value &value) {
  return std::string(am::spelling(value.dtype)) + " " + am::toText(value.shape);
}

/// Of a further size: what is otherwise in it. The programs that it needs no
/// inputs for are those of the first.
Status ManifestBuilder::addSize(const LoweredSize &size) {
  am::Manifest first = std::exchange(manifest, {});
  manifest.kernels = std::move(first.kernels);
  inputs.clear();
  outputs.clear();
  module = size.module;
  if (Status s = addParts(); !s)
    return s;
  am::Manifest own = std::exchange(manifest, std::move(first));
  manifest.kernels = std::move(own.kernels);

  am::Size made;
  made.name = size.name;
  made.stepMemory = own.stepMemory;
  made.partition = own.partition;
  std::string wrong;
  auto find = [](const am::Manifest &in, const am::Value &value) {
    return value.role == am::Role::Output ? in.findOutput(value.name)
                                          : in.findValue(value.name);
  };
  auto isWrong = [&](const am::Value &value, const std::string &why) {
    wrong += (wrong.empty() ? "" : "; ") + std::string(spelling(value.role)) +
             " '" + value.name + "' " + why;
  };
  std::string before = "in size '" + manifest.sizes.front().name + "'";
  for (const am::Value &value : own.values) {
    const am::Value *same = find(manifest, value);
    bool isShared =
        value.role == am::Role::Param || value.role == am::Role::State;
    if (!same || same->role != value.role)
      isWrong(value, "is not " + before);
    else if (isShared && *same != value)
      isWrong(value, same->shape == value.shape && same->dtype == value.dtype
                         ? "begins otherwise " + before
                         : "is " + typeOf(value) + ", but " + typeOf(*same) +
                               " " + before);
    else if (*same != value)
      made.values.push_back(value);
  }
  for (const am::Value &value : manifest.values)
    if (!find(own, value))
      isWrong(value, "is " + before + " alone");
  if (!wrong.empty())
    return Status::usage("sizes share parameters and states, and differ in the "
                         "shapes of inputs and outputs alone: " +
                         wrong);
  for (am::Program &program : own.programs) {
    const am::Program *same = manifest.findProgram(program.name);
    if (!same)
      return Status::usage("the program '" + program.name + "' is not " +
                           before);
    if (am::servesAllSizes(program.name) && program == *same)
      continue;
    program.size = static_cast<int64_t>(manifest.sizes.size());
    manifest.programs.push_back(std::move(program));
  }
  manifest.sizes.push_back(std::move(made));
  return Status::success();
}

} // namespace

Result<am::Manifest> tandem::buildManifest(ModuleOp module,
                                           am::ArtifactWriter &writer,
                                           ArrayRef<LoweredSize> sizes) {
  return ManifestBuilder(module, writer).run(sizes);
}
