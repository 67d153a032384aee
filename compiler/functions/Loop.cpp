//===- Loop.cpp - the same step over a first dimension --------------------===//
#include "compiler/functions/Loop.h"
#include "compiler/functions/Windows.h"
#include "ir/Ops.h"

using namespace mlir;
using namespace tandem;

/// Written out, so many steps are still one program that fits a screen of time;
/// beyond, a loop compiles faster than it runs slower.
static constexpr int64_t kMostWritten = 8;

static SmallVector<Expr> written(Call &call, int64_t length, bool reverse,
                                 ArrayRef<Expr> carries, ArrayRef<Expr> inputs,
                                 ArrayRef<Expr> constants, LoopBody body) {
  SmallVector<Expr> state(carries);
  SmallVector<SmallVector<Value>> stacks;
  for (int64_t i = 0; i < length; ++i) {
    int64_t t = reverse ? length - 1 - i : i;
    SmallVector<Expr> slices;
    for (const Expr &input : inputs) {
      Expr slice = windows::slice(call, input, 0, t, t + 1);
      if (!slice)
        return {};
      slices.push_back(slice.reshape(input.shape().drop_front()));
    }
    LoopMade made = body({state, slices, constants});
    if (call.failed())
      return {};
    state = made.carries;
    stacks.resize(made.slices.size(), SmallVector<Value>(length));
    for (auto [stack, slice] : llvm::zip(stacks, made.slices)) {
      SmallVector<int64_t> shape = {1};
      llvm::append_range(shape, slice.shape());
      stack[t] = slice.reshape(shape);
    }
  }
  for (SmallVector<Value> &stack : stacks)
    state.push_back(stack.size() == 1 ? call.at(stack[0])
                                      : call.op("concat", stack,
                                                {call.integerAttr("dim", 0)}));
  return call.failed() ? SmallVector<Expr>() : state;
}

SmallVector<Expr> tandem::loopOver(Call &call, int64_t length, bool reverse,
                                   ArrayRef<Expr> carries,
                                   ArrayRef<Expr> inputs,
                                   ArrayRef<Expr> constants, LoopBody body) {
  if (length <= kMostWritten)
    return written(call, length, reverse, carries, inputs, constants, body);
  Region region;
  Block &block = region.emplaceBlock();
  auto arguments = [&](ArrayRef<Expr> values, bool isSlice) {
    SmallVector<Expr> made;
    for (const Expr &value : values) {
      Type type = isSlice ? RankedTensorType::get(value.shape().drop_front(),
                                                  value.type().getElementType())
                          : value.type();
      made.push_back(call.at(block.addArgument(type, call.loc)));
    }
    return made;
  };
  SmallVector<Expr> states = arguments(carries, false);
  SmallVector<Expr> slices = arguments(inputs, true);
  SmallVector<Expr> fixed = arguments(constants, false);
  SmallVector<Type> types;
  {
    OpBuilder::InsertionGuard guard(call.builder);
    call.builder.setInsertionPointToEnd(&block);
    LoopMade made = body({states, slices, fixed});
    if (call.failed())
      return {};
    SmallVector<Value> yielded;
    for (const Expr &carry : made.carries) {
      yielded.push_back(carry);
      types.push_back(carry.type());
    }
    for (const Expr &slice : made.slices) {
      yielded.push_back(slice);
      SmallVector<int64_t> shape = {length};
      llvm::append_range(shape, slice.shape());
      types.push_back(
          RankedTensorType::get(shape, slice.type().getElementType()));
    }
    YieldOp::create(call.builder, call.loc, yielded);
  }
  auto values = [](ArrayRef<Expr> list) {
    return SmallVector<Value>(list.begin(), list.end());
  };
  auto scan =
      ScanOp::create(call.builder, call.loc, types, length, Value(), reverse,
                     values(carries), values(inputs), values(constants));
  scan.getBody().takeBody(region);
  SmallVector<Expr> results;
  for (Value result : scan->getResults())
    results.push_back(call.at(result));
  return results;
}
