//===- ReadModule.cpp - a planned module as a manifest --------------------===//
#include "tools/simulate/ReadModule.h"

#include "compiler/emit/ManifestParts.h"
#include "ir/Pipeline.h"
#include "ir/Report.h"
#include "ir/Signature.h"
#include "ir/Where.h"
#include "passes/lower/common/Kernels.h"
#include "passes/plan/Collectives.h"
#include "passes/plan/FormKernels.h"
#include "passes/plan/HostCopies.h"
#include "passes/plan/Parts.h"
#include "passes/target/Rates.h"
#include "passes/target/Target.h"

using namespace mlir;
using namespace tandem;
namespace am = tandem::artifact;

namespace {

class Reader {
public:
  explicit Reader(ModuleOp module) : module(module) {}
  Result<am::Manifest> run();

private:
  Status addProgram(func::FuncOp func);
  Status addKernel(KernelOp kernel, am::Program &program);
  Status addSlots(func::FuncOp func, am::Program &program);
  /// The number of the value's buffer among the program's.
  int64_t bufferOf(Value value, am::Program &program);

  ModuleOp module;
  am::Manifest manifest;
  lower::DistinctKernels distinct;
  DenseMap<Value, int64_t> buffers; ///< of the program that is read
};

} // namespace

static am::Buffer bufferFrom(BufferAttr place, int64_t bytes) {
  switch (place.getPlace()) {
  case BufferPlace::Argument:
    return am::Buffer::argument(place.getPosition());
  case BufferPlace::Result:
    return am::Buffer::result(place.getPosition());
  case BufferPlace::Arena:
    return am::Buffer::arena(place.getPosition(), bytes);
  case BufferPlace::Constant:
    return am::Buffer::constant(place.getPosition(), bytes);
  default:
    return am::Buffer::host(place.getPosition(), bytes);
  }
}

int64_t Reader::bufferOf(Value value, am::Program &program) {
  value = shownBy(value).source;
  auto [it, isNew] = buffers.try_emplace(value, 0);
  if (!isNew)
    return it->second;
  am::Buffer buffer;
  if (auto argument = dyn_cast<BlockArgument>(value))
    buffer = am::Buffer::argument(argument.getArgNumber());
  else // Nobody writes it.
    buffer = am::Buffer::constant(0, 0);
  it->second = static_cast<int64_t>(program.buffers.size());
  program.buffers.push_back(buffer);
  return it->second;
}

Status Reader::addKernel(KernelOp kernel, am::Program &program) {
  am::Launch launch;
  CollectiveOpInterface collective = collectiveOf(kernel);
  if (collective) {
    launch.collective = collectiveOf(collective);
  } else if (hostCopyOf(kernel)) {
    launch.copies = true;
  } else {
    auto [number, isFirst] = distinct.insert(kernel);
    if (isFirst) {
      KernelFactsAttr facts = lower::describeKernel(kernel, {});
      am::Kernel &made = manifest.kernels.emplace_back();
      made.symbol = kernel.getName().str();
      made.kind = facts.getKind().str();
      made.flops = facts.getFlops();
      made.bytes = facts.getBytes();
      made.scratchBytes =
          static_cast<int64_t>(kernel.getScratchBytes().value_or(0));
      if (StringAttr summary = facts.getSummary())
        made.summary = summary.str();
      if (Type type = facts.getDtype())
        made.dtype = dtypeOf(type);
    }
    launch.kernel = static_cast<int64_t>(number);
  }
  for (Value input : kernel.getInputs()) {
    launch.reads.push_back(static_cast<int64_t>(launch.buffers.size()));
    launch.buffers.push_back(bufferOf(input, program));
  }
  ArrayAttr places = kernel.getBuffersAttr();
  if (kernel.getNumResults() && !places)
    return Status::failed("kernel '" + kernel.getName().str() +
                          "' has no places");
  for (auto [i, result] : llvm::enumerate(kernel.getResults())) {
    auto type = cast<RankedTensorType>(result.getType());
    buffers[result] = static_cast<int64_t>(program.buffers.size());
    launch.writes.push_back(static_cast<int64_t>(launch.buffers.size()));
    launch.buffers.push_back(buffers[result]);
    program.buffers.push_back(
        bufferFrom(cast<BufferAttr>(places[i]), byteSize(type)));
  }
  program.launches.push_back(std::move(launch));
  return Status::success();
}

Status Reader::addSlots(func::FuncOp func, am::Program &program) {
  auto add = [](RoleAttr role, Type type, std::vector<am::Slot> &slots) {
    auto slot = slotOf(role, cast<RankedTensorType>(type));
    if (slot)
      slots.push_back(std::move(*slot));
    return slot.status();
  };
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
    RoleAttr role = roleOfArgument(func, i);
    if (role.getKind() == RoleKind::Saved) // whose storage it is, a result says
      role = role.without(RoleAttr::kAlias);
    if (Status s = add(role, type, program.arguments); !s)
      return s;
  }
  for (auto [i, type] : llvm::enumerate(func.getResultTypes()))
    if (Status s = add(roleOfResult(func, i), type, program.results); !s)
      return s;
  return Status::success();
}

Status Reader::addProgram(func::FuncOp func) {
  am::Program program;
  buffers.clear();
  program.name = func.getName().str();
  if (Status s = addSlots(func, program); !s)
    return s;
  if (PlanAttr plan = planOf(func)) {
    program.arenaBytes = plan.getArenaBytes();
    program.peakBytes = plan.getPeakBytes();
  }
  for (auto kernel : func.getOps<KernelOp>())
    if (Status s = addKernel(kernel, program); !s)
      return s;
  manifest.programs.push_back(std::move(program));
  return Status::success();
}

Result<am::Manifest> Reader::run() {
  manifest.model = module.getName().value_or("model").str();
  if (auto loss = module->getAttrOfType<StringAttr>(kLossAttr))
    manifest.loss = loss.str();
  manifest.target.kind = isForCuda(module) ? "cuda" : "cpu";
  if (auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr)) {
    for (auto [name, size] : mesh.getAxes())
      manifest.mesh.push_back({name.str(), size});
    manifest.bucketBytes = bucketBytes(module);
  }
  if (auto fields = module->getAttrOfType<DictionaryAttr>(kPipelineAttr))
    manifest.pipeline = pipelineOf(fields);
  if (auto memory = module->getAttrOfType<DictionaryAttr>(kStepMemoryAttr))
    manifest.stepMemory = stepMemoryOf(memory);
  for (auto func : module.getOps<func::FuncOp>())
    if (Status s = addProgram(func); !s)
      return std::move(s).in("program '" + func.getName().str() + "'");
  return std::move(manifest);
}

Result<am::Manifest> simulate::manifestOf(ModuleOp planned) {
  return Reader(planned).run();
}
