//===- Sharder.cpp - a program of one process as a rank runs it -----------===//
#include "passes/shard/Sharder.h"
#include "passes/common/Phase.h"

#include "ir/Signature.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tandem;

Sharder::Sharder(func::FuncOp func, MeshAttr mesh)
    : func(func), mesh(mesh), builder(func.getContext()), loc(func.getLoc()),
      isData(mesh.getAxes().size(), false) {}

RankedTensorType Sharder::typeOf(Value value) const {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return globalArguments[argument.getArgNumber()];
  return cast<RankedTensorType>(value.getType());
}

bool Sharder::divides(Value value, const Distribution &where) const {
  return static_cast<bool>(pieceOf(value, where));
}

//===----------------------------------------------------------------------===//
// The whole function
//===----------------------------------------------------------------------===//

/// What is said of how a value shares storage is said of whole values.
static bool saysStorage(RoleAttr role) {
  return role.getAlias() || role.has(RoleAttr::kMetadata) ||
         role.has(RoleAttr::kStorage) || role.has(RoleAttr::kResize) ||
         role.has(RoleAttr::kFreed);
}

LogicalResult Sharder::readRoles() {
  bool isWrong = false;
  auto read = [&](RoleAttr role, Type type, Location loc) {
    std::string error;
    auto sharding = readSharding(mesh, role.getSharding(),
                                 cast<RankedTensorType>(type), error);
    if (sharding && !sharding->isWhole() && saysStorage(role)) {
      error = "expected a value that shares storage with another, or changes "
              "its handle, to be whole on every rank";
      sharding.reset();
    }
    if (!sharding) {
      isWrong = true;
      mlir::emitError(loc) << role.str() << ": " << error;
      return Distribution(mesh.size());
    }
    // One rank has all of it.
    for (unsigned axis = 0; axis < mesh.size(); ++axis)
      if (mesh.ranksOf(axis) == 1)
        (*sharding)[axis] = Placement::whole();
    return *sharding;
  };
  for (BlockArgument argument : func.getArguments()) {
    RoleAttr role = roleOfArgument(func, argument.getArgNumber());
    arguments.push_back(read(role, argument.getType(), argument.getLoc()));
    if (role.getKind() == RoleKind::Input)
      for (unsigned axis = 0; axis < mesh.size(); ++axis)
        isData[axis] = isData[axis] || arguments.back()[axis].isCut();
  }
  Operation *end = func.getBody().front().getTerminator();
  for (auto [i, value] : llvm::enumerate(end->getOperands()))
    results.push_back(
        read(roleOfResult(func, unsigned(i)), value.getType(), value.getLoc()));
  return failure(isWrong);
}

LogicalResult Sharder::run() {
  if (failed(readRoles()))
    return failure();
  Block *before = &func.getBody().front();
  Block *after = new Block;
  func.getBody().push_back(after);
  builder.setInsertionPointToStart(after);
  SmallVector<Type> argumentTypes, resultTypes;
  for (auto [argument, where] :
       llvm::zip_equal(before->getArguments(), arguments)) {
    globalArguments.push_back(cast<RankedTensorType>(argument.getType()));
    argumentTypes.push_back(pieceOf(argument, where));
    Value made = after->addArgument(argumentTypes.back(), argument.getLoc());
    versions[argument] = {{where, made, {}}};
  }
  for (Operation &op : before->without_terminator())
    visit(&op);
  Operation *end = before->getTerminator();
  SmallVector<Value> returned;
  for (auto [i, value] : llvm::enumerate(end->getOperands())) {
    RoleAttr role = roleOfResult(func, unsigned(i));
    loc = value.getLoc();
    pass = isBackward(role) ? "backward" : "forward";
    reason = role.str();
    returned.push_back(bring(value, results[i]));
    resultTypes.push_back(returned.back().getType());
  }
  builder.clone(*end)->setOperands(returned);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*before)))
    op.erase();
  before->erase();
  func.setFunctionType(builder.getFunctionType(argumentTypes, resultTypes));
  func->setAttr(kLocalAttr, builder.getUnitAttr());
  return success();
}

void Sharder::visit(Operation *op) {
  loc = op->getLoc();
  pass = passOf(op);
  reason = op->getName().stripDialect().str();
  Choice choice = choose(op);
  SmallVector<Value> made = build(op, choice);
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    versions[result] = {{resultOf(choice, unsigned(i)), made[i], {}}};
  choices[op] = std::move(choice);
}

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

Distribution Sharder::operandOf(const Choice &choice, unsigned operand) const {
  Distribution where(mesh.size());
  for (auto [axis, strategy] : llvm::enumerate(choice))
    where[unsigned(axis)] = strategy.operands[operand];
  return where;
}

Distribution Sharder::resultOf(const Choice &choice, unsigned result) const {
  Distribution where(mesh.size());
  for (auto [axis, strategy] : llvm::enumerate(choice))
    where[unsigned(axis)] = strategy.results[result];
  return where;
}

/// Where a value counts as being: what is stored in pieces is whole where it is
/// used.
Distribution Sharder::useOf(Value value, const Distribution &stored) const {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return stored;
  RoleKind kind = roleOfArgument(func, argument.getArgNumber()).getKind();
  if (kind != RoleKind::Param && kind != RoleKind::State)
    return stored;
  Distribution use = stored;
  for (unsigned axis = 0; axis < mesh.size(); ++axis)
    if (isData[axis] && use[axis].isCut())
      use[axis] = Placement::whole();
  return use;
}

static bool isZero(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  auto splat =
      constant ? dyn_cast_or_null<FloatAttr>(constant.getSplat()) : FloatAttr();
  return splat && splat.getValue().isZero();
}

/// True if several ops read `value`: a sum is then made once for all of them.
static bool hasManyUsers(Value value) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    return user != *value.getUsers().begin();
  });
}

std::optional<double> Sharder::cost(Value value, const Placement &from,
                                    unsigned axis, const Placement &to) const {
  auto n = static_cast<double>(mesh.ranksOf(axis));
  double sent = static_cast<double>(byteSize(typeOf(value))) * (n - 1) / n;
  if (from == to)
    return 0;
  if (to.isPartial()) // zeros are parts of zeros
    return from.isWhole() && isZero(value) ? std::optional<double>(0)
                                           : std::nullopt;
  if (from.isWhole())
    return 0;
  if (from.isCut())
    return to.isWhole() ? sent : sent / n;
  return to.isWhole() ? 2 * sent : sent;
}

std::optional<double> Sharder::cost(Value value, unsigned axis,
                                    const Placement &to) {
  std::optional<double> least;
  for (const Version &version : versions[value]) {
    if (!version.pass.empty() && version.pass != pass)
      continue;
    auto found = cost(value, useOf(value, version.where)[axis], axis, to);
    if (found && (!least || *found < *least))
      least = found;
  }
  return least;
}

/// Axis by axis: the strategy that sends least; of these the one that leaves
/// least to be summed up, and of these one that cuts no whole operand. A
/// strategy needs a reason: an operand that is as it wants it, and not whole.
Sharder::Choice Sharder::choose(Operation *op) {
  SmallVector<Strategy> all = strategiesOf(op);
  Choice choice(mesh.size(), all.front());
  for (unsigned axis = 0; axis < mesh.size(); ++axis) {
    if (mesh.ranksOf(axis) == 1)
      continue;
    using Rank = std::tuple<double, double, int>;
    std::optional<Rank> best;
    for (const Strategy &strategy : all) {
      Choice candidate = choice;
      candidate[axis] = strategy;
      bool fits = true, hasReason = &strategy == &all.front();
      Rank rank{0, 0, 0};
      double unmade = 0;
      for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
        const Placement &want = strategy.operands[i];
        auto bytes = static_cast<double>(byteSize(typeOf(operand)));
        if (want.isPartial() && !isZero(operand)) {
          unmade = std::max(unmade, bytes);
          fits &= !hasManyUsers(operand);
        }
        auto sent = cost(operand, axis, want);
        fits &= sent && divides(operand, operandOf(candidate, unsigned(i)));
        if (!fits)
          break;
        std::get<0>(rank) += *sent;
        if (want.isWhole())
          continue;
        bool isThere = false;
        for (const Version &version : versions[operand])
          isThere |= useOf(operand, version.where)[axis] == want;
        hasReason |= isThere;
        std::get<2>(rank) += !isThere;
      }
      for (auto [i, result] : llvm::enumerate(op->getResults())) {
        fits = fits && divides(result, resultOf(candidate, unsigned(i)));
        if (!fits || !strategy.results[i].isPartial())
          continue;
        auto bytes = static_cast<double>(byteSize(typeOf(result)));
        std::get<1>(rank) += bytes;
        // What repeats a sum that is not made yet has more to sum up.
        if (unmade > 0 && bytes > unmade)
          std::get<0>(rank) += 2 * (bytes - unmade);
      }
      if (fits && hasReason && (!best || rank < *best)) {
        best = rank;
        choice = std::move(candidate);
      }
    }
  }
  return choice;
}

//===----------------------------------------------------------------------===//
// Versions
//===----------------------------------------------------------------------===//

ArrayAttr Sharder::names(ArrayRef<unsigned> axes) {
  SmallVector<StringRef> list;
  for (unsigned axis : axes)
    list.push_back(mesh.nameOf(axis));
  return builder.getStrArrayAttr(list);
}

Value Sharder::bring(Value value, const Distribution &wanted) {
  Distribution to = wanted;
  if (isZero(value))
    for (unsigned axis = 0; axis < mesh.size(); ++axis)
      if (to[axis].isPartial())
        to[axis] = Placement::whole();
  const Version *nearest = nullptr;
  double least = 0;
  for (const Version &version : versions[value]) {
    if (!version.pass.empty() && version.pass != pass)
      continue;
    if (version.where == to)
      return version.value;
    std::optional<double> sum = 0;
    for (unsigned axis = 0; axis < mesh.size() && sum; ++axis) {
      auto sent = cost(value, version.where[axis], axis, to[axis]);
      sum = sent ? std::optional<double>(*sum + *sent) : std::nullopt;
    }
    if (sum && (!nearest || *sum < least)) {
      nearest = &version;
      least = *sum;
    }
  }
  return resolve(value, *nearest, to);
}

Value Sharder::resolve(Value value, Version from, const Distribution &to) {
  bool isStored = useOf(value, from.where) != from.where;
  Distribution now = from.where;
  Value made = from.value;
  bool onlyCuts = true;
  for (unsigned axis = 0; axis < mesh.size(); ++axis)
    onlyCuts &= now[axis] == to[axis] || now[axis].isWhole();
  StringRef gatheredIn = isStored ? pass : from.pass;
  auto remember = [&] {
    for (const Version &version : versions[value])
      if (version.where == now && version.pass == gatheredIn)
        return;
    versions[value].push_back({now, made, gatheredIn});
  };
  if (onlyCuts)
    if (Value piece = computePiece(value, to)) {
      made = piece;
      now = to;
      remember();
      return made;
    }
  // The source's location, and why.
  auto at = [&](StringRef what) {
    return NameLoc::get(builder.getStringAttr(what + " for " + reason), loc);
  };
  auto number = IntegerAttr();
  auto type = [&](const Distribution &where) { return pieceOf(value, where); };
  // The axes that cut a dimension, but for `but`.
  auto before = [](SmallVector<unsigned> axes, unsigned but) {
    llvm::erase_if(axes, [&](unsigned axis) { return axis >= but; });
    return axes;
  };
  // Sums first: what is left of them is less.
  for (unsigned axis = 0; axis < mesh.size(); ++axis) {
    if (!now[axis].isPartial() || !to[axis].isCut())
      continue;
    int64_t dim = to[axis].dim;
    if (now.axesOf(dim) != before(to.axesOf(dim), axis))
      continue;
    CollectiveReduce reduce = now[axis].reduce;
    now[axis] = to[axis];
    made = ReduceScatterOp::create(builder, at("reduce_scatter"), type(now),
                                   reduce, made, static_cast<uint64_t>(dim),
                                   names({axis}), number, BufferAttr(),
                                   ArrayAttr());
    ++this->made;
  }
  for (CollectiveReduce reduce :
       {CollectiveReduce::sum, CollectiveReduce::max, CollectiveReduce::min}) {
    SmallVector<unsigned> axes;
    for (unsigned axis = 0; axis < mesh.size(); ++axis)
      if (now[axis].isPartial() && now[axis].reduce == reduce &&
          !to[axis].isPartial())
        axes.push_back(axis);
    if (axes.empty())
      continue;
    for (unsigned axis : axes)
      now[axis] = Placement::whole();
    made =
        AllReduceOp::create(builder, at("all_reduce"), type(now), reduce, made,
                            names(axes), number, BufferAttr(), ArrayAttr());
    ++this->made;
    remember();
  }
  for (unsigned axis = 0; axis < mesh.size(); ++axis) {
    if (!now[axis].isCut() || !to[axis].isCut() || now[axis] == to[axis])
      continue;
    int64_t concat = now[axis].dim, split = to[axis].dim;
    if (now.axesOf(concat).back() != axis ||
        now.axesOf(split) != before(to.axesOf(split), axis))
      continue;
    now[axis] = to[axis];
    made = AllToAllOp::create(builder, at("all_to_all"), type(now), made,
                              static_cast<uint64_t>(split),
                              static_cast<uint64_t>(concat), names({axis}),
                              number, BufferAttr(), ArrayAttr());
    ++this->made;
  }
  int64_t rank = typeOf(value).getRank();
  auto common = [&](int64_t dim) {
    SmallVector<unsigned> has = now.axesOf(dim), wants = to.axesOf(dim);
    size_t same = 0;
    while (same < has.size() && same < wants.size() && has[same] == wants[same])
      ++same;
    return same;
  };
  for (int64_t dim = 0; dim < rank; ++dim) {
    SmallVector<unsigned> axes = now.axesOf(dim);
    axes.erase(axes.begin(), axes.begin() + long(common(dim)));
    if (axes.empty())
      continue;
    for (unsigned axis : axes)
      now[axis] = Placement::whole();
    made = AllGatherOp::create(builder, at("all_gather"), type(now), made,
                               static_cast<uint64_t>(dim), names(axes), number,
                               BufferAttr(), ArrayAttr());
    ++this->made;
    remember();
  }
  for (int64_t dim = 0; dim < rank; ++dim) {
    SmallVector<unsigned> axes = to.axesOf(dim);
    axes.erase(axes.begin(), axes.begin() + long(common(dim)));
    if (axes.empty())
      continue;
    for (unsigned axis : axes)
      now[axis] = to[axis];
    made = RankSliceOp::create(builder, at("piece"), type(now), made,
                               static_cast<uint64_t>(dim), names(axes), number,
                               BufferAttr(), ArrayAttr());
  }
  remember();
  return made;
}
