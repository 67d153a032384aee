//===- Products.cpp - matrix products of any shapes -----------------------===//
//
// Operands have one element type. Floats of 16 bits are accumulated in f32;
// integers are multiplied in their type, modulo 2^N.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Products.h"
#include "ir/ops/Inference.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::functions;

/// The product of integers [..., m, k] and [..., k, n].
static Expr integerProduct(Call &call, const Expr &a, const Expr &b) {
  int64_t rank = a.rank();
  List shape = joined({a.shape(), b.dim(rank - 1)}); // [..., m, k, n]
  if (productOf(shape) > kMaxElements) {
    (void)call.fail("would multiply more elements than a tensor can have");
    return {};
  }
  List right = upTo(rank - 2);
  right.append({rank - 1, rank});
  Expr x = along(call, a, shape, upTo(rank)), y = along(call, b, shape, right);
  return x && y ? reduced(call, "reduce_sum", x * y, rank - 1) : Expr();
}

Expr functions::batchedProduct(Call &call, const Expr &a, const Expr &b) {
  if (!a || !b)
    return {};
  int64_t rank = a.rank();
  if (isFloat(a) && a.dim(rank - 1) > 0)
    return matrixProduct(call, a, b);
  return integerProduct(call, a, b);
}

Expr functions::product(Call &call, Expr a, Expr b) {
  if (!a || !b)
    return {};
  auto wrong = [&] {
    (void)call.fail("expected matrices of which the first has as many columns "
                    "as the second has rows, but got " +
                    infer::text(a.shape()) + " and " + infer::text(b.shape()));
    return Expr();
  };
  if (a.rank() == 0 || b.rank() == 0)
    return wrong();
  // A vector is a row on the left and a column on the right.
  bool row = a.rank() == 1, column = b.rank() == 1;
  int64_t inner = a.dim(a.rank() - 1);
  if (inner != b.dim(column ? 0 : b.rank() - 2))
    return wrong();
  if (row)
    a = unsqueezed(call, a, 0);
  if (column)
    b = unsqueezed(call, b, 1);
  if (!a || !b)
    return {};
  int64_t m = a.dim(a.rank() - 2), n = b.dim(b.rank() - 1);
  Sizes left = a.shape().drop_back(2), right = b.shape().drop_back(2);
  auto batch = call.broadcastShape(left, right);
  if (!batch)
    return {};
  if (productOf({productOf(*batch), m, n}) > kMaxElements) {
    (void)call.fail("would have more elements than a tensor can have");
    return {};
  }
  Expr y;
  if (productOf(right) == 1 && *batch == left && isFloat(a)) {
    // One matrix on the right: all rows are multiplied by it at once.
    Expr rows = reshaped(call, a, {productOf(*batch) * m, inner});
    y = batchedProduct(call, rows, reshaped(call, b, {inner, n}));
  } else {
    a = call.stretch(a, joined({*batch, {m, inner}}));
    b = call.stretch(b, joined({*batch, {inner, n}}));
    y = batchedProduct(call, a, b);
  }
  List shape = *batch;
  if (!row)
    shape.push_back(m);
  if (!column)
    shape.push_back(n);
  return reshaped(call, y, shape);
}

static LogicalResult expectNumbers(Call &call) {
  if (isBool(call[0]))
    return call.fail("expected operands to have numbers, but got bools");
  return expectOneType(call);
}

static CallResults matmul(Call &call) {
  if (failed(expectNumbers(call)))
    return failure();
  return results({product(call, call[0], call[1])});
}

/// matmul of operands of given ranks.
template <int64_t left, int64_t right> static CallResults ofRanks(Call &call) {
  if (failed(call.expectRank(0, left, left)) ||
      failed(call.expectRank(1, right, right)))
    return failure();
  if (left == 3 && call[0].dim(0) != call[1].dim(0))
    return call.fail("expected batches of one size, but got " +
                     Twine(call[0].dim(0)) + " and " + Twine(call[1].dim(0)));
  return matmul(call);
}

static CallResults outer(Call &call) {
  if (failed(call.expectRank(0, 1, 1)) || failed(call.expectRank(1, 1, 1)) ||
      failed(expectNumbers(call)))
    return failure();
  Expr a = unsqueezed(call, call[0], 1);
  List shape{call[0].dim(0), call[1].dim(0)};
  Expr x = call.stretch(a, shape), y = call.stretch(call[1], shape);
  if (!x || !y)
    return failure();
  return results({x * y});
}

static CallResults inner(Call &call) {
  Expr a = call[0], b = call[1];
  if (failed(expectNumbers(call)))
    return failure();
  if (a.rank() == 0 || b.rank() == 0 ||
      a.dim(a.rank() - 1) != b.dim(b.rank() - 1))
    return call.fail("expected last dimensions of one size, but got " +
                     infer::text(a.shape()) + " and " + infer::text(b.shape()));
  int64_t k = a.dim(a.rank() - 1);
  Sizes left = a.shape().drop_back(), right = b.shape().drop_back();
  Expr rows = reshaped(call, a, {productOf(left), k});
  Expr columns =
      permuted(call, reshaped(call, b, {productOf(right), k}), {1, 0});
  Expr y = batchedProduct(call, rows, columns);
  return results({reshaped(call, y, joined({left, right}))});
}

//===----------------------------------------------------------------------===//
// Products added to something
//===----------------------------------------------------------------------===//

/// beta x + alpha y, x stretched to y; both null after a mistake.
static CallResults added(Call &call, Expr x, Expr y, double alpha,
                         double beta) {
  if (!y)
    return failure();
  Type element = elementOf(y);
  if (isFloat(y))
    y = wide(y);
  if (alpha != 1)
    y = y * alpha;
  if (x && beta != 0) {
    x = call.stretch(isFloat(x) ? wide(x) : x, y.shape());
    if (!x)
      return failure();
    y = (beta == 1 ? x : x * beta) + y;
  }
  return results({y.cast(element)});
}

template <int64_t left, int64_t right>
static CallResults addProduct(Call &call) {
  double alpha = numberOf(call, "alpha", 1, call[0]);
  double beta = numberOf(call, "beta", 1, call[0]);
  if (failed(expectNumbers(call)) || failed(call.expectRank(1, left, left)) ||
      failed(call.expectRank(2, right, right)))
    return failure();
  if (left == 3 && call[1].dim(0) != call[2].dim(0))
    return call.fail("expected batches of one size, but got " +
                     Twine(call[1].dim(0)) + " and " + Twine(call[2].dim(0)));
  Expr y = product(call, call[1], call[2]);
  if (y && !call.broadcastShape(call[0].shape(), y.shape()))
    return failure();
  return added(call, call[0], y, alpha, beta);
}

static CallResults addr(Call &call) {
  double alpha = numberOf(call, "alpha", 1, call[0]);
  double beta = numberOf(call, "beta", 1, call[0]);
  if (failed(expectNumbers(call)) || failed(call.expectRank(1, 1, 1)) ||
      failed(call.expectRank(2, 1, 1)))
    return failure();
  return added(call, call[0],
               call.call("outer", {call.value(1), call.value(2)}), alpha, beta);
}

static CallResults gemm(Call &call) {
  double alpha = numberOf(call, "alpha", 1, call[0]);
  double beta = numberOf(call, "beta", 1, call[0]);
  bool transposeA = call.flag("transpose_a", false);
  bool transposeB = call.flag("transpose_b", false);
  if (failed(expectNumbers(call)) || failed(call.expectRank(0, 2, 2)) ||
      failed(call.expectRank(1, 2, 2)))
    return failure();
  Expr a = transposeA ? permuted(call, call[0], {1, 0}) : call[0];
  Expr b = transposeB ? permuted(call, call[1], {1, 0}) : call[1];
  Expr y = product(call, a, b);
  return added(call, call[2], y, alpha, beta);
}

//===----------------------------------------------------------------------===//
// Along chosen dimensions
//===----------------------------------------------------------------------===//

/// The sum over pairs of dimensions: a's in `dims_a`, b's in `dims_b`, or the
/// last `dims` of a and the first of b.
static CallResults tensordot(Call &call) {
  Expr a = call[0], b = call[1];
  if (failed(expectNumbers(call)))
    return failure();
  List left = call.integers("dims_a"), right = call.integers("dims_b");
  if (!call.hasAttribute("dims_a") && !call.hasAttribute("dims_b")) {
    int64_t count = call.integer("dims", 2);
    if (count < 0 || count > a.rank() || count > b.rank())
      return call.fail("expected 'dims' of at most the ranks, but got " +
                       Twine(count));
    for (int64_t i = 0; i < count; ++i) {
      left.push_back(a.rank() - count + i);
      right.push_back(i);
    }
  }
  bool fits = left.size() == right.size() && !call.failed();
  for (size_t i = 0; fits && i < left.size(); ++i) {
    left[i] += left[i] < 0 ? a.rank() : 0;
    right[i] += right[i] < 0 ? b.rank() : 0;
    fits = left[i] >= 0 && left[i] < a.rank() && right[i] >= 0 &&
           right[i] < b.rank() && a.dim(left[i]) == b.dim(right[i]) &&
           llvm::count(left, left[i]) == 1 && llvm::count(right, right[i]) == 1;
  }
  if (!fits)
    return call.fail("expected pairs of dimensions of one size of " +
                     infer::text(a.shape()) + " and " + infer::text(b.shape()) +
                     ", but got " + infer::text(left) + " and " +
                     infer::text(right));
  List leftOrder, rightOrder(right), shape;
  int64_t k = 1, m = 1, n = 1;
  for (int64_t d = 0; d < a.rank(); ++d)
    if (!llvm::is_contained(left, d)) {
      leftOrder.push_back(d);
      shape.push_back(a.dim(d));
      m *= a.dim(d);
    }
  llvm::append_range(leftOrder, left);
  for (int64_t d : left)
    k *= a.dim(d);
  for (int64_t d = 0; d < b.rank(); ++d)
    if (!llvm::is_contained(right, d)) {
      rightOrder.push_back(d);
      shape.push_back(b.dim(d));
      n *= b.dim(d);
    }
  if (productOf(shape) > kMaxElements)
    return call.fail("would have more elements than a tensor can have");
  Expr y =
      batchedProduct(call, reshaped(call, permuted(call, a, leftOrder), {m, k}),
                     reshaped(call, permuted(call, b, rightOrder), {k, n}));
  return results({reshaped(call, y, shape)});
}

static CallResults bilinear(Call &call) {
  if (failed(call.expectFloat(0)) || failed(expectOneType(call)) ||
      failed(call.expectRank(2, 3, 3)))
    return failure();
  Expr y = call.call("einsum", {call.value(0), call.value(2), call.value(1)},
                     {call.textAttr("equation", "...i,oij,...j->...o")});
  if (!y || !call.has(3))
    return results({y});
  if (failed(call.expectShape(3, call[2].dim(0))))
    return failure();
  return added(call, call[3], y, 1, 1);
}

void tandem::addProductFunctions(FunctionTable &table) {
  table.family("Products");
  table.add("linalg_matmul(a, b)",
            "the matrix product of the last two dimensions, the others "
            "broadcast; a vector is a row on the left and a column on the "
            "right",
            matmul);
  table.add("mm(a, b)", "the product of two matrices", ofRanks<2, 2>);
  table.add("bmm(a, b)", "the products of two batches of matrices",
            ofRanks<3, 3>);
  table.add("mv(a, b)", "the product of a matrix and a vector", ofRanks<2, 1>);
  table.add("dot(a, b)", "the sum of the products of two vectors",
            ofRanks<1, 1>);
  table.add("inner(a, b)", "sums of products over the last dimensions", inner);
  table.add("outer(a, b)", "all products of elements of two vectors", outer);
  table.add("addmm(x, a, b; alpha=1.0, beta=1.0)",
            "beta x + alpha a b of matrices, x broadcast", addProduct<2, 2>);
  table.add("addmv(x, a, b; alpha=1.0, beta=1.0)",
            "beta x + alpha a b of a matrix and a vector, x broadcast",
            addProduct<2, 1>);
  table.add("baddbmm(x, a, b; alpha=1.0, beta=1.0)",
            "beta x + alpha a b of batches of matrices, x broadcast",
            addProduct<3, 3>);
  table.add("addr(x, a, b; alpha=1.0, beta=1.0)",
            "beta x + alpha times the outer product of vectors, x broadcast",
            addr);
  table.add("gemm(a, b, c?; alpha=1.0, beta=1.0, transpose_a=false, "
            "transpose_b=false)",
            "alpha a b + beta c, the matrices transposed as said, c broadcast",
            gemm);
  table.add("tensordot(a, b; dims=2, dims_a, dims_b)",
            "sums of products over pairs of dimensions: the last `dims` of a "
            "with the first of b, or those named",
            tensordot);
  table.add("bilinear(a, b, weight, bias?)",
            "the sum of a_i weight_oij b_j, plus bias_o", bilinear);
}
