//===- GemmBytes.cpp - products of tiles of 8 bits by the tensor cores ----===//
//
// mma.sync.m16n8k32: a warp multiplies 16 rows of A by 8 columns of B, 32 k of
// e4m3, e5m2, s8 or u8, into 4 sums of each lane, which lie as those of wider
// types do (GemmMma.cpp). With group = lane / 4 and t = lane % 4, a register
// has 4 k of one line: 4 t to 4 t + 3 of line `group`, and so on.
//
// Of a factor whose rows are along k ldmatrix loads just that. It turns pairs
// of bytes, not bytes: of rows along the lines a lane gets two lines at two k,
//
//   line 2 group at k, line 2 group + 1 at k, the same at k + 1,
//
// and of two such registers, whose rows are chosen so, a permutation of bytes
// makes 4 k of the even line, and another one those of the odd line. So lines
// are in another order in the registers than in the tile: `spill` knows it.
// Eight rows that are loaded at once differ modulo 8, for the swizzle.
//
// A product of floats begins at zeros each time, and its sums are added in f32:
// what cores leave out below the largest of 32 terms does not grow with k.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cuda/products/MmaCode.h"
#include "passes/lower/cuda/products/WarpTile.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

namespace {
class ByteTile final : public WarpTile {
public:
  ByteTile(ThreadCode &code, const Gemm &gemm, const GemmSchedule &schedule);
  void spill(ValueRange sums, Value tile, int64_t pitch) override;
  Values begin() override;
  Values end(ValueRange sums) override;

private:
  Values fragments(const TileLayout &layout, bool isB, Value tiles, Value at,
                   Value line, int64_t k) override;
  Values turned(const TileLayout &layout, bool isB, Value tiles, Value at,
                Value line, int64_t k);
  /// Four matrices of 8 rows of 16 bytes, of which the lane names one.
  Values load(Value tiles, Value position, bool transpose);
  Value multiplyAdd(ValueRange a, ValueRange b, Value sum) override;

  Value bits(int64_t value) {
    return code.number(code.b.getI32Type(), static_cast<double>(value));
  }

  bool isFloat;
  Type accumulator;      ///< f32 or i32
  std::string intrinsic; ///< of the mma
};
} // namespace

static std::string nameOf(Type type) {
  if (isa<Float8E4M3FNType>(type))
    return "e4m3";
  if (isa<Float8E5M2Type>(type))
    return "e5m2";
  return type.isUnsignedInteger() ? "u8" : "s8";
}

ByteTile::ByteTile(ThreadCode &code, const Gemm &gemm,
                   const GemmSchedule &schedule)
    : WarpTile(code, schedule, 32, gemm.type),
      isFloat(isa<FloatType>(gemm.a->format)) {
  a = layoutOf(*gemm.a, code.b.getI8Type(), schedule.blockM);
  b = layoutOf(*gemm.b, code.b.getI8Type(), schedule.blockN);
  a.swizzled = b.swizzled = true;
  accumulator = isFloat ? Type(code.b.getF32Type()) : code.b.getI32Type();
  // NVVM's dialect has no f8 in its mma.
  std::string ofA = nameOf(gemm.a->format), ofB = nameOf(gemm.b->format);
  intrinsic = "llvm.nvvm.mma.m16n8k32.row.col.";
  if (isFloat)
    intrinsic += "f32." + ofA + "." + ofB + ".f32";
  else
    intrinsic += ofA == ofB ? ofA : ofA + "." + ofB;
}

GemmTile::Values ByteTile::begin() {
  return Values(sums, code.zeros(accumulator, 4));
}

GemmTile::Values ByteTile::end(ValueRange values) {
  if (isFloat)
    return Values(values);
  return llvm::map_to_vector(values, [&](Value x) -> Value {
    return arith::SIToFPOp::create(code.b, code.loc, sumType, x);
  });
}

//===----------------------------------------------------------------------===//
// Registers of factors
//===----------------------------------------------------------------------===//

GemmTile::Values ByteTile::load(Value tiles, Value position, bool transpose) {
  OpBuilder &b = code.b;
  Location loc = code.loc;
  Type word = b.getI64Type(), one = b.getI32Type();
  auto shared = LLVM::LLVMPointerType::get(b.getContext(), 3);
  Value address = arith::IndexCastOp::create(
      b, loc, word,
      memref::ExtractAlignedPointerAsIndexOp::create(b, loc, tiles));
  Value base = LLVM::IntToPtrOp::create(b, loc, shared, address);
  Value offset = arith::IndexCastOp::create(b, loc, word, position);
  Value at = LLVM::GEPOp::create(b, loc, shared, b.getI8Type(), base,
                                 ValueRange{offset});
  auto four =
      LLVM::LLVMStructType::getLiteral(b.getContext(), {one, one, one, one});
  auto layout = transpose ? NVVM::MMALayout::col : NVVM::MMALayout::row;
  auto shape = NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8);
  Value loaded = NVVM::LdMatrixOp::create(b, loc, four, at, uint32_t(4), layout,
                                          shape, NVVM::LdStMatrixEltType::B16);
  Values registers;
  for (int64_t i = 0; i < 4; ++i)
    registers.push_back(LLVM::ExtractValueOp::create(b, loc, loaded, i));
  return registers;
}

GemmTile::Values ByteTile::fragments(const TileLayout &layout, bool isB,
                                     Value tiles, Value at, Value line,
                                     int64_t k) {
  if (!layout.rowsAlongK)
    return turned(layout, isB, tiles, at, line, k);
  Value matrix = code.div(code.lane(), 8);
  Value low = code.rem(matrix, 2), high = code.div(matrix, 2);
  Value atLine =
      code.add(code.mul(isB ? high : low, 8), code.rem(code.lane(), 8));
  Value atK = code.mul(isB ? low : high, 16);
  Value position =
      layout.position(code, code.add(line, atLine), code.add(atK, k));
  return load(tiles, code.add(at, position), /*transpose=*/false);
}

GemmTile::Values ByteTile::turned(const TileLayout &layout, bool isB,
                                  Value tiles, Value at, Value line,
                                  int64_t k) {
  OpBuilder &b = code.b;
  Value matrix = code.div(code.lane(), 8), inMatrix = code.rem(code.lane(), 8);
  // Rows 2 t and 2 t + 1 of a matrix come to the lanes t of all groups. The
  // first matrix has the lower two of their four k where t is 0 or 1, and the
  // upper two else; the second one has the others.
  Value t = code.div(inMatrix, 2);
  Value upper = b.createOrFold<arith::XOrIOp>(code.loc, code.rem(matrix, 2),
                                              code.div(t, 2));
  Value atK = code.add(code.mul(code.div(matrix, 2), 16),
                       code.add(code.mul(t, 4), code.mul(upper, 2)));
  atK = code.add(atK, code.rem(inMatrix, 2));
  Value position = layout.position(code, line, code.add(atK, k));
  Values pairs = load(tiles, code.add(at, position), /*transpose=*/true);
  // A digit of a selector is the number of a byte of both registers.
  Value lowerFirst = code.less(code.rem(code.lane(), 4), code.index(2));
  Value even = code.select(lowerFirst, bits(0x6420), bits(0x2064));
  Value odd = code.select(lowerFirst, bits(0x7531), bits(0x3175));
  auto permuted = [&](int64_t half, Value selector) -> Value {
    return NVVM::PermuteOp::create(b, code.loc, b.getI32Type(), pairs[2 * half],
                                   pairs[2 * half + 1], selector,
                                   NVVM::PermuteMode::DEFAULT);
  };
  Values registers{permuted(0, even), permuted(0, odd), permuted(1, even),
                   permuted(1, odd)};
  if (isB)
    std::swap(registers[1], registers[2]);
  return registers;
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

Value ByteTile::multiplyAdd(ValueRange a, ValueRange b, Value sum) {
  OpBuilder &builder = code.b;
  Location loc = code.loc;
  Values operands(a), results;
  llvm::append_range(operands, b);
  for (int64_t i = 0; i < 4; ++i)
    operands.push_back(
        isFloat ? code.number(accumulator, 0)
                : Value(vector::ExtractOp::create(builder, loc, sum, i)));
  auto type = LLVM::LLVMStructType::getLiteral(
      builder.getContext(), SmallVector<Type>(4, accumulator));
  Value product =
      LLVM::CallIntrinsicOp::create(builder, loc, type,
                                    builder.getStringAttr(intrinsic), operands)
          .getResults();
  for (int64_t i = 0; i < 4; ++i)
    results.push_back(LLVM::ExtractValueOp::create(builder, loc, product, i));
  Value made = vector::FromElementsOp::create(
      builder, loc, cast<VectorType>(sum.getType()), results);
  return isFloat ? Value(arith::AddFOp::create(builder, loc, sum, made)) : made;
}

void ByteTile::spill(ValueRange values, Value tile, int64_t pitch) {
  Value group = code.div(code.lane(), 4), t = code.rem(code.lane(), 4);
  // Two of four sums: those of the first row, or of the second.
  auto two = [&](int64_t i, int64_t j, int64_t half) -> Value {
    return vector::ExtractStridedSliceOp::create(
        code.b, code.loc, values[i * columns + j], ArrayRef<int64_t>{half * 2},
        ArrayRef<int64_t>{2}, ArrayRef<int64_t>{1});
  };
  Value firstRow =
      code.add(warpRow(), a.rowsAlongK ? group : code.mul(group, 2));
  Value firstColumn = code.add(warpColumn(), code.mul(t, b.rowsAlongK ? 2 : 4));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t half = 0; half < 2; ++half) {
      Value row = code.add(firstRow, i * 16 + (a.rowsAlongK ? half * 8 : half));
      Value at = code.mul(row, pitch);
      for (int64_t j = 0; j < columns; j += 2) {
        Value first = two(i, j, half), second = two(i, j + 1, half);
        Value to = code.add(at, code.add(firstColumn, j * 8));
        if (b.rowsAlongK) {
          code.store(first, tile, to);
          code.store(second, tile, code.add(to, 8));
          continue;
        }
        // Even columns, and odd ones.
        code.store(
            vector::InterleaveOp::create(code.b, code.loc, first, second), tile,
            to);
      }
    }
}

std::unique_ptr<GemmTile>
lower::cuda::createByteTile(ThreadCode &code, const Gemm &gemm,
                            const GemmSchedule &schedule) {
  return std::make_unique<ByteTile>(code, gemm, schedule);
}
