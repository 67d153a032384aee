//===- GemmMma.cpp - products of tiles by the tensor cores ----------------===//
//
// mma.sync: a warp multiplies 16 rows of A by 8 columns of B, 16 k of f16 or
// bf16 or 8 k of tf32, into 4 f32 sums of each lane: (row, column), (row,
// column + 1) and the same 8 rows below, row = lane / 4, column = 2 (lane % 4).
// Factors of 2 bytes lie in shared memory as they come, along the lines or
// along k, and ldmatrix puts them, transposed or not, into the lanes that hold
// them. Its rows are 16-byte pieces, eight at a time: the layout's swizzle
// takes them from different banks. Factors of 4 bytes are read one by one; rows
// of them are padded so that 8 lines and 4 k are in 32 banks.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cuda/products/MmaCode.h"
#include "passes/lower/cuda/products/WarpTile.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

namespace {
class MmaTile final : public WarpTile {
public:
  MmaTile(ThreadCode &code, const Gemm &gemm, const GemmSchedule &schedule);
  void spill(ValueRange sums, Value tile, int64_t pitch) override;

private:
  Values fragments(const TileLayout &layout, bool isB, Value tiles, Value at,
                   Value line, int64_t k) override;
  Value multiplyAdd(ValueRange a, ValueRange b, Value sum) override;

  Type element;
};
} // namespace

MmaTile::MmaTile(ThreadCode &code, const Gemm &gemm,
                 const GemmSchedule &schedule)
    : WarpTile(code, schedule, elementBytes(gemm.element) == 4 ? 8 : 16,
               code.b.getF32Type()),
      element(gemm.element) {
  bool isWord = elementBytes(element) == 4;
  auto laidOut = [&](const GemmFactor &factor, int64_t lines) {
    TileLayout layout = layoutOf(factor, element, lines);
    layout.swizzled = !isWord;
    if (isWord)
      layout.pitch += factor.alongK ? 4 : 8;
    return layout;
  };
  a = laidOut(*gemm.a, schedule.blockM);
  b = laidOut(*gemm.b, schedule.blockN);
}

GemmTile::Values MmaTile::fragments(const TileLayout &layout, bool isB,
                                    Value tiles, Value at, Value line,
                                    int64_t k) {
  OpBuilder &b = code.b;
  Location loc = code.loc;
  Values registers;
  if (step == 8) {
    Value atLine = code.add(line, code.div(code.lane(), 4));
    Value atK = code.add(code.rem(code.lane(), 4), k);
    for (int64_t i = 0; i < 4; ++i) {
      int64_t down = (isB ? i / 2 : i % 2) * 8,
              along = (isB ? i % 2 : i / 2) * 4;
      Value position =
          layout.position(code, code.add(atLine, down), code.add(atK, along));
      Value x = memref::LoadOp::create(b, loc, tiles, code.add(at, position));
      registers.push_back(NVVM::ConvertFloatToTF32Op::create(
          b, loc, b.getI32Type(), x, NVVM::FPRoundingMode::RNA));
    }
    return registers;
  }
  // Eight lanes name the rows of each of four 8 x 8 matrices.
  Value inMatrix = code.rem(code.lane(), 8);
  Value matrix = code.div(code.lane(), 8);
  Value low = code.mul(code.rem(matrix, 2), 8);
  Value high = code.mul(code.div(matrix, 2), 8);
  Value atLine = isB ? high : low, atK = isB ? low : high;
  (layout.rowsAlongK ? atLine : atK) =
      code.add(layout.rowsAlongK ? atLine : atK, inMatrix);
  Value position =
      layout.position(code, code.add(line, atLine), code.add(atK, k));
  Value loaded = nvgpu::LdMatrixOp::create(
      b, loc, VectorType::get({4, 2}, element), tiles,
      ValueRange{code.add(at, position)}, !layout.rowsAlongK, 4);
  for (int64_t i = 0; i < 4; ++i) {
    Value x = vector::ExtractOp::create(b, loc, loaded, i);
    registers.push_back(mmaRegister(code, x));
  }
  return registers;
}

Value MmaTile::multiplyAdd(ValueRange a, ValueRange b, Value sum) {
  OpBuilder &builder = code.b;
  Location loc = code.loc;
  Values c;
  for (int64_t i = 0; i < 4; ++i)
    c.push_back(vector::ExtractOp::create(builder, loc, sum, i));
  return vector::FromElementsOp::create(builder, loc, sumType,
                                        mmaSync(code, element, a, b, c));
}

void MmaTile::spill(ValueRange values, Value tile, int64_t pitch) {
  Value row = code.add(warpRow(), code.div(code.lane(), 4));
  Value column = code.add(warpColumn(), code.mul(code.rem(code.lane(), 4), 2));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t half = 0; half < 2; ++half) {
        Value pair = vector::ExtractStridedSliceOp::create(
            code.b, code.loc, values[i * columns + j],
            ArrayRef<int64_t>{half * 2}, ArrayRef<int64_t>{2},
            ArrayRef<int64_t>{1});
        Value at = code.mul(code.add(row, i * 16 + half * 8), pitch);
        code.store(pair, tile, code.add(at, code.add(column, j * 8)));
      }
}

std::unique_ptr<GemmTile>
lower::cuda::createMmaTile(ThreadCode &code, const Gemm &gemm,
                           const GemmSchedule &schedule) {
  return std::make_unique<MmaTile>(code, gemm, schedule);
}
