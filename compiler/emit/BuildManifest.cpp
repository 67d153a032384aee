//===- BuildManifest.cpp - the manifest of a lowered module ---------------===//
#include "compiler/emit/BuildManifest.h"
#include "ir/Ops.h"
#include "ir/Signature.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace tandem;
namespace am = tandem::artifact;

namespace {

std::string nameOf(Type element) {
  if (element.isInteger(1))
    return "bool";
  std::string text;
  llvm::raw_string_ostream(text) << element;
  return text;
}

am::DType dtypeOf(RankedTensorType type) {
  return *am::parseDType(nameOf(type.getElementType()));
}

am::Role roleOf(RoleKind kind) {
  return *am::parseRole(stringifyRoleKind(kind));
}

double number(DictionaryAttr init, StringRef key) {
  Attribute value = init.get(key);
  if (auto f = dyn_cast_or_null<FloatAttr>(value))
    return f.getValueAsDouble();
  if (auto i = dyn_cast_or_null<IntegerAttr>(value))
    return static_cast<double>(i.getInt());
  return 0;
}

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
      : module(module), writer(writer) {}

  Result<am::Manifest> run();

private:
  void addValue(RoleAttr role, RankedTensorType type);
  am::Slot slot(RoleAttr role, Type type);
  Status addProgram(func::FuncOp func);
  Status addLaunch(LaunchOp launch, am::Program &program);
  Result<int64_t> kernelIndex(LaunchOp launch);
  Result<int64_t> bufferOf(Value value, am::Program &program);
  int64_t bufferIndex(am::Program &program, const am::Buffer &buffer);

  ModuleOp module;
  am::ArtifactWriter &writer;
  am::Manifest manifest;
  llvm::StringMap<int64_t> kernels;
  llvm::MapVector<Attribute, int64_t> constants; ///< value to offset
};

void ManifestBuilder::addValue(RoleAttr role, RankedTensorType type) {
  am::Role kind = roleOf(role.getKind());
  for (const am::Value &value : manifest.values)
    if (value.role == kind && value.name == role.getName())
      return;
  am::Value value;
  value.role = kind;
  value.name = role.getName().str();
  value.dtype = dtypeOf(type);
  value.shape = type.getShape().vec();
  value.requiresGrad = role.has("requires_grad");
  if (auto high = role.getProperties().getAs<IntegerAttr>("high"))
    value.high = high.getInt();
  if (auto init = role.getProperties().getAs<DictionaryAttr>("init")) {
    StringRef how = init.getAs<StringAttr>("kind").getValue();
    if (how == "constant")
      value.init = am::Init::constant(number(init, "value"));
    else if (how == "uniform")
      value.init = am::Init::uniform(number(init, "low"), number(init, "high"));
    else if (how == "normal")
      value.init = am::Init::normal(number(init, "mean"), number(init, "std"));
    else
      value.init = am::Init::counter(
          static_cast<int64_t>(number(init, "stream")), number(init, "scale"));
  }
  manifest.values.push_back(std::move(value));
}

am::Slot ManifestBuilder::slot(RoleAttr role, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  am::Slot slot;
  slot.role = roleOf(role.getKind());
  slot.name = role.getName().str();
  slot.dtype = dtypeOf(tensor);
  slot.shape = tensor.getShape().vec();
  slot.inPlace = role.has("in_place");
  if (auto reason = role.getProperties().getAs<StringAttr>("reason"))
    slot.reason = reason.str();
  return slot;
}

int64_t ManifestBuilder::bufferIndex(am::Program &program,
                                     const am::Buffer &buffer) {
  auto it = llvm::find(program.buffers, buffer);
  if (it != program.buffers.end())
    return it - program.buffers.begin();
  program.buffers.push_back(buffer);
  return static_cast<int64_t>(program.buffers.size()) - 1;
}

Result<int64_t> ManifestBuilder::bufferOf(Value value, am::Program &program) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return bufferIndex(program, am::Buffer::argument(argument.getArgNumber()));
  Operation *op = value.getDefiningOp();
  if (auto view = dyn_cast<ViewOpInterface>(op); view && view.isFree())
    return bufferOf(op->getOperand(0), program);
  int64_t bytes = byteSize(cast<RankedTensorType>(value.getType()));
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    auto [it, isNew] = constants.insert({constant.getValue(), 0});
    if (isNew) {
      std::string raw = bytesOf(constant.getValue());
      it->second = writer.addConstant(std::as_bytes(std::span(raw)));
    }
    return bufferIndex(program, am::Buffer::constant(it->second, bytes));
  }
  auto launch = dyn_cast<LaunchOp>(op);
  if (!launch)
    return Status::failed("expected a launch, a constant or a free view, but "
                          "got '" +
                          op->getName().getStringRef().str() + "'");
  auto place = cast<BufferAttr>(
      launch.getBuffers()[cast<OpResult>(value).getResultNumber()]);
  switch (place.getPlace()) {
  case BufferPlace::Arena:
    return bufferIndex(program, am::Buffer::arena(place.getPosition(), bytes));
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
  auto function = SymbolTable::lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(
      launch, launch.getKernel());
  auto about = function ? function->getAttrOfType<DictionaryAttr>(kKernelAttr)
                        : DictionaryAttr();
  if (!about)
    return Status::failed("kernel '" + symbol.str() +
                          "' is not a function "
                          "with '" +
                          kKernelAttr.str() + "'");
  am::Kernel kernel;
  kernel.symbol = symbol.str();
  if (auto kind = about.getAs<StringAttr>("class"))
    kernel.kind = kind.str();
  if (auto ops = about.getAs<ArrayAttr>("ops"))
    for (auto op : ops.getAsRange<StringAttr>())
      kernel.ops.push_back(op.str());
  auto integer = [&](StringRef key) {
    auto value = about.getAs<IntegerAttr>(key);
    return value ? value.getInt() : 0;
  };
  kernel.flops = integer("flops");
  kernel.bytes = integer("bytes");
  kernel.scratchBytes = integer("scratch_bytes");
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
  program.launches.push_back(std::move(launch));
  return Status::success();
}

Status ManifestBuilder::addProgram(func::FuncOp func) {
  am::Program program;
  program.name = func.getName().str();
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes()))
    program.arguments.push_back(slot(roleOfArgument(func, i), type));
  for (auto [i, type] : llvm::enumerate(func.getResultTypes()))
    program.results.push_back(slot(roleOfResult(func, i), type));
  if (auto plan = func->getAttrOfType<DictionaryAttr>(kPlanAttr)) {
    if (auto bytes = plan.getAs<IntegerAttr>("arena_bytes"))
      program.arenaBytes = bytes.getInt();
    if (auto bytes = plan.getAs<IntegerAttr>("peak_bytes"))
      program.peakBytes = bytes.getInt();
  }
  for (LaunchOp launch : func.getOps<LaunchOp>())
    if (Status s = addLaunch(launch, program); !s)
      return std::move(s).in("program '" + program.name + "'");
  manifest.programs.push_back(std::move(program));
  return Status::success();
}

Result<am::Manifest> ManifestBuilder::run() {
  manifest.model = module.getName().value_or("model").str();
  manifest.producer = "tandem " TANDEM_VERSION;
  auto text = [&](StringRef name) {
    auto value = module->getAttrOfType<StringAttr>(name);
    return value ? value.str() : std::string();
  };
  manifest.loss = text(kLossAttr);
  manifest.optimizer = StringRef(text(kOptimizerAttr)).split(':').first.str();

  // Values in a stable order: inputs, params, states, then outputs.
  for (RoleKind kind :
       {RoleKind::Input, RoleKind::Param, RoleKind::State, RoleKind::Output})
    for (auto func : module.getOps<func::FuncOp>()) {
      for (auto [i, type] : llvm::enumerate(func.getArgumentTypes()))
        if (RoleAttr role = roleOfArgument(func, i); role.getKind() == kind)
          addValue(role, cast<RankedTensorType>(type));
      for (auto [i, type] : llvm::enumerate(func.getResultTypes()))
        if (RoleAttr role = roleOfResult(func, i); role.getKind() == kind)
          addValue(role, cast<RankedTensorType>(type));
    }
  for (auto func : module.getOps<func::FuncOp>())
    if (Status s = addProgram(func); !s)
      return s;
  return std::move(manifest);
}

} // namespace

Result<am::Manifest> tandem::buildManifest(ModuleOp module,
                                           am::ArtifactWriter &writer) {
  return ManifestBuilder(module, writer).run();
}
