//===- Oracle.cpp - what a program must do, on real storage ---------------===//
#include "tests/property/Oracle.h"

#include "ir/Signature.h"
#include "ir/reference/Arguments.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace tandem;
using namespace tandem::property;

static Array iota(ArrayRef<int64_t> shape) {
  Array result(shape);
  std::iota(result.data.begin(), result.data.end(), 0.0);
  return result;
}

static ArrayRef<int64_t> shapeOf(Value value) {
  if (auto ref = dyn_cast<RefType>(value.getType()))
    return ref.getShape();
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// Which storages there are. Of inputs that show one element the last is its
/// leaf; but where another argument is the storage, that one is.
void Oracle::bindArguments(const std::vector<Array> &arguments) {
  reference::Call call;
  call.arguments.assign(arguments.begin(), arguments.end());
  reference::Outcome outcome;
  auto bound = reference::bindRefs(func, call, outcome);
  if (failed(bound))
    llvm::report_fatal_error("the arguments of a program disagree");
  for (const auto &memory : outcome.storages) {
    storages.emplace_back();
    held.push_back(memory->elements);
    for (double x : memory->elements)
      storages.back().data.push_back({x, -1});
  }
  numArgumentStorages = static_cast<int>(storages.size());
  for (auto [i, ref] : llvm::enumerate(*bound)) {
    RoleAttr role = roleOfArgument(func, i);
    auto index = static_cast<int>(llvm::find(outcome.storages, ref->storage) -
                                  outcome.storages.begin());
    RealRef real{index, ref->positions, false, static_cast<int>(i)};
    atCall.push_back(real);
    refs.insert({func.getArgument(i), real});
    leaves.push_back(-1);
    bool isOfArgument = role.has("alias") &&
                        ref->storage->name != role.getName() &&
                        findValue(func, ref->storage->name);
    if (!role.has("requires_grad") || isOfArgument)
      continue;
    storages[index].depends |= uint64_t(1) << i;
    for (double position : real.positions.data) {
      int node = tape.leaf();
      if (leaves.back() < 0)
        leaves.back() = node;
      storages[index].data[static_cast<size_t>(position)].node = node;
    }
  }
}

Array Numbers::values() const {
  Array result(shape);
  for (auto [to, from] : llvm::zip_equal(result.data, data))
    to = from.value;
  return result;
}

bool Oracle::Output::isDifferentiable() const {
  return llvm::any_of(numbers, [](Number x) { return x.node >= 0; });
}

Oracle::Oracle(func::FuncOp func, const std::vector<Array> &arguments)
    : func(func) {
  bindArguments(arguments);
  atEnd = atCall;
  handleWrites.resize(arguments.size());
  Block &body = func.getBody().front();
  run(body, /*isPlain=*/false);
  for (Value value : body.getTerminator()->getOperands()) {
    Output output;
    Numbers numbers;
    if (isa<RefType>(value.getType())) {
      output.ref = refs.find(value)->second;
      numbers = read(*output.ref, false);
    } else {
      numbers = tensors.find(value)->second;
    }
    output.value = numbers.values();
    output.numbers = numbers.data;
    output.depends = numbers.depends;
    outputs.push_back(output);
  }
  findOutputOverlaps();
  findStrides();
  for (unsigned i : leafWritten)
    (isSameLeaf(i) ? allowed : required).insert(Mistake::LeafWritten);
  for (unsigned i = 0; i < arguments.size(); ++i) {
    bool isMoved = atEnd[i].storage != atCall[i].storage ||
                   atEnd[i].positions.shape != atCall[i].positions.shape ||
                   atEnd[i].positions.data != atCall[i].positions.data;
    if (roleOfArgument(func, i).getKind() != RoleKind::Input)
      (isMoved ? required : allowed).insert(Mistake::ModelHandle);
    if (handleWrites[i].empty() ||
        !roleOfArgument(func, i).has("requires_grad"))
      continue;
    if (atEnd[i].storage == atCall[i].storage) {
      // Another part of the storage that inputs share.
      if (isMoved)
        allowed.insert(Mistake::SetAndWrite);
      continue;
    }
    bool isCertain = handleWrites[i].count(false);
    (isCertain ? required : allowed).insert(Mistake::SetAndWrite);
  }
}

/// Outputs of one storage that no argument shows, of which neither shows all
/// that the other does.
void Oracle::findOutputOverlaps() {
  for (const Output &a : outputs)
    for (const Output &b : outputs)
      if (&a < &b && a.ref && b.ref && a.ref->storage == b.ref->storage &&
          a.ref->storage >= numArgumentStorages)
        allowed.insert(Mistake::OutputOverlap);
}

/// True if the elements are at equal distances along each dimension.
static bool hasStrides(const Array &positions) {
  bool result = true;
  reference::forEachIndex(positions.shape, [&](ArrayRef<int64_t> index) {
    double position = positions[0];
    for (size_t d = 0; d < index.size(); ++d) {
      SmallVector<int64_t> unit(index.size(), 0);
      if (index[d] == 0)
        continue;
      unit[d] = 1;
      position +=
          static_cast<double>(index[d]) * (positions(unit) - positions[0]);
    }
    result &= position == positions(index);
  });
  return result;
}

/// What a call hands back has strides. On the way to it there may be something
/// that has none.
void Oracle::findStrides() {
  // The strides of declared aliases are those of the call.
  std::set<int> shared;
  for (unsigned i = 0; i < atCall.size(); ++i)
    if (roleOfArgument(func, i).has("alias"))
      shared.insert(atCall[i].storage);
  auto look = [&](const RealRef &ref) {
    bool isArgument =
        ref.storage < numArgumentStorages && !shared.count(ref.storage);
    bool isDue = isArgument && !hasStrides(ref.positions);
    (isDue ? required : allowed).insert(Mistake::NoStrides);
  };
  for (const Output &output : outputs)
    if (output.ref)
      look(*output.ref);
  for (const RealRef &ref : atEnd)
    look(ref);
}

void Oracle::run(Block &block, bool isPlain) {
  for (Operation &op : block.without_terminator())
    run(&op, isPlain);
}

Numbers Oracle::read(const RealRef &ref, bool isHidden) const {
  const RealStorage &storage = storages[ref.storage];
  isHidden |= ref.isHidden;
  Numbers result{ref.positions.shape, {}, isHidden ? 0 : storage.depends};
  for (double position : ref.positions.data) {
    Number x = storage.data[static_cast<size_t>(position)];
    result.data.push_back(isHidden ? Number{x.value, -1} : x);
  }
  return result;
}

void Oracle::write(WriteOp op, bool isHidden) {
  const RealRef &ref = refs.find(op.getRef())->second;
  const Numbers &value = tensors.find(op.getValue())->second;
  RealStorage &storage = storages[ref.storage];
  std::set<double> positions(ref.positions.data.begin(),
                             ref.positions.data.end());
  // Writing what is there, as it was read or as it was written before, changes
  // nothing, whatever it goes through.
  bool mayCancel =
      op.getValue().getDefiningOp<ReadOp>() != nullptr ||
      llvm::count_if(op.getValue().getUsers(), llvm::IsaPred<WriteOp>) > 1;
  auto mistake = [&](Mistake kind) {
    (mayCancel ? allowed : required).insert(kind);
  };
  if (positions.size() < ref.positions.data.size())
    return mistake(Mistake::Overlap);
  isHidden |= ref.isHidden;
  storage.isWritten = true;
  if (!isHidden) {
    storage.isVisiblyWritten = true;
    for (unsigned i = 0; i < atCall.size(); ++i) {
      RoleAttr role = roleOfArgument(func, i);
      if (atCall[i].storage != ref.storage)
        continue;
      if (role.getKind() == RoleKind::Param && role.has("requires_grad"))
        mayCancel ? (void)allowed.insert(Mistake::LeafWritten)
                  : (void)leafWritten.insert(i);
    }
    if (ref.handle >= 0)
      handleWrites[ref.handle].insert(mayCancel);
    storage.depends |= value.depends;
  }
  for (auto [position, x] : llvm::zip_equal(ref.positions.data, value.data)) {
    Number &element = storage.data[static_cast<size_t>(position)];
    largest = std::max(largest, std::abs(x.value));
    element.value = x.value;
    if (!isHidden)
      element.node = x.node;
  }
}

/// Of a tensor or a ref: the op's own reference, applied to positions.
void Oracle::makeView(Operation *op, bool isHidden) {
  Value source = cast<RefViewOpInterface>(op).getViewSource();
  Value result = op->getResult(0);
  isHidden |= isa<DetachOp>(op);
  Array from = iota(shapeOf(source)), to(shapeOf(result));
  const Array *in = &from;
  cast<ReferenceOpInterface>(op).evaluate(in, to);
  if (isa<RefType>(result.getType())) {
    RealRef ref = refs.find(source)->second;
    Array positions(shapeOf(result));
    for (int64_t i = 0; i < to.size(); ++i)
      positions[i] = ref.positions[static_cast<int64_t>(to[i])];
    ref.positions = positions;
    ref.isHidden |= isHidden;
    refs.insert_or_assign(result, ref);
    return;
  }
  const Numbers &numbers = tensors.find(source)->second;
  Numbers made{shapeOf(result).vec(), {}, isHidden ? 0 : numbers.depends};
  for (double i : to.data) {
    Number x = numbers.data[static_cast<size_t>(i)];
    made.data.push_back(isHidden ? Number{x.value, -1} : x);
  }
  tensors.insert_or_assign(result, made);
}

std::optional<Number> Oracle::elementwise(Operation *op, ArrayRef<Number> x) {
  double a = x[0].value, b = x.size() > 1 ? x[1].value : 0;
  if (isa<AddOp>(op))
    return tape.number(a + b, x[0], 1, x[1], 1);
  if (isa<SubOp>(op))
    return tape.number(a - b, x[0], 1, x[1], -1);
  if (isa<MulOp>(op))
    return tape.number(a * b, x[0], b, x[1], a);
  if (isa<NegOp>(op))
    return tape.number(-a, x[0], -1);
  if (isa<SinOp>(op))
    return tape.number(std::sin(a), x[0], std::cos(a));
  if (isa<CosOp>(op))
    return tape.number(std::cos(a), x[0], -std::sin(a));
  return std::nullopt;
}

/// The op's own reference, on these numbers.
static Array evaluate(Operation *op, ArrayRef<Array> operands) {
  SmallVector<const Array *> in;
  for (const Array &operand : operands)
    in.push_back(&operand);
  Array result(shapeOf(op->getResult(0)));
  cast<ReferenceOpInterface>(op).evaluate(in, result);
  return result;
}

/// Ops of tensors; false for an op that is none of those that are generated.
bool Oracle::runTensorOp(Operation *op, bool isHidden) {
  Value result = op->getResult(0);
  Numbers made{shapeOf(result).vec(), {}};
  if (isa<ConstantOp>(op)) {
    Array value(shapeOf(result));
    cast<ReferenceOpInterface>(op).evaluate({}, value);
    for (double x : value.data)
      made.data.push_back({x, -1});
    tensors.insert_or_assign(result, made);
    return true;
  }
  SmallVector<Numbers> in;
  for (Value operand : op->getOperands())
    in.push_back(tensors.find(operand)->second);
  for (Numbers &numbers : in) {
    made.depends |= isHidden ? 0 : numbers.depends;
    for (Number &x : numbers.data)
      if (isHidden)
        x.node = -1;
  }
  if (isa<CompareOp, CastOp>(op)) {
    // Whole numbers: nothing is differentiated through them.
    SmallVector<Array> operands;
    for (const Numbers &numbers : in)
      operands.push_back(numbers.values());
    made.depends = 0;
    for (double x : evaluate(op, operands).data)
      made.data.push_back({x, -1});
  } else if (isa<DropoutOp>(op)) {
    Array ones(in[0].shape);
    llvm::fill(ones.data, 1.0);
    Array factors = evaluate(op, {ones, in[1].values()});
    for (auto [x, factor] : llvm::zip_equal(in[0].data, factors.data))
      made.data.push_back(tape.number(x.value * factor, x, factor));
  } else if (auto sum = dyn_cast<ReduceSumOp>(op)) {
    made.data.resize(Array(made.shape).size());
    int64_t from = 0;
    reference::forEachIndex(in[0].shape, [&](ArrayRef<int64_t> index) {
      SmallVector<int64_t> kept;
      for (auto [d, i] : llvm::enumerate(index))
        if (!llvm::is_contained(sum.getDims(), static_cast<int64_t>(d)))
          kept.push_back(i);
      Number &total = made.data[Array(made.shape).at(kept)];
      Number x = in[0].data[from++];
      total = tape.number(total.value + x.value, total, 1, x, 1);
    });
  } else {
    for (size_t i = 0; i < in[0].data.size(); ++i) {
      SmallVector<Number> x;
      for (const Numbers &numbers : in)
        x.push_back(numbers.data[i]);
      auto y = elementwise(op, x);
      if (!y)
        return false;
      made.data.push_back(*y);
    }
  }
  for (Number x : made.data)
    largest = std::max(largest, std::abs(x.value));
  tensors.insert_or_assign(result, made);
  return true;
}

void Oracle::run(Operation *op, bool isPlain) {
  bool isHidden = isPlain || op->hasAttr(kNoGradAttr);
  if (auto make = dyn_cast<MakeRefOp>(op)) {
    Numbers value = tensors.find(make.getValue())->second;
    RealStorage storage{value.data, isHidden ? 0 : value.depends};
    for (Number &x : storage.data)
      if (isHidden)
        x.node = -1;
    storages.push_back(storage);
    refs.insert_or_assign(
        make.getRef(),
        RealRef{static_cast<int>(storages.size()) - 1, iota(value.shape)});
  } else if (auto readOp = dyn_cast<ReadOp>(op)) {
    tensors.insert_or_assign(
        readOp.getValue(), read(refs.find(readOp.getRef())->second, isHidden));
  } else if (auto writeOp = dyn_cast<WriteOp>(op)) {
    write(writeOp, isHidden);
  } else if (auto transpose = dyn_cast<TransposeHandleOp>(op)) {
    RealRef ref = refs.find(transpose.getX())->second;
    Array positions(shapeOf(transpose.getY()));
    int64_t i = 0;
    reference::forEachIndex(positions.shape, [&](ArrayRef<int64_t> index) {
      SmallVector<int64_t> source(index);
      std::swap(source[transpose.getA()], source[transpose.getB()]);
      positions[i++] = ref.positions(source);
    });
    ref.positions = positions;
    refs.insert_or_assign(transpose.getY(), ref);
    if (ref.handle >= 0)
      atEnd[ref.handle] = ref;
  } else if (auto set = dyn_cast<SetHandleOp>(op)) {
    int handle = refs.find(set.getX())->second.handle;
    RealRef ref = refs.find(set.getY())->second;
    ref.handle = handle;
    refs.insert_or_assign(set.getZ(), ref);
    if (handle >= 0)
      atEnd[handle] = ref;
  } else if (auto custom = dyn_cast<CustomVjpOp>(op)) {
    runCustom(custom, isPlain);
  } else if (isa<UndefinedOp>(op)) {
    Numbers none;
    none.isUndefined = true;
    tensors.insert_or_assign(op->getResult(0), none);
  } else if (isa<RefViewOpInterface>(op)) {
    makeView(op, isHidden);
  } else if (!runTensorOp(op, isHidden)) {
    llvm::report_fatal_error("the oracle does not know '" +
                             op->getName().getStringRef() + "'");
  }
}

Numbers Oracle::contents(unsigned i) const { return read(atCall[i], false); }

bool Oracle::isSameLeaf(unsigned i) const {
  for (auto [k, x] : llvm::enumerate(contents(i).data))
    if (leaves[i] < 0 || x.node != leaves[i] + static_cast<int>(k))
      return false;
  return true;
}

bool Oracle::isWritten(unsigned i) const {
  return storages[atCall[i].storage].isWritten;
}

bool Oracle::isVisiblyWritten(unsigned i) const {
  return storages[atCall[i].storage].isVisiblyWritten;
}
