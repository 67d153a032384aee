//===- InspectShardings.cpp - which ranks have what -----------------------===//
//
// The model is compiled to `partition`, whose programs are those of a rank.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/InspectShardings.h"

#include "ir/Collective.h"
#include "ir/Sharding.h"
#include "ir/Signature.h"
#include "ir/Where.h"
#include "passes/shard/Distribution.h"

#include "llvm/ADT/StringExtras.h"

#include <cstdio>

using namespace mlir;
using namespace tandem;
using namespace tandem::commands;

static std::string textOf(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static void printValue(const MeshAxes &mesh, func::FuncOp func, RoleAttr role,
                       Type type) {
  auto tensor = cast<RankedTensorType>(type);
  Distribution where = shardingOfLocal(mesh, role);
  std::string whole = textOf(wholeType(func, role, type));
  // What is saved goes from a rank's forward to its own backward.
  std::string text = role.getKind() == RoleKind::Saved
                         ? "of the rank"
                         : where.str(mesh, tensor.getRank());
  std::printf("  %-32s %-24s %s%s\n", role.str().c_str(), text.c_str(),
              textOf(type).c_str(),
              where.isWhole() ? "" : (" of " + whole).c_str());
}

/// "for grad of matmul": behind the op, in the name of its location.
static std::string reasonOf(Operation *op) {
  return pathOf(op).split(' ').second.str();
}

static void printCollective(CollectiveOpInterface op) {
  SmallVector<StringRef> axes;
  for (auto axis : op.axes().getAsRange<StringAttr>())
    axes.push_back(axis.getValue());
  std::string place;
  op->getLoc()->walk([&](Location loc) {
    if (place.empty())
      place = placeOf(loc, /*withFolders=*/false);
    return place.empty() ? WalkResult::advance() : WalkResult::interrupt();
  });
  std::printf("  %-15s over %-16s %12lld bytes sent by a rank; %s%s%s\n",
              op->getName().stripDialect().str().c_str(),
              llvm::join(axes, ", ").c_str(),
              static_cast<long long>(op.getLinkBytes()), reasonOf(op).c_str(),
              place.empty() ? "" : ", ", place.c_str());
}

static void printProgram(const MeshAxes &mesh, func::FuncOp func) {
  std::printf("%s\n", func.getName().str().c_str());
  for (BlockArgument argument : func.getArguments())
    printValue(mesh, func, roleOfArgument(func, argument.getArgNumber()),
               argument.getType());
  for (unsigned i = 0, n = func.getNumResults(); i < n; ++i)
    printValue(mesh, func, roleOfResult(func, i), func.getResultTypes()[i]);
  int64_t bytes = 0, count = 0;
  func.walk([&](CollectiveOpInterface op) {
    if (!op.communicates())
      return;
    printCollective(op);
    bytes += op.getLinkBytes();
    ++count;
  });
  std::printf("  %lld collectives, %lld bytes sent by a rank\n",
              static_cast<long long>(count), static_cast<long long>(bytes));
}

Status commands::printShardings(const std::string &path,
                                CompileOptions options) {
  options.stopAfter = "partition";
  Session session(options);
  Modules modules = session.phases(path);
  if (modules.empty())
    return session.status();
  ModuleOp module = *modules.front();
  auto attribute = module->getAttrOfType<MeshAttr>(kMeshAttr);
  if (!attribute)
    return Status::usage("'" + path +
                         "' is compiled for one process: expected "
                         "--mesh=AXIS=N,... with --shardings");
  MeshAxes mesh(attribute);
  std::printf("mesh: %s; %lld ranks\n", mesh.str().c_str(),
              static_cast<long long>(attribute.getNumRanks()));
  for (auto func : module.getOps<func::FuncOp>()) {
    std::printf("\n");
    printProgram(mesh, func);
  }
  return Status::success();
}
