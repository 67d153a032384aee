//===- AttentionTiles.cpp - the memory of a tile of attention -------------===//
#include "passes/lower/cpu/AttentionTiles.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace tandem;
using namespace tandem::cpu;
using llvm::alignTo;
using llvm::divideCeil;

AttentionSchedule::AttentionSchedule(const AttentionIndex &index,
                                     const VectorTarget &target, bool ownsKeys)
    : own(ownsKeys ? index.attention.keys : index.attention.queries),
      others(ownsKeys ? index.attention.queries : index.attention.keys),
      lanes(target.lanes(index.compute)), registers(target.registers) {
  // A block of other rows is copied once for a tile, and used by each of its
  // vectors. With 64 rows, blocks and scores of usual heads are in the
  // first-level cache.
  constexpr int64_t tileRows = 64, blockRows = 64, enoughItems = 16;
  vectors = std::clamp<int64_t>(divideCeil(own, lanes), 1, tileRows / lanes);
  while (vectors > 1 && index.attention.batches * tiles() < enoughItems)
    vectors = divideCeil(vectors, 2);
  int64_t unit = std::lcm(lanes, scoreProduct().rows);
  block = alignTo(std::clamp<int64_t>(others, 1, blockRows), unit);
}

int64_t AttentionSchedule::tiles() const { return divideCeil(own, width()); }

int64_t AttentionSchedule::padded(int64_t columns) const {
  return alignTo(std::max<int64_t>(columns, 1), lanes);
}

/// Rounds of the innermost loops. The rows of a tile of scores are a multiple
/// of it, because in causal attention they are where a part of the sums begins
/// and ends.
static constexpr int64_t kRounds = 4;

static GemmSchedule schedule(int64_t lanes, int64_t rows, int64_t vectors) {
  GemmSchedule s;
  s.lanes = lanes;
  s.rows = rows;
  s.vectors = vectors;
  s.unroll = s.k1Block = kRounds;
  s.packs = false;
  return s;
}

GemmSchedule AttentionSchedule::scoreProduct() const {
  int64_t most = registers >= 32 ? 16 : 12;
  int64_t rows = alignTo(std::max<int64_t>(others, 1), kRounds);
  return schedule(lanes, std::min(most, rows), 1);
}

GemmSchedule AttentionSchedule::rowProduct(int64_t columns) const {
  bool many = registers >= 32;
  int64_t across = std::min<int64_t>(padded(columns) / lanes, many ? 4 : 2);
  int64_t rows = (registers - 2 - across) / across;
  return schedule(lanes, std::min<int64_t>({rows, lanes, 8}), across);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Matrices::Matrices(AnchorKernel &kernel, int64_t count, int64_t rows,
                   int64_t columns, Type element)
    : code(kernel.code), type(MemRefType::get({rows, columns}, element)),
      bytes(
          alignTo(rows * columns * (element.getIntOrFloatBitWidth() / 8), 64)),
      memory(kernel.scratch.take(kernel.code, {count * bytes},
                                 kernel.code.b.getI8Type())) {}

Value Matrices::at(Value number) const {
  return memref::ViewOp::create(code.b, code.loc, type, memory,
                                code.mul(number, bytes), ValueRange{});
}

PackedOperand::PackedOperand(AnchorKernel &kernel, const AttentionIndex &index,
                             AttentionIndex::Number number, unsigned along,
                             unsigned line)
    : operand(kernel, number, index.operand(number), index.sizes, line,
              std::nullopt, along) {
  gemm.type = index.compute;
  gemm.N = index.sizes[line];
  operand.bindB(gemm);
}

void PackedOperand::pack(Code &code, Value memref, int64_t lanes, Value from,
                         Value to, Value line, Value columns) {
  GemmPanel panel;
  panel.memref = memref;
  panel.width = cast<MemRefType>(memref.getType()).getDimSize(1);
  panel.lanes = lanes;
  panel.n = line;
  panel.columns = columns;
  panel.k0 = code.index(0);
  panel.k0End = code.index(1);
  panel.k1 = from;
  panel.k1End = to;
  gemm.pack(code, panel);
}
