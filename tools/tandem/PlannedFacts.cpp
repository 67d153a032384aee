//===- PlannedFacts.cpp - what a plan says that an artifact does not ------===//
#include "tools/tandem/PlannedFacts.h"

#include "ir/Ops.h"
#include "ir/Schedule.h"
#include "ir/Where.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace tandem;
using Json = nlohmann::ordered_json;

/// The pass that an op of `program` is of; empty where that is not known.
static StringRef passOf(StringRef program, const Marks &marks) {
  if (!marks.pass.empty())
    return marks.pass;
  return llvm::StringSwitch<StringRef>(program)
      .Cases({"forward", "evaluate", "step", "accumulate"}, "forward")
      .Case("backward", "backward")
      .Cases({"update", "norm"}, "update")
      .Default("");
}

/// Where in the model an op is from, and what for; what is not known is left
/// out.
static void addOrigin(Json &json, StringRef program, Location location) {
  std::string where;
  location->walk([&](Location inner) {
    where = placeOf(inner, /*withFolders=*/false);
    return where.empty() ? WalkResult::advance() : WalkResult::interrupt();
  });
  Marks marks(location);
  auto add = [&](const char *key, StringRef text) {
    if (!text.empty())
      json[key] = text.str();
  };
  add("pass", passOf(program, marks));
  add("path", pathOf(location));
  add("where", where);
  add("gradient_of", marks.gradientOf);
}

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

static Json opFacts(StringRef program, Operation &op, int64_t launch) {
  Json json = {{"op", op.getName().stripDialect().str()}};
  Json types = Json::array();
  for (Type type : op.getResultTypes())
    types.push_back(typeText(type));
  json["types"] = std::move(types);
  addOrigin(json, program, op.getLoc());
  if (launch >= 0)
    json["launch"] = launch;
  return json;
}

/// The op that says what a kernel is for: the first that is more than moving
/// and making elements, else the first. What the backward runs again comes
/// behind what it is run again for.
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
  auto keyOf = [&](Operation &op) {
    return std::pair(rankOf(op), Marks(op.getLoc()).pass != "recompute");
  };
  Operation *best = nullptr;
  for (Operation &op : body.without_terminator())
    if (!best || keyOf(op) > keyOf(*best))
      best = &op;
  return best;
}

static Json launchFacts(StringRef program, KernelOp kernel) {
  Json json = Json::object();
  Operation *main = mainOp(kernel);
  addOrigin(json, program, main ? main->getLoc() : kernel.getLoc());
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
        ops.push_back(opFacts(name, inner, int64_t(launches.size())));
    else if (hasOps)
      ops.push_back(opFacts(name, op, -1));
    if (kernel)
      launches.push_back(launchFacts(name, kernel));
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
