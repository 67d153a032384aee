//===- Gemm.h - register-tiled matrix products ----------------------------===//
//
// The one emitter behind matrix products and convolutions:
//   C(m, n) = sum over k = (k0, k1) of A(m, k) B(k, n).
// How A and B are found and where C goes are the caller's functions. The item
// of work is a block of rows times a group of panels of columns: each panel of
// B is packed into scratch (or read in place), so are the rows of A where they
// are far apart, and tiles of `rows` x `vectors` registers of sums run down the
// block. Items of one group follow each other, and those that one thread runs
// in a row share what was packed of B. Sums are in f32 or f64; each is made in
// the order of k, of short sums, in an arithmetic that depends on shapes alone.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_PRODUCTS_GEMM_H
#define TANDEM_PASSES_LOWER_CPU_PRODUCTS_GEMM_H

#include "passes/lower/common/AnchorCode.h"
#include "passes/lower/common/ScheduleOverride.h"

#include "llvm/Support/MathExtras.h"

#include <functional>
#include <optional>

namespace tandem::lower::cpu {

using namespace lower;

/// The part of B that is packed at one time.
struct GemmPanel {
  mlir::Value memref;     ///< [rows][width] of the sums' type
  mlir::Value firstRow;   ///< of the memref that is the panel's; null: 0
  int64_t width;          ///< columns of the panel, a multiple of the lanes
  int64_t lanes;          ///< of a register
  mlir::Value n, columns; ///< first column of B, and how many are in B
  mlir::Value k0, k0End;  ///< the range of k0
  mlir::Value k1, k1End;  ///< the range of k1

  /// The row of (k0, k1): k1 runs faster.
  mlir::Value row(Code &code, mlir::Value atK0, mlir::Value atK1) const;
  /// Stores a square: from row (k0, k1) on, from `column` of the panel on,
  /// `columns` of it, one vector of k each.
  void storeTurned(Code &code, Code::Values columns, mlir::Value atK0,
                   mlir::Value atK1, mlir::Value column) const;
};

/// A block of A, packed tile by tile: the product of a tile reads on and on.
struct GemmBlock {
  mlir::Value memref; ///< rank 1, of the sums' type
  int64_t rows;       ///< of a tile
  int64_t tileLength; ///< elements from one tile to the next
  mlir::Value m, mEnd, k0, k1, k1End;

  /// Where tile `tile` has its elements of k1 + `row`.
  mlir::Value at(Code &code, mlir::Value tile, mlir::Value row) const;
  /// The elements that are written at once there: the tile's rows, and some
  /// that the next row of k overwrites.
  int64_t width() const { return llvm::PowerOf2Ceil(rows); }
};

/// What is multiplied, and where it comes from and goes.
struct Gemm {
  int64_t M = 0, N = 0, K0 = 1, K1 = 0;
  mlir::Type type; ///< of the sums: f32 or f64
  ScheduleOverride asked;

  /// A(m + i, (k0, k1 + u)) in the sums' type.
  std::function<mlir::Value(Code &, mlir::Value m, int64_t i, mlir::Value k0,
                            mlir::Value k1, int64_t u)>
      a;
  /// Writes B(k, n + j) to row k, column j of the panel, for j below `columns`.
  /// Other columns of the panel may be anything; so may `lanes` rows after the
  /// last.
  std::function<void(Code &, const GemmPanel &)> pack;
  /// Writes row k1 of the panel (k0 is one), while the products of the panel
  /// before it are computed, and asks for a later one. Null if that is not
  /// possible.
  std::function<void(Code &, const GemmPanel &, mlir::Value k1)> packRow;
  /// Asks for A(m, (k0, k1 + u)), if the processor does not foresee its being
  /// read; else null.
  std::function<void(Code &, mlir::Value m, mlir::Value k0, mlir::Value k1,
                     int64_t u)>
      fetch;
  /// Writes A(m + tile * rows + j, (k0, k1 + i)) to element j of the block's
  /// row i of that tile, if it is better read from there; else null.
  std::function<void(Code &, const GemmBlock &)> packA;
  /// Columns n, n + 1, ... of B(k0, k1 + u), `lanes` of them, or those that
  /// are on in `mask`; null if B has to be packed.
  std::function<mlir::Value(Code &, mlir::Value k0, mlir::Value k1, int64_t u,
                            mlir::Value n, int64_t lanes, mlir::Value mask)>
      b;
  /// Reading B in place is as good as reading the panel.
  bool isPacked = false;
  /// Where B is read in place, so many columns have neighbours; 0: all. Tiles
  /// are as wide or divide it.
  int64_t panelColumns = 0;

  /// Stores `sums`, C(m + i, n ...), or those that are on in `mask`. Null if
  /// elements are stored one by one.
  std::function<void(Code &, mlir::Value m, int64_t i, mlir::Value n,
                     mlir::Value sums, mlir::Value mask)>
      store;
  /// Reads what `store` has stored, if sums may wait there for more; else null.
  std::function<mlir::Value(Code &, mlir::Value m, int64_t i, mlir::Value n,
                            int64_t lanes, mlir::Value mask)>
      load;
  /// Finishes and stores one element, of column n = line * lineLength + column.
  std::function<void(Code &, mlir::Value m, mlir::Value line,
                     mlir::Value column, mlir::Value sum)>
      finish;
  int64_t lineLength = 0; ///< divides N
  /// Asks for the lines of what elements from C(m, n) on are finished with.
  /// Null if that is nothing.
  std::function<void(Code &, mlir::Value m, mlir::Value n)> fetchEnd;
  /// Asks for a part of what the next product of the launch reads, in a round
  /// of a tile: tiles have numbers from 0 to GemmSchedule::tiles. Null if that
  /// is nothing, or foreseen.
  std::function<void(Code &, mlir::Value tile, mlir::Value round)> fetchNext;
};

/// How it is cut.
struct GemmSchedule {
  int64_t lanes = 16;            ///< of a register
  int64_t rows = 6, vectors = 4; ///< of a tile
  int64_t unroll = 4;            ///< rounds of k in the innermost loop
  /// The k of a short sum, and of a panel: whole short sums.
  int64_t k0Block = 1, k1Block = 0, k0Panel = 1, k1Panel = 0;
  int64_t mBlock = 0; ///< rows of an item, a multiple of `rows`
  int64_t group = 1;  ///< panels of an item, which share its rows of A
  bool packs = true;
  bool packsA = false; ///< the rows of an item, for each short sum
  /// Of an item's rows, so many are packed at one time, a multiple of `rows`.
  int64_t rowsNear = 0;
  /// All rows of an item are multiplied for one short sum, then for the next:
  /// what they need of A is a block that stays in the cache. Else a tile is
  /// finished before the next one begins.
  bool sweeps = false;
  /// Sums of swept rows wait in the result, not in scratch.
  bool sumsInResult = false;
  /// A row of the next group's panel is packed in every so many rounds of the
  /// products of a group's last item; 0 if a group is packed at once.
  int64_t packsEvery = 0;

  int64_t width() const { return vectors * lanes; }
  int64_t mBlocks(const Gemm &g) const;
  int64_t panels(const Gemm &g) const;
  int64_t groups(const Gemm &g) const;
  int64_t items(const Gemm &g) const { return mBlocks(g) * groups(g); }
  /// The short sums of a sum, and the panels that follow each other along k.
  int64_t kBlocks(const Gemm &g) const;
  int64_t kPanels(const Gemm &g) const;
  /// At least the tiles of a product.
  int64_t tiles(const Gemm &g) const {
    return items(g) * group * (mBlock / rows);
  }
  /// The tiles along m of the last item of a panel.
  int64_t lastTiles(const Gemm &g) const;
  /// The unrolled rounds that each pass of a tile has at least: over a short
  /// sum if all rows are swept, else over all of k.
  int64_t roundsOfTile(const Gemm &g) const;
  /// The rows of the next panel that each of those passes packs.
  int64_t packedByTile(const Gemm &g) const;

  /// What a kernel's schedule says of it; the rest follows from that, from the
  /// product and from the target.
  ScheduleOverride numbers() const;
};

/// `size` in equal parts of at most `most`, each a multiple of `unit`.
int64_t equalParts(int64_t size, int64_t most, int64_t unit = 1);

/// Chooses the schedule of one of `batches` equal products.
GemmSchedule scheduleGemm(const Gemm &gemm, const CpuModel &target,
                          int64_t batches);

/// Which item of a product it is, and of which of the groups of panels of all
/// products of the launch.
struct GemmItem {
  mlir::Value number, group;
};

/// The bytes of scratch of an item.
int64_t scratchOf(Code &code, const Gemm &gemm, const GemmSchedule &schedule);

/// Emits an item.
void emitGemm(Code &code, const Gemm &gemm, const GemmSchedule &schedule,
              Scratch &scratch, const GemmItem &item);

/// Rows [m, mEnd) of a panel of a product, and what is summed over.
struct GemmPart {
  mlir::Value m, mEnd; ///< m is a multiple of a tile's rows
  mlir::Value panel;
  mlir::Value k1, k1End;
};

/// Emits a part of a product that packs nothing and has a `store`, which gets
/// sums over the part's k1 alone; also for rows from mEnd on that are in a tile
/// with those before. Where the number of rounds is even by the product's and
/// the schedule's sizes, it has to be in the part.
void emitGemmPart(Code &code, const Gemm &gemm, const GemmSchedule &schedule,
                  const GemmPart &part);

} // namespace tandem::lower::cpu

#endif
