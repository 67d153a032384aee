//===- PlannedFacts.cpp - what a plan says that an artifact does not ------===//
//
// The path of an op is the first name of its location that is none of a
// gradient; the ops of a backward have "grad of matmul" around the location of
// the op whose gradient they compute.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/PlannedFacts.h"

#include "ir/Ops.h"
#include "ir/Schedule.h"
#include "ir/Where.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tandem;
using Json = nlohmann::ordered_json;

namespace {
/// Where in the model an op is from.
struct Origin {
  explicit Origin(Location location) {
    location->walk([&](Location loc) {
      if (auto name = dyn_cast<NameLoc>(loc)) {
        StringRef text = name.getName().getValue();
        if (text.consume_front("grad of "))
          of = of.empty() ? text.split(' ').first.str() : of;
        else if (path.empty() && placeOf(loc).empty())
          path = text.str();
      }
      if (where.empty())
        where = placeOf(loc, /*withFolders=*/false);
      return WalkResult::advance();
    });
  }
  /// What is not known is left out.
  void addTo(Json &json) const {
    if (!path.empty())
      json["path"] = path;
    if (!where.empty())
      json["where"] = where;
    if (!of.empty())
      json["gradient_of"] = of;
  }

  std::string path, where, of;
};
} // namespace

template <typename Printed> static std::string textOf(Printed printed) {
  std::string text;
  llvm::raw_string_ostream(text) << printed;
  return text;
}

/// "f32[2, 3]", as manifests are shown.
static std::string typeText(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return textOf(type);
  Type element = tensor.getElementType();
  std::string text = element.isInteger(1) ? "bool" : textOf(element);
  llvm::raw_string_ostream out(text);
  out << '[';
  llvm::interleaveComma(tensor.getShape(), out);
  out << ']';
  return text;
}

static Json opFacts(Operation &op, int64_t launch) {
  Json json = {{"op", op.getName().stripDialect().str()}};
  Json types = Json::array();
  for (Type type : op.getResultTypes())
    types.push_back(typeText(type));
  json["types"] = std::move(types);
  Origin(op.getLoc()).addTo(json);
  if (launch >= 0)
    json["launch"] = launch;
  return json;
}

/// The op that says what a kernel is for: the first that is more than moving
/// and making elements, else the first.
static Operation *mainOp(KernelOp kernel) {
  Block &body = kernel.getBody().front();
  auto rankOf = [](Operation &op) {
    auto cost = dyn_cast<CostOpInterface>(op);
    if (!cost)
      return 0;
    switch (cost.getOpClass()) {
    case OpClass::Contraction:
    case OpClass::Window:
      return 3;
    case OpClass::Reduction:
    case OpClass::Indexed:
      return 2;
    case OpClass::Pointwise:
      return 1;
    default:
      return 0;
    }
  };
  Operation *best = nullptr;
  for (Operation &op : body.without_terminator())
    if (!best || rankOf(op) > rankOf(*best))
      best = &op;
  return best;
}

static Json launchFacts(KernelOp kernel) {
  Json json = Json::object();
  Operation *main = mainOp(kernel);
  Origin(main ? main->getLoc() : kernel.getLoc()).addTo(json);
  if (Attribute schedule = kernel.getScheduleAttr())
    json["schedule"] = textOf(schedule);
  return json;
}

static Json programFacts(func::FuncOp func) {
  StringRef name = func.getName();
  bool hasOps = name == "forward" || name == "backward" || name == "evaluate";
  Json launches = Json::array(), ops = Json::array();
  for (Operation &op : func.getBody().front().without_terminator()) {
    auto kernel = dyn_cast<KernelOp>(op);
    if (kernel && hasOps)
      for (Operation &inner : kernel.getBody().front().without_terminator())
        ops.push_back(opFacts(inner, int64_t(launches.size())));
    else if (hasOps)
      ops.push_back(opFacts(op, -1));
    if (kernel)
      launches.push_back(launchFacts(kernel));
  }
  Json json = {{"name", name.str()}, {"launches", std::move(launches)}};
  if (hasOps)
    json["ops"] = std::move(ops);
  return json;
}

Json commands::plannedFacts(const Modules &modules) {
  Json list = Json::array();
  for (const auto &module : modules) {
    Json programs = Json::array();
    for (auto func : module.get().getOps<func::FuncOp>())
      if (!func.isExternal())
        programs.push_back(programFacts(func));
    list.push_back({{"programs", std::move(programs)}});
  }
  return list;
}
