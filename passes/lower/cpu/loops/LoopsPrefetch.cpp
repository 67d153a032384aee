//===- LoopsPrefetch.cpp - what loop kernels prefetch ---------------------===//
#include "passes/lower/common/AnchorCode.h"
#include "passes/lower/cpu/loops/LoopEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;

/// How far ahead of what is loaded it pays to prefetch: some hundred
/// nanoseconds at the speed of memory, and the next page before the processor
/// comes to it.
static constexpr int64_t kAheadBytes = 4096;

SmallVector<LoopEmitter::Stream> LoopEmitter::streams() {
  if (said().get(ScheduleKey::Ahead, true))
    return largeReads();
  return {};
}

/// The nest's large inputs that it reads along the innermost index, and where.
SmallVector<LoopEmitter::Stream> LoopEmitter::largeReads() {
  SmallVector<Stream> streams;
  DenseSet<Value> seen;
  for (const LoopNest::Access &read : nest.reads) {
    auto input = dyn_cast<BlockArgument>(read.value);
    auto type = cast<RankedTensorType>(read.value.getType());
    if (!input || byteSize(type) < kLargeBytes || !read.place.guards.empty() ||
        nest.sizes.empty())
      continue;
    AffineExpr at = simplifyIndex(
        linearize(read.place.index, type.getShape(), b.getContext()),
        nest.sizes);
    if (coefficientOf(at, nest.sizes.size() - 1) == 1 &&
        seen.insert(input).second)
      streams.push_back(
          {input.getArgNumber(), at, elementBytes(type.getElementType())});
  }
  return streams;
}

ScheduleOverride LoopEmitter::cutAhead() {
  ScheduleOverride numbers;
  if (!largeReads().empty())
    numbers.set(ScheduleKey::Ahead, said().get(ScheduleKey::Ahead, true));
  return numbers;
}

/// Has the lines of large inputs asked for ahead: whole steps along dimension
/// `step`, in each of which the loops read `stepSize` neighbours; without such
/// a dimension, what follows.
void LoopEmitter::askAhead(std::optional<unsigned> step, int64_t stepSize) {
  body.ahead.assign(body.inputs.size(), 0);
  for (const Stream &stream : streams()) {
    int64_t &ahead = body.ahead[stream.input];
    ahead = kAheadBytes;
    if (!step)
      continue;
    std::optional<int64_t> stride = coefficientOf(stream.at, *step);
    ahead = stride.value_or(0) * stream.bytes *
            llvm::divideCeil(kAheadBytes, stepSize * stream.bytes);
  }
}

/// Asks for a part of the next row of each large input while one is worked on:
/// each level for its share, since a core has room for some dozen lines under
/// way. With each line of this one instead would be too early where the level
/// waits for its own lines.
void LoopEmitter::prefetchNextRow(Value position, unsigned level) {
  constexpr int64_t lineBytes = 64;
  SmallVector<unsigned> reduced = nest.dims(/*reduced=*/true);
  if (reduced.size() != 1)
    return;
  unsigned dim = reduced[0];
  setIndices(nest.dims(/*reduced=*/false),
             arith::AddIOp::create(b, loc, position, constant(1)));
  for (const Stream &stream : streams()) {
    int64_t perLine = lineBytes / stream.bytes;
    if (nest.sizes[dim] < 4 * perLine)
      continue;
    Value memref = lower::flatten(b, loc, body.inputs[stream.input]);
    int64_t lines = llvm::divideCeil(nest.sizes[dim], perLine);
    int64_t first = lines * level / (nest.levels + 1);
    int64_t end = lines * (level + 1) / (nest.levels + 1);
    loop(constant(first), constant(end), [&](Value line) {
      ivs[dim] = arith::MulIOp::create(b, loc, line, constant(perLine));
      elements.enter(ivs, nest.sizes);
      memref::PrefetchOp::create(b, loc, memref, elements.expand(b, stream.at),
                                 /*isWrite=*/false, /*localityHint=*/3,
                                 /*isDataCache=*/true);
    });
  }
}
