//===- Diagonals.cpp - triangles, diagonals, blocks of channels ----------===//
#include "compiler/functions/Build.h"
#include "ir/ops/Inference.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::functions;

//===----------------------------------------------------------------------===//
// Triangles
//===----------------------------------------------------------------------===//

/// column - row of the last two dimensions, in i64.
static Expr above(Call &call, Sizes shape) {
  int64_t rank = shape.size();
  Type i64 = call.builder.getI64Type();
  Expr column = indices(call, i64, shape, rank - 1);
  Expr row = indices(call, i64, shape, rank - 2);
  return column && row ? column - row : Expr();
}

template <ComparePredicate predicate> static CallResults triangle(Call &call) {
  int64_t diagonal = call.integer("diagonal", 0);
  Expr x = call[0];
  if (x.rank() < 2)
    return call.fail("expected operand #0 to have rank at least 2, but got " +
                     Twine(x.rank()));
  Expr distance = above(call, x.shape());
  if (!distance)
    return failure();
  // Further away there is nothing, and doubles are exact.
  diagonal = std::clamp(diagonal, -kMaxElements, kMaxElements);
  Expr kept = compare(predicate, distance, distance.like(double(diagonal)));
  return results({select(kept, x, x.like(0.0))});
}

//===----------------------------------------------------------------------===//
// Diagonals
//===----------------------------------------------------------------------===//

namespace {
/// A diagonal of two dimensions.
struct Diagonal {
  int64_t dim1, dim2, offset;
  /// The row and column of its first element.
  int64_t row() const { return std::max<int64_t>(0, -offset); }
  int64_t column() const { return std::max<int64_t>(0, offset); }

  static std::optional<Diagonal> of(Call &call, int64_t rank, int64_t dim1,
                                    int64_t dim2) {
    Diagonal d{call.dim("dim1", dim1, rank), call.dim("dim2", dim2, rank),
               call.integer("offset", 0)};
    if (!call.failed() && d.dim1 == d.dim2)
      (void)call.fail("expected two distinct dimensions, but got " +
                      Twine(d.dim1) + " twice");
    if (!call.failed() && std::abs(double(d.offset)) > double(kMaxElements))
      (void)call.fail("expected 'offset' to be a diagonal, but got " +
                      Twine(d.offset));
    if (call.failed())
      return std::nullopt;
    return d;
  }
};
} // namespace

/// The diagonal as the last dimension: every (columns + 1)th element of the
/// rows one after the other.
static Expr diagonalOf(Call &call, Expr x, const Diagonal &diagonal) {
  int64_t last = x.rank() - 1;
  List order;
  for (int64_t d = 0; d < x.rank(); ++d)
    if (d != diagonal.dim1 && d != diagonal.dim2)
      order.push_back(d);
  order.append({diagonal.dim1, diagonal.dim2});
  x = permuted(call, x, order);
  if (!x)
    return x;
  int64_t rows = x.dim(last - 1), columns = x.dim(last);
  int64_t count = std::max<int64_t>(
      0, std::min(rows - diagonal.row(), columns - diagonal.column()));
  Sizes batch = x.shape().drop_back(2);
  if (count == 0)
    return call.full(elementOf(x), joined({batch, 0}), 0);
  Expr flat = reshaped(call, x, joined({batch, rows * columns}));
  return sliced(call, flat, last - 1,
                diagonal.row() * columns + diagonal.column(), count,
                columns + 1);
}

static CallResults diagonal(Call &call) {
  if (call[0].rank() < 2)
    return call.fail("expected operand #0 to have rank at least 2, but got " +
                     Twine(call[0].rank()));
  auto d = Diagonal::of(call, call[0].rank(), 0, 1);
  if (!d)
    return failure();
  return results({diagonalOf(call, call[0], *d)});
}

static CallResults trace(Call &call) {
  if (failed(call.expectRank(0, 2, 2)))
    return failure();
  Expr x = call[0];
  Expr found = diagonalOf(call, isFloat(x) ? wide(x) : x, {0, 1, 0});
  found = reduced(call, "reduce_sum", found, 0);
  if (!found)
    return failure();
  return results({found.cast(elementOf(x))});
}

static CallResults diagEmbed(Call &call) {
  Expr x = call[0];
  if (x.rank() < 1)
    return call.fail("expected operand #0 to have rank at least 1, but got 0");
  int64_t rank = x.rank() + 1;
  auto d = Diagonal::of(call, rank, -2, -1);
  if (!d)
    return failure();
  int64_t size = x.dim(x.rank() - 1) + std::abs(d->offset);
  List shape = joined({x.shape().drop_back(), {size, size}});
  if (productOf(shape) > kMaxElements)
    return call.fail("would have more elements than a tensor can have");
  // Each row holds the whole diagonal, of which one element stays.
  bool down = d->offset < 0;
  Expr wideX = paddedAlong(call, x, x.rank() - 1, down ? 0 : d->column(),
                           down ? d->row() : 0);
  Expr stretched =
      along(call, unsqueezed(call, wideX, rank - 2), shape, upTo(rank));
  Expr distance = above(call, shape);
  if (!stretched || !distance)
    return failure();
  Expr y = select(isEqual(distance, double(d->offset)), stretched,
                  stretched.like(0.0));
  // Rows and columns to their places.
  List order = upTo(rank - 2);
  bool firstIsRow = d->dim1 < d->dim2;
  int64_t low = std::min(d->dim1, d->dim2), high = std::max(d->dim1, d->dim2);
  order.insert(order.begin() + low, firstIsRow ? rank - 2 : rank - 1);
  order.insert(order.begin() + high, firstIsRow ? rank - 1 : rank - 2);
  return results({permuted(call, y, order)});
}

//===----------------------------------------------------------------------===//
// Blocks of channels as blocks of space
//===----------------------------------------------------------------------===//

/// A dimension of `x` as several.
static Expr splitDims(Call &call, const Expr &x, Sizes shape, Sizes order,
                      Sizes merged) {
  return reshaped(call, permuted(call, reshaped(call, x, shape), order),
                  merged);
}

static CallResults toSpace(Call &call, StringRef name, bool columnsFirst) {
  Expr x = call[0];
  int64_t b = call.integer(name, 1);
  if (failed(call.expectRank(0, 3, 5)) || call.failed())
    return failure();
  int64_t rank = x.rank();
  Sizes batch = x.shape().drop_back(3);
  int64_t C = x.dim(rank - 3), H = x.dim(rank - 2), W = x.dim(rank - 1);
  if (b < 1 || b > C / b || C % (b * b))
    return call.fail("expected the channels (" + Twine(C) +
                     ") to be divisible by the square of '" + name +
                     "', but that is " + Twine(b));
  int64_t c = C / (b * b), n = batch.size();
  // [..., b, b, c, H, W] or [..., c, b, b, H, W] to [..., c, H, b, W, b].
  List shape = columnsFirst ? joined({batch, {c, b, b, H, W}})
                            : joined({batch, {b, b, c, H, W}});
  List order = upTo(n);
  if (columnsFirst)
    order.append({n, n + 3, n + 1, n + 4, n + 2});
  else
    order.append({n + 2, n + 3, n, n + 4, n + 1});
  return results(
      {splitDims(call, x, shape, order, joined({batch, {c, H * b, W * b}}))});
}

static CallResults pixelShuffle(Call &call) {
  return toSpace(call, "upscale_factor", true);
}
static CallResults depthToSpace(Call &call) {
  StringRef mode = call.text("mode", "DCR", {"DCR", "CRD"});
  return toSpace(call, "blocksize", mode == "CRD");
}

static CallResults fromSpace(Call &call, StringRef name, bool columnsFirst) {
  Expr x = call[0];
  int64_t b = call.integer(name, 1);
  if (failed(call.expectRank(0, 3, 5)) || call.failed())
    return failure();
  int64_t rank = x.rank(), n = rank - 3;
  Sizes batch = x.shape().drop_back(3);
  int64_t c = x.dim(rank - 3), H = x.dim(rank - 2), W = x.dim(rank - 1);
  if (b < 1 || H % b || W % b)
    return call.fail("expected rows and columns (" + infer::text({H, W}) +
                     ") to be divisible by '" + name + "', but that is " +
                     Twine(b));
  List order = upTo(n);
  // [..., c, h, b, w, b] to [..., c, b, b, h, w] or [..., b, b, c, h, w].
  if (columnsFirst)
    order.append({n, n + 2, n + 4, n + 1, n + 3});
  else
    order.append({n + 2, n + 4, n, n + 1, n + 3});
  return results(
      {splitDims(call, x, joined({batch, {c, H / b, b, W / b, b}}), order,
                 joined({batch, {c * b * b, H / b, W / b}}))});
}

static CallResults pixelUnshuffle(Call &call) {
  return fromSpace(call, "downscale_factor", true);
}
static CallResults spaceToDepth(Call &call) {
  StringRef mode = call.text("mode", "DCR", {"DCR", "CRD"});
  return fromSpace(call, "blocksize", mode == "CRD");
}

void tandem::addDiagonalFunctions(FunctionTable &table) {
  table.family("Diagonals and blocks");
  table.add("tril(x; diagonal=0)",
            "the lower triangle of matrices, 0 above `diagonal`",
            triangle<ComparePredicate::le>);
  table.add("triu(x; diagonal=0)",
            "the upper triangle of matrices, 0 below `diagonal`",
            triangle<ComparePredicate::ge>);
  table.add("diagonal(x; offset=0, dim1=0, dim2=1)",
            "a diagonal of two dimensions, as the last dimension", diagonal);
  table.add("trace(x)", "the sum of the diagonal of a matrix", trace);
  table.add("diag_embed(x; offset=0, dim1=-2, dim2=-1)",
            "matrices of 0 with the last dimension as a diagonal", diagEmbed);
  table.add("pixel_shuffle(x; upscale_factor)",
            "[..., C r r, H, W] as [..., C, H r, W r]", pixelShuffle);
  table.add("pixel_unshuffle(x; downscale_factor)",
            "[..., C, H r, W r] as [..., C r r, H, W]", pixelUnshuffle);
  table.add("depth_to_space(x; blocksize, mode='DCR')",
            "as pixel_shuffle; with DCR the blocks are the outer part of the "
            "channels",
            depthToSpace);
  table.add("space_to_depth(x; blocksize, mode='DCR')",
            "the reverse of depth_to_space", spaceToDepth);
}
