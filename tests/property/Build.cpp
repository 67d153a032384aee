//===- Build.cpp - the program that a recipe stands for -------------------===//
#include "tests/property/Recipe.h"

#include "tests/property/Builder.h"

#include "ir/Signature.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::property;

using Shape = SmallVector<int64_t>;

/// The shapes of arguments; the first is the simplest.
static const std::vector<Shape> &argumentShapes() {
  static const std::vector<Shape> shapes = {
      {2},    {},     {1},    {3},       {4},       {6},    {2, 2},    {2, 3},
      {3, 2}, {1, 3}, {4, 1}, {2, 1, 2}, {2, 3, 2}, {3, 4}, {2, 2, 2}, {12}};
  return shapes;
}

OwningOpRef<ModuleOp> property::build(const Recipe &recipe,
                                      MLIRContext &context) {
  OpBuilder b(&context);
  Location loc = b.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  module.get()->setAttr(kPhaseAttr, b.getStringAttr("capture"));
  b.setInsertionPointToEnd(module->getBody());
  SmallVector<Slot> arguments;
  for (auto [i, argument] : llvm::enumerate(recipe.arguments)) {
    constexpr RoleKind kinds[] = {RoleKind::Input, RoleKind::Param,
                                  RoleKind::State};
    constexpr const char *names[] = {"x", "w", "s"};
    auto kind = static_cast<unsigned>(argument.kind);
    auto role =
        RoleAttr::get(&context, kinds[kind], names[kind] + std::to_string(i));
    if (argument.requiresGrad && argument.kind != Kind::State)
      role = role.withUnit("requires_grad");
    const auto &shapes = argumentShapes();
    arguments.push_back(
        {RefType::get(&context, shapes[argument.shape % shapes.size()],
                      b.getF64Type()),
         role, loc});
  }
  func::FuncOp func = createGraphFunction(b, loc, "graph", arguments, {});
  ProgramBuilder program(func);
  for (const Step &step : recipe.steps)
    program.add(step);
  program.finish();
  return module;
}
