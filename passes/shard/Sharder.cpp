//===- Sharder.cpp - a program of one process as a rank runs it -----------===//
#include "passes/shard/Sharder.h"
#include "passes/common/Phase.h"

#include "ir/Sharding.h"
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
  SmallVector<RankedTensorType> globalResults;
  for (auto [i, value] : llvm::enumerate(end->getOperands())) {
    RoleAttr role = roleOfResult(func, unsigned(i));
    globalResults.push_back(typeOf(value));
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
  sayWholeSizes(globalResults);
  return success();
}

/// Roles say the sizes that do not follow from those of pieces.
void Sharder::sayWholeSizes(ArrayRef<RankedTensorType> globalResults) {
  auto withSizes = [&](RoleAttr role, const Distribution &where,
                       RankedTensorType type) {
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (where.isPadded(mesh, type, dim))
        return role.with(kWholeSizes,
                         builder.getDenseI64ArrayAttr(type.getShape()));
    return role;
  };
  for (unsigned i = 0, n = func.getNumArguments(); i < n; ++i)
    setRoleOfArgument(
        func, i,
        withSizes(roleOfArgument(func, i), arguments[i], globalArguments[i]));
  SmallVector<RoleAttr> roles;
  for (unsigned i = 0, n = func.getNumResults(); i < n; ++i)
    roles.push_back(
        withSizes(roleOfResult(func, i), results[i], globalResults[i]));
  setRolesOfResults(func, roles);
}

void Sharder::visit(Operation *op) {
  loc = op->getLoc();
  pass = passOf(op);
  reason = op->getName().stripDialect().str();
  Choice choice = choose(op);
  SmallVector<Value> made = build(op, choice);
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    versions[result] = {{resultOf(op, choice, unsigned(i)), made[i], {}}};
  choices[op] = std::move(choice);
}

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

Distribution Sharder::operandOf(Operation *op, const Choice &choice,
                                unsigned operand) const {
  Distribution where(mesh.size());
  for (auto [axis, strategy] : llvm::enumerate(choice))
    where[unsigned(axis)] = strategy.operands[operand];
  return where.normal(mesh, typeOf(op->getOperand(operand)));
}

Distribution Sharder::resultOf(Operation *op, const Choice &choice,
                               unsigned result) const {
  Distribution where(mesh.size());
  for (auto [axis, strategy] : llvm::enumerate(choice))
    where[unsigned(axis)] = strategy.results[result];
  return where.normal(mesh, typeOf(op->getResult(result)));
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
    return to.isWhole() || to.dim == from.dim ? sent : sent / n;
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

SmallVector<Strategy> Sharder::withUnits(Operation *op, ArrayRef<Strategy> all,
                                         unsigned axis) {
  SmallVector<Strategy> list(all);
  for (const Strategy &strategy : all) {
    SmallVector<int64_t> known{1};
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      const Placement &want = strategy.operands[i];
      if (!want.isCut())
        continue;
      for (const Version &version : versions[operand]) {
        const Placement &is = version.where[axis];
        int64_t times = is.unit / want.unit;
        if (!is.isCut() || is.dim != want.dim || is.unit % want.unit != 0 ||
            llvm::is_contained(known, times))
          continue;
        known.push_back(times);
        list.push_back(strategy.scaled(times));
      }
    }
  }
  return list;
}

bool Sharder::fits(Operation *op, const Choice &choice) const {
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    Distribution where = operandOf(op, choice, unsigned(i));
    if (!pieceOf(operand, where))
      return false;
    for (auto [axis, strategy] : llvm::enumerate(choice))
      if (strategy.fill == Fill::None && where[unsigned(axis)].isCut() &&
          where.isPadded(mesh, typeOf(operand), where[unsigned(axis)].dim))
        return false;
  }
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    if (!pieceOf(result, resultOf(op, choice, unsigned(i))))
      return false;
  return true;
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
    SmallVector<Strategy> along = withUnits(op, all, axis);
    for (const Strategy &strategy : along) {
      Choice candidate = choice;
      candidate[axis] = strategy;
      bool canBe = fits(op, candidate), hasReason = &strategy == &along.front();
      Rank rank{0, 0, 0};
      double unmade = 0;
      for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
        Placement want = operandOf(op, candidate, unsigned(i))[axis];
        auto bytes = static_cast<double>(byteSize(typeOf(operand)));
        if (want.isPartial() && !isZero(operand)) {
          unmade = std::max(unmade, bytes);
          canBe &= !hasManyUsers(operand);
        }
        auto sent = cost(operand, axis, want);
        canBe &= sent.has_value();
        if (!canBe)
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
        if (!canBe || !strategy.results[i].isPartial())
          continue;
        auto bytes = static_cast<double>(byteSize(typeOf(result)));
        std::get<1>(rank) += bytes;
        // What repeats a sum that is not made yet has more to sum up.
        if (unmade > 0 && bytes > unmade)
          std::get<0>(rank) += 2 * (bytes - unmade);
      }
      if (canBe && hasReason && (!best || rank < *best)) {
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
  Distribution to = wanted.normal(mesh, typeOf(value));
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

bool Sharder::nests(Value value, int64_t dim, const Distribution &outer,
                    const Distribution &inner) const {
  RankedTensorType one = pieceOf(value, outer), other = pieceOf(value, inner);
  return one && other &&
         one.getDimSize(unsigned(dim)) * outer.pieces(mesh, dim) ==
             other.getDimSize(unsigned(dim)) * inner.pieces(mesh, dim);
}

Value Sharder::resized(Value made, int64_t dim, int64_t size) {
  auto type = cast<RankedTensorType>(made.getType());
  int64_t more = size - type.getDimSize(unsigned(dim));
  if (more == 0)
    return made;
  auto at = NameLoc::get(builder.getStringAttr("padding for " + reason), loc);
  SmallVector<int64_t> zeros(size_t(type.getRank()), 0), high = zeros;
  if (more > 0) {
    high[size_t(dim)] = more;
    return PadOp::create(
        builder, at, made, zeros, high, zeros,
        cast<TypedAttr>(builder.getZeroAttr(type.getElementType())));
  }
  SmallVector<int64_t> limits(type.getShape());
  limits[size_t(dim)] = size;
  return SliceOp::create(builder, at, made, zeros, limits,
                         SmallVector<int64_t>(size_t(type.getRank()), 1));
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
    Distribution where = now.normal(mesh, typeOf(value));
    for (const Version &version : versions[value])
      if (version.where == where && version.pass == gatheredIn)
        return;
    versions[value].push_back({where, made, gatheredIn});
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
  auto sizeOf = [&](const Distribution &where, int64_t dim) {
    return pieceOf(value, where).getDimSize(unsigned(dim));
  };
  auto withSize = [](Type of, int64_t dim, int64_t size) {
    auto type = cast<RankedTensorType>(of);
    SmallVector<int64_t> shape(type.getShape());
    shape[size_t(dim)] = size;
    return type.clone(shape);
  };
  // The axes that cut a dimension, but for `but`.
  auto before = [](SmallVector<unsigned> axes, unsigned but) {
    llvm::erase_if(axes, [&](unsigned axis) { return axis >= but; });
    return axes;
  };
  // True if `axis` can cut `dim` further than it is, as in `to`, where it is.
  auto cutsFurther = [&](int64_t dim, unsigned axis) {
    Distribution after = now;
    after[axis] = to[axis];
    return now.axesOf(dim) == before(to.axesOf(dim), axis) &&
           (now.axesOf(dim).empty() ? bool(pieceOf(value, after))
                                    : nests(value, dim, now, after));
  };
  // Sums first: what is left of them is less.
  for (unsigned axis = 0; axis < mesh.size(); ++axis) {
    if (!now[axis].isPartial() || !to[axis].isCut())
      continue;
    int64_t dim = to[axis].dim;
    if (!cutsFurther(dim, axis))
      continue;
    CollectiveReduce reduce = now[axis].reduce;
    now[axis] = to[axis];
    int64_t size = sizeOf(now, dim);
    made = resized(made, dim, size * mesh.ranksOf(axis));
    made = ReduceScatterOp::create(
        builder, at("reduce_scatter"), withSize(made.getType(), dim, size),
        reduce, made, static_cast<uint64_t>(dim), names({axis}), number,
        BufferAttr(), ArrayAttr());
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
    made = AllReduceOp::create(builder, at("all_reduce"), made.getType(),
                               reduce, made, names(axes), number, BufferAttr(),
                               ArrayAttr());
    ++this->made;
    remember();
  }
  for (unsigned axis = 0; axis < mesh.size(); ++axis) {
    if (!now[axis].isCut() || !to[axis].isCut() ||
        now[axis].dim == to[axis].dim)
      continue;
    int64_t concat = now[axis].dim, split = to[axis].dim;
    Distribution after = now;
    after[axis] = Placement::whole();
    bool joins =
        after.axesOf(concat).empty() || nests(value, concat, after, now);
    if (now.axesOf(concat).back() != axis || !joins ||
        !cutsFurther(split, axis))
      continue;
    int64_t joined = sizeOf(now, concat) * mesh.ranksOf(axis);
    now[axis] = to[axis];
    int64_t size = sizeOf(now, split);
    made = resized(made, split, size * mesh.ranksOf(axis));
    made = AllToAllOp::create(
        builder, at("all_to_all"),
        withSize(withSize(made.getType(), split, size), concat, joined), made,
        static_cast<uint64_t>(split), static_cast<uint64_t>(concat),
        names({axis}), number, BufferAttr(), ArrayAttr());
    made = resized(made, concat, sizeOf(now, concat));
    ++this->made;
  }
  int64_t rank = typeOf(value).getRank();
  // How many of the axes that cut `dim` stay. None, if what they cut is not
  // what they cut together with the others.
  auto common = [&](int64_t dim) -> size_t {
    SmallVector<unsigned> has = now.axesOf(dim), wants = to.axesOf(dim);
    size_t same = 0;
    while (same < has.size() && same < wants.size() &&
           has[same] == wants[same] && now[has[same]] == to[has[same]])
      ++same;
    Distribution outer = now;
    for (unsigned axis : llvm::drop_begin(has, same))
      outer[axis] = Placement::whole();
    bool areNested = (same == has.size() || nests(value, dim, outer, now)) &&
                     (same == wants.size() || nests(value, dim, outer, to));
    return areNested ? same : 0;
  };
  for (int64_t dim = 0; dim < rank; ++dim) {
    SmallVector<unsigned> axes = now.axesOf(dim);
    axes.erase(axes.begin(), axes.begin() + long(common(dim)));
    if (axes.empty())
      continue;
    int64_t joined = sizeOf(now, dim);
    for (unsigned axis : axes) {
      joined *= mesh.ranksOf(axis);
      now[axis] = Placement::whole();
    }
    made = AllGatherOp::create(builder, at("all_gather"),
                               withSize(made.getType(), dim, joined), made,
                               static_cast<uint64_t>(dim), names(axes), number,
                               BufferAttr(), ArrayAttr());
    made = resized(made, dim, sizeOf(now, dim));
    ++this->made;
    remember();
  }
  for (int64_t dim = 0; dim < rank; ++dim) {
    SmallVector<unsigned> axes = to.axesOf(dim);
    axes.erase(axes.begin(), axes.begin() + long(common(dim)));
    if (axes.empty())
      continue;
    int64_t pieces = 1;
    for (unsigned axis : axes) {
      pieces *= mesh.ranksOf(axis);
      now[axis] = to[axis];
    }
    int64_t size = sizeOf(now, dim);
    made = resized(made, dim, size * pieces);
    made = RankSliceOp::create(builder, at("piece"),
                               withSize(made.getType(), dim, size), made,
                               static_cast<uint64_t>(dim), names(axes), number,
                               BufferAttr(), ArrayAttr());
  }
  remember();
  return made;
}
