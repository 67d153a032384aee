//===- StampRanks.cpp - what the options say of ranks, in the module ------===//
#include "compiler/StampRanks.h"
#include "compiler/PassSteps.h"
#include "compiler/Phases.h"
#include "ir/Dialect.h"
#include "ir/Pipeline.h"
#include "ir/Sharding.h"
#include "passes/shard/ParallelSpec.h"
#include "runtime/artifact/DeviceFiles.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace tandem;

/// The stages that a model is cut into, `each` for each of `ranks` ranks.
static Status stampPipeline(ModuleOp module, int64_t ranks, int64_t each) {
  if (auto has = Pipeline::of(module); has && has->stage)
    return Status::usage("--mesh comes too late for a module that is stage " +
                         std::to_string(*has->stage) + " of a pipeline");
  if (phaseReached(module) > *phaseNumber("functionalize"))
    return Status::usage("--parallel=pp comes too late for a module at " +
                         placeOf(module));
  Builder b(module.getContext());
  auto number = [&](StringRef key, int64_t value) {
    return b.getNamedAttr(key, b.getI64IntegerAttr(value));
  };
  module->setAttr(kPipelineAttr,
                  b.getDictionaryAttr({number(pipeline::kStages, ranks * each),
                                       number(pipeline::kRanks, ranks)}));
  return Status::success();
}

/// The plan of --shard.
static Status stampShard(ModuleOp module, const CompileOptions &options) {
  if (options.shard.empty())
    return Status::success();
  std::string error;
  if (Status status = artifact::expectNoDevice(options.shard); !status)
    return status;
  auto buffer = llvm::MemoryBuffer::getFile(options.shard, /*IsText=*/true);
  if (!buffer)
    return Status::failed("cannot read '" + options.shard +
                          "': " + buffer.getError().message());
  DictionaryAttr plan =
      parseShardPlan((*buffer)->getBuffer(), module.getContext(), error);
  if (!plan)
    return Status::usage("'" + options.shard + "': " + error);
  module->setAttr(kShardAttr, plan);
  return Status::success();
}

/// The axes that the module itself speaks of, in shardings of roles and in
/// collectives.
static llvm::StringSet<> axesIn(ModuleOp module) {
  llvm::StringSet<> axes;
  AttrTypeWalker names, roles;
  names.addWalk([&](StringAttr name) { axes.insert(name.getValue()); });
  roles.addWalk([&](RoleAttr role) {
    if (ArrayAttr sharding = role.getSharding())
      names.walk(sharding);
  });
  module.walk([&](Operation *op) {
    roles.walk(op->getAttrDictionary());
    if (auto collective = dyn_cast<CollectiveOpInterface>(op))
      names.walk(collective.axes());
  });
  return axes;
}

/// Warns of axes of several ranks which nothing asked for cuts anything over.
static void warnOfIdleAxes(ModuleOp module, const MeshSpec &mesh,
                           ArrayRef<std::string> kinds) {
  llvm::StringSet<> used = axesIn(module);
  // What `tp` cuts, the plan of --shard says.
  for (const std::string &kind : kinds)
    for (const ParallelKind &known : parallelKinds())
      if (kind != "tp" &&
          known.name == (stagesOfEachRank(kind) ? "pp" : StringRef(kind)))
        used.insert(known.axis);
  AttrTypeWalker names;
  names.addWalk([&](StringAttr name) { used.insert(name.getValue()); });
  if (auto plan = module->getAttrOfType<DictionaryAttr>(kShardAttr))
    for (NamedAttribute entry : plan)
      names.walk(entry.getValue());
  for (const auto &[name, size] : mesh)
    if (size > 1 && !used.contains(name))
      module.emitWarning() << "nothing is cut over the axis '" << name
                           << "' of the mesh, as no plan (--parallel, --shard) "
                           << "names it: its " << size
                           << " ranks all do the same";
}

Status tandem::stampRanks(ModuleOp module, const CompileOptions &options) {
  if (options.mesh.empty())
    return Status::success();
  Builder b(module.getContext());
  std::string error;
  auto mesh = parseMeshSpec(options.mesh, error);
  if (!mesh)
    return Status::usage("--mesh: " + error);
  std::vector<std::string> kinds;
  if (!options.parallel.empty()) {
    auto parsed = parseParallelSpec(options.parallel, *mesh, error);
    if (!parsed)
      return Status::usage("--parallel: " + error);
    kinds = std::move(*parsed);
  }
  int64_t each = 0;
  for (const std::string &kind : kinds)
    each = std::max(each, stagesOfEachRank(kind));
  SmallVector<MeshAxis> axes;
  for (const auto &[name, size] : *mesh)
    if (name != kPipeAxis || each == 0)
      axes.push_back({b.getStringAttr(name), size});
    else if (Status s = stampPipeline(module, size, each); !s)
      return s;
  if (!axes.empty())
    module->setAttr(kMeshAttr, MeshAttr::get(module.getContext(), axes));
  SmallVector<StringRef> names;
  for (const std::string &kind : kinds)
    if (!stagesOfEachRank(kind))
      names.push_back(kind);
  if (!names.empty())
    module->setAttr(kParallelAttr, b.getStrArrayAttr(names));
  if (options.batchNorm == "per-rank")
    module->setAttr(kBatchNormAttr, b.getStringAttr(options.batchNorm));
  if (options.bucketMb)
    module->setAttr(kBucketBytesAttr, b.getI64IntegerAttr(static_cast<int64_t>(
                                          *options.bucketMb * (1 << 20))));
  if (Status s = stampShard(module, options); !s)
    return s;
  if (llvm::is_contained(kinds, "tp") && !module->hasAttr(kShardAttr))
    return Status::usage("--parallel=tp needs a plan that says how params are "
                         "cut (--shard)");
  warnOfIdleAxes(module, *mesh, kinds);
  return Status::success();
}
