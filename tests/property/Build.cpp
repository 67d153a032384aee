//===- Build.cpp - the program that a recipe stands for -------------------===//
#include "tests/property/Recipe.h"

#include "tests/property/Builder.h"

#include "ir/Signature.h"

#include <numeric>

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

namespace {

/// The arguments of a recipe: their types and roles.
class Arguments {
public:
  Arguments(const Recipe &recipe, MLIRContext &context)
      : recipe(recipe), b(&context) {}
  SmallVector<Slot> make();

private:
  bool isAlias(unsigned i) const {
    const Argument &argument = recipe.arguments[i];
    return argument.kind == Kind::Input && argument.alias;
  }
  std::string nameOf(unsigned i) const {
    constexpr const char *names[] = {"x", "w", "s"};
    return names[static_cast<unsigned>(recipe.arguments[i].kind)] +
           std::to_string(i);
  }
  Shape shapeOf(unsigned i) const {
    const auto &shapes = argumentShapes();
    return shapes[recipe.arguments[i].shape % shapes.size()];
  }
  /// One step of an alias; `shape` becomes that of what it shows.
  Attribute step(uint32_t choice, Shape &shape);
  Slot makeAlias(unsigned i);
  Slot slot(ArrayRef<int64_t> shape, RoleAttr role) {
    return {RefType::get(b.getContext(), shape, b.getF64Type()), role,
            b.getUnknownLoc()};
  }

  const Recipe &recipe;
  Builder b;
};

} // namespace

Attribute Arguments::step(uint32_t choice, Shape &shape) {
  auto list = [&](StringRef name, ArrayRef<int64_t> values) {
    return b.getNamedAttr(name, b.getDenseI64ArrayAttr(values));
  };
  auto step = [&](StringRef op, ArrayRef<NamedAttribute> attributes) {
    NamedAttrList all(attributes);
    all.set("op", b.getStringAttr(op));
    return all.getDictionary(b.getContext());
  };
  auto rank = static_cast<int64_t>(shape.size());
  if (choice % 2 == 0 && rank > 1) {
    Shape permutation(rank);
    std::iota(permutation.begin(), permutation.end(), 0);
    std::rotate(permutation.begin(), permutation.begin() + 1,
                permutation.end());
    Shape from = shape;
    for (int64_t d = 0; d < rank; ++d)
      shape[d] = from[permutation[d]];
    return step("permute", list("permutation", permutation));
  }
  if (rank == 0) {
    shape = {1};
    return step("reshape", list("shape", shape));
  }
  Shape starts(rank, 0), limits = shape, strides(rank, 1);
  int64_t dim = choice / 2 % rank, size = shape[dim];
  starts[dim] = choice / 8 % size;
  strides[dim] = 1 + choice / 64 % 2;
  limits[dim] = starts[dim] + 1 + choice / 128 % (size - starts[dim]);
  shape[dim] = (limits[dim] - starts[dim] + strides[dim] - 1) / strides[dim];
  return step("slice", {list("starts", starts), list("limits", limits),
                        list("strides", strides)});
}

/// A view of an input or of storage that is no argument. Inputs that share
/// storage require grad all or none of them.
Slot Arguments::makeAlias(unsigned i) {
  uint32_t choice = recipe.arguments[i].alias;
  SmallVector<unsigned> bases;
  unsigned first = i;
  for (unsigned k = 0; k < recipe.arguments.size(); ++k) {
    if (recipe.arguments[k].kind == Kind::Input && !isAlias(k))
      bases.push_back(k);
    else if (isAlias(k))
      first = std::min(first, k);
  }
  NamedAttrList alias;
  Shape shape = {2, 4};
  bool requiresGrad = recipe.arguments[first].requiresGrad;
  if (choice % 3 == 0 || bases.empty()) {
    alias.set("of", b.getStringAttr("memory"));
    alias.set("type",
              TypeAttr::get(RankedTensorType::get(shape, b.getF64Type())));
  } else {
    unsigned base = bases[choice / 3 % bases.size()];
    shape = shapeOf(base);
    requiresGrad = recipe.arguments[base].requiresGrad;
    alias.set("of", b.getStringAttr(nameOf(base)));
  }
  SmallVector<Attribute> views;
  for (uint32_t k = 0, n = choice / 16 % 3; k < n; ++k)
    views.push_back(step(choice / (64 << k), shape));
  alias.set("views", b.getArrayAttr(views));
  auto role = RoleAttr::get(b.getContext(), RoleKind::Input, nameOf(i))
                  .with("alias", alias.getDictionary(b.getContext()));
  return slot(shape, requiresGrad ? role.withUnit("requires_grad") : role);
}

SmallVector<Slot> Arguments::make() {
  SmallVector<Slot> slots;
  for (auto [i, argument] : llvm::enumerate(recipe.arguments)) {
    if (isAlias(i)) {
      slots.push_back(makeAlias(i));
      continue;
    }
    constexpr RoleKind kinds[] = {RoleKind::Input, RoleKind::Param,
                                  RoleKind::State};
    auto role = RoleAttr::get(
        b.getContext(), kinds[static_cast<unsigned>(argument.kind)], nameOf(i));
    if (argument.requiresGrad && argument.kind != Kind::State)
      role = role.withUnit("requires_grad");
    slots.push_back(slot(shapeOf(i), role));
  }
  return slots;
}

OwningOpRef<ModuleOp> property::build(const Recipe &recipe,
                                      MLIRContext &context) {
  OpBuilder b(&context);
  Location loc = b.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  module.get()->setAttr(kPhaseAttr, b.getStringAttr("capture"));
  b.setInsertionPointToEnd(module->getBody());
  func::FuncOp func = createGraphFunction(
      b, loc, "graph", Arguments(recipe, context).make(), {});
  ProgramBuilder program(func);
  for (const Step &step : recipe.steps)
    program.add(step);
  program.finish();
  // Every op of a model has a place.
  Location place = NameLoc::get(b.getStringAttr("program"));
  module->walk([&](Operation *op) { op->setLoc(place); });
  return module;
}
