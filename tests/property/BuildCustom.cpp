//===- BuildCustom.cpp - random pieces with a backward of their own -------===//
//
// The forward is one of a few functions of one or two tensors, and may read and
// write refs of the program; the backward gives its gradient (or, on purpose,
// three times that), and may read and write refs as it finds them. What it
// gives is linear in its cotangents.
//
//===----------------------------------------------------------------------===//
#include "tests/property/Builder.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::property;

namespace {

/// Builds the two regions of one custom_vjp.
class Regions {
public:
  Regions(OpBuilder &builder, ArrayRef<int64_t> shape,
          const std::array<uint32_t, 4> &choice)
      : b(builder), loc(builder.getUnknownLoc()),
        type(RankedTensorType::get(shape, builder.getF64Type())),
        choice(choice) {}

  void build(CustomVjpOp op, bool writesInForward, bool writesInBackward);

  /// Two results, of which the first is the argument itself.
  bool hasTwoResults() const { return function() == 3; }
  bool hasTwoInputs() const { return function() == 2; }
  unsigned numResults() const { return hasTwoResults() ? 2 : 1; }

private:
  unsigned function() const { return choice[0] % 4; }
  void buildForward(Block &block, bool writes);
  void buildBackward(Block &block, bool writes);
  Value splat(double number) { return ConstantOp::splat(b, loc, type, number); }
  Value mul(Value x, Value y) { return MulOp::create(b, loc, x, y); }
  Value add(Value x, Value y) { return AddOp::create(b, loc, x, y); }
  /// The value in the shape of `like`: its sum, repeated, where that differs.
  Value fit(Value value, Value like);

  OpBuilder &b;
  Location loc;
  RankedTensorType type;
  const std::array<uint32_t, 4> &choice;
  unsigned refs = 0;
};

} // namespace

Value Regions::fit(Value value, Value like) {
  auto wanted = cast<RankedTensorType>(like.getType());
  auto given = cast<RankedTensorType>(value.getType());
  if (wanted == given)
    return value;
  if (given.getRank()) {
    SmallVector<int64_t> dims;
    for (int64_t d = 0; d < given.getRank(); ++d)
      dims.push_back(d);
    value = ReduceSumOp::create(b, loc, value, dims);
  }
  return wanted.getRank()
             ? BroadcastOp::create(b, loc, value, wanted.getShape(),
                                   ArrayRef<int64_t>{})
             : value;
}

/// Yields the results, then what is saved.
void Regions::buildForward(Block &block, bool writes) {
  b.setInsertionPointToStart(&block);
  Value a = block.getArgument(0);
  SmallVector<Value> yielded;
  switch (function()) {
  case 0:
    yielded = {mul(a, splat(1.5))};
    break;
  case 1:
    yielded = {SinOp::create(b, loc, a), a};
    break;
  case 2:
    yielded = {mul(a, block.getArgument(1)), a, block.getArgument(1)};
    break;
  default:
    yielded = {a, SinOp::create(b, loc, a), a};
  }
  if (refs) {
    Value ref = block.getArguments().back();
    Value held = ReadOp::create(b, loc, ref);
    // What the ref holds goes into the result as a number alone.
    if (choice[1] % 3 == 0)
      yielded[0] = add(yielded[0], fit(held, a));
    if (writes)
      WriteOp::create(
          b, loc,
          add(mul(held,
                  ConstantOp::splat(
                      b, loc, cast<RankedTensorType>(held.getType()), 0.5)),
              fit(a, held)),
          ref);
  }
  YieldOp::create(b, loc, yielded);
}

/// Yields one gradient per input.
void Regions::buildBackward(Block &block, bool writes) {
  b.setInsertionPointToStart(&block);
  unsigned saved = function() == 0 ? 0 : function() == 2 ? 2 : 1;
  Value dy = block.getArgument(saved);
  Value before, ref;
  if (refs) {
    ref = block.getArguments().back();
    before = ReadOp::create(b, loc, ref);
  }
  if (writes) {
    Value fresh;
    switch (choice[2] % 3) {
    case 0: // gradients add up in it
      fresh = add(before, fit(dy, before));
      break;
    case 1: // depends on no cotangent
      fresh = ConstantOp::splat(b, loc,
                                cast<RankedTensorType>(before.getType()), 0.25);
      break;
    default:
      fresh = saved ? fit(block.getArgument(0), before)
                    : Value(NegOp::create(b, loc, before));
    }
    WriteOp::create(b, loc, fresh, ref);
  }
  double scale = choice[2] / 4 % 4 == 0 ? 3.0 : 1.0;
  if (scale != 1.0)
    dy = mul(dy, splat(scale));
  SmallVector<Value> gradients;
  switch (function()) {
  case 0:
    gradients = {mul(dy, splat(1.5))};
    break;
  case 1:
    gradients = {mul(dy, CosOp::create(b, loc, block.getArgument(0)))};
    break;
  case 2:
    gradients = {mul(dy, block.getArgument(1)), mul(dy, block.getArgument(0))};
    break;
  default:
    gradients = {add(dy, mul(block.getArgument(saved + 1),
                             CosOp::create(b, loc, block.getArgument(0))))};
  }
  // A read before the write sees the old value.
  if (refs && choice[2] / 16 % 4 == 0)
    gradients[0] = mul(gradients[0], fit(before, gradients[0]));
  if (choice[2] / 64 % 8 == 0)
    gradients.back() = UndefinedOp::create(b, loc, type);
  YieldOp::create(b, loc, gradients);
}

void Regions::build(CustomVjpOp op, bool writesInForward,
                    bool writesInBackward) {
  refs = op.getRefs().size();
  OpBuilder::InsertionGuard guard(b);
  auto addBlock = [&](Region &region, ArrayRef<Type> types) -> Block & {
    Block &block = region.emplaceBlock();
    block.addArguments(types, SmallVector<Location>(types.size(), loc));
    return block;
  };
  SmallVector<Type> types(op->getOperandTypes());
  buildForward(addBlock(op.getForward(), types), writesInForward);
  unsigned saved = function() == 0 ? 0 : function() == 2 ? 2 : 1;
  types.assign(saved + numResults(), type);
  llvm::append_range(types, op.getRefs().getTypes());
  buildBackward(addBlock(op.getBackward(), types), writesInBackward);
}

void ProgramBuilder::custom(const Choice &choice) {
  Value first = tensor(choice[3]);
  ArrayRef<int64_t> shape = tensorType(first).getShape();
  Regions regions(builder, shape, choice);
  SmallVector<Value> inputs = {first}, given;
  if (regions.hasTwoInputs())
    inputs.push_back(tensorOf(shape, choice[3] / 16));
  // Storage of an argument, seen without overlaps.
  std::vector<Value> candidates;
  for (const Ref &ref : refs)
    if (ref.root >= 0 && !ref.overlaps)
      candidates.push_back(ref.value);
  if (choice[1] % 4 != 1 && !candidates.empty())
    given.push_back(candidates[choice[1] / 4 % candidates.size()]);
  bool writesInForward = !given.empty() && choice[1] / 256 % 4 == 0;
  bool writesInBackward = !given.empty() && choice[1] / 256 % 4 > 1;

  OperationState state(builder.getUnknownLoc(),
                       CustomVjpOp::getOperationName());
  auto &properties = state.getOrAddProperties<CustomVjpOp::Properties>();
  properties.setName(builder.getStringAttr("f"));
  properties.operandSegmentSizes = {static_cast<int32_t>(inputs.size()),
                                    static_cast<int32_t>(given.size())};
  SmallVector<int64_t> zero = {0};
  properties.setWrites(builder.getDenseI64ArrayAttr(
      writesInForward ? ArrayRef<int64_t>(zero) : ArrayRef<int64_t>()));
  properties.setBackwardWrites(builder.getDenseI64ArrayAttr(
      writesInBackward ? ArrayRef<int64_t>(zero) : ArrayRef<int64_t>()));
  properties.setUnchecked(builder.getDenseI64ArrayAttr({}));
  properties.setCotangentWrites(builder.getDenseI64ArrayAttr({}));
  if (isNoGrad)
    state.addAttribute(kNoGradAttr, builder.getUnitAttr());
  state.addOperands(inputs);
  state.addOperands(given);
  state.addTypes(SmallVector<Type>(regions.numResults(), tensorType(first)));
  state.addRegion();
  state.addRegion();
  auto op = cast<CustomVjpOp>(builder.create(state));
  regions.build(op, writesInForward, writesInBackward);
  llvm::append_range(tensors, op.getResults());
}
