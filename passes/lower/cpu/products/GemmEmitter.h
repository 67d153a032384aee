//===- GemmEmitter.h - the emission of an item of a product ---------------===//
//
// Gemm.cpp cuts an item into panels, packed blocks and rows of tiles;
// GemmTiles.cpp multiplies and finishes a tile.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_PRODUCTS_GEMMEMITTER_H
#define TANDEM_PASSES_LOWER_CPU_PRODUCTS_GEMMEMITTER_H

#include "passes/lower/cpu/products/Gemm.h"
#include "passes/lower/cpu/products/PackedNumber.h"

namespace tandem::lower::cpu {

/// A range of k.
struct GemmRange {
  mlir::Value k0, k0End, k1, k1End;
};

/// A place in a loop over pieces.
struct GemmPiece {
  GemmRange range;
  mlir::Value number;
  mlir::Value isFirst, isLast;
};

/// The emission of one item.
class GemmEmitter {
public:
  GemmEmitter(Code &code, const Gemm &g, const GemmSchedule &s,
              Scratch &scratch);
  /// Of a part.
  GemmEmitter(Code &code, const Gemm &g, const GemmSchedule &s)
      : code(code), g(g), s(s), manySums(false), manyPanels(false) {
    assert(!s.packs && g.store && "a part has no scratch");
  }

  void emit(const GemmItem &item);
  void emitPart(const GemmPart &part);

private:
  /// The pieces of `range` with at most `k0Step` and `k1Step` of k0 and k1.
  void forEachPiece(const GemmRange &range, int64_t k0Step, int64_t k1Step,
                    llvm::function_ref<void(const GemmPiece &)> body);
  /// The rows that a panel has in scratch.
  int64_t panelRows() const { return s.k0Panel * s.k1Panel + s.lanes; }
  /// Elements of a cache line.
  int64_t lineLength() const {
    return 512 / static_cast<int64_t>(g.type.getIntOrFloatBitWidth());
  }
  void locate(GemmPanel &which, mlir::Value group, mlir::Value place);
  bool packsAhead() const { return s.packsEvery > 0 && packed.isThere(); }
  void forEachPanel(llvm::function_ref<void(mlir::Value place)> body);
  void packGroup();
  void packBlock(mlir::Value m, mlir::Value end, const GemmPiece &piece);
  void emitPanels(const GemmPiece &piece);
  void emitRows(mlir::Value m, const GemmPiece &piece);
  void emitTile(mlir::Value m, int64_t rows, int64_t columns,
                const GemmPiece &piece);
  void emitFinish(mlir::Value m);
  mlir::Value blockOfTurn(mlir::Value group, mlir::Value turn);
  /// Where an item has the sums of row m.
  mlir::Value sumsRow(mlir::Value m) {
    return code.add(code.mul(place, s.mBlock), code.sub(m, mBegin));
  }
  Code::Values emitProduct(mlir::Value m, int64_t rows, int64_t columns,
                           const GemmRange &range);
  /// A(m + i, (k0, k1 + u))
  mlir::Value factor(mlir::Value m, int64_t i, mlir::Value k0, mlir::Value k1,
                     int64_t u);
  Code::Values emitRound(mlir::Value m, int64_t rows, int64_t columns,
                         mlir::Value k0, mlir::Value k1, int64_t unroll,
                         mlir::ValueRange sums);
  void enterTile(mlir::Value m, const GemmPiece &piece);
  void emitBeside(const GemmRange &range, mlir::Value k0, mlir::Value k1);
  void fetchEnd(mlir::Value round);
  /// The mask of vector `v` of a tile with `columns` columns; null if all its
  /// lanes are columns.
  mlir::Value maskOf(int64_t v, int64_t columns) {
    int64_t active = columns - v * s.lanes;
    return active >= s.lanes ? mlir::Value()
                             : code.firstLanes(code.index(active), s.lanes);
  }

  Code &code;
  const Gemm &g;
  const GemmSchedule &s;
  GemmPanel panel, next; ///< `next` is packed beside the product
  GemmBlock block;       ///< of A, if that is packed
  /// A sum is made of several short ones; of several panels.
  bool manySums, manyPanels;
  mlir::Value sums; ///< of the item, or twice of a tile
  mlir::Value mBegin, mEnd;
  mlir::Value itemNumber;
  mlir::Value group, place; ///< of the panel
  mlir::Value packsNext;    ///< while this item runs
  PackedNumber packed;      ///< of the group of panels in scratch
  /// What a tile does beside its product: it asks for a block of A, and packs
  /// these rows of the next panel.
  mlir::Value fetchM, fetchK1, packRow, packEnd;
  mlir::Value tileNumber; ///< of the product
  /// The tile, and whether its end comes after this piece.
  mlir::Value tileM, endsTile;
};

} // namespace tandem::lower::cpu

#endif
