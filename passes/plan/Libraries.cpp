//===- Libraries.cpp - kernels that a vendor's library can compute --------===//
//
// All of the kernel must be the call: one result; before the anchor views that
// leave its operands matrices (or dense tensors, of convolutions); after it
// free views, and of products a bias along the columns and relu, in this order.
//
//===----------------------------------------------------------------------===//
#include "passes/plan/Libraries.h"
#include "passes/Passes.h"
#include "passes/plan/IndexMath.h"
#include "passes/plan/LibraryTable.h"
#include "passes/target/Target.h"

#include "ir/ops/Convolution.h"

namespace tandem {
#define GEN_PASS_DEF_CHOOSELIBRARIES
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

constexpr int64_t largest = 0x7fffffff;

/// What is known of a kernel's call.
struct Call {
  LibraryCase product;
  StringAttr op;
  Type dtype;
  DenseI64ArrayAttr operands, sizes, lds, batchStrides, transposes, strides,
      padding, dilation;

  LibraryCallAttr attribute(int64_t workspaceBytes) const;
};

class LibraryMatcher {
public:
  explicit LibraryMatcher(KernelOp kernel)
      : kernel(kernel), b(kernel.getContext()), body(kernel.getBody().front()) {
  }

  std::optional<Call> describe();

private:
  /// An element of a view, as one of an input of the kernel.
  struct Source {
    int64_t input;
    AffineExpr position;
  };
  std::optional<Source> sourceOf(Value value, ArrayRef<AffineExpr> index);
  std::optional<int64_t> strideOf(const Source &source, unsigned dim);

  bool findAnchor();
  bool readBias(Value value, Value beside);
  bool describeMatmul(MatmulOp op);
  bool describeConvolution(Operation *op, const Convolution2d &conv);

  struct Matrix {
    int64_t input, ld, transposed;
    SmallVector<int64_t> batch; ///< strides
  };
  std::optional<Matrix> matrix(Value value, unsigned row, unsigned column,
                               ArrayRef<unsigned> dims);
  bool collapse(Matrix &lhs, Matrix &rhs, Matrix &y);

  KernelOp kernel;
  Builder b;
  Block &body;
  Call call;
  Operation *anchor = nullptr;
  SmallVector<int64_t> sizes; ///< of the dimensions of index expressions
  /// The values between the anchor and the kernel's result.
  bool hasRelu = false;
  Value biasSum; ///< of the anchor and a bias
  std::optional<int64_t> bias;
};

} // namespace

LibraryCallAttr Call::attribute(int64_t workspaceBytes) const {
  MLIRContext *context = op.getContext();
  auto flag = [&](bool isSet) {
    return isSet ? BoolAttr::get(context, true) : BoolAttr();
  };
  return LibraryCallAttr::get(context, op, dtype, flag(product.tf32),
                              flag(product.hasRelu), operands, sizes, lds,
                              batchStrides, transposes, strides, padding,
                              dilation, workspaceBytes, /*workspace=*/-1);
}

/// The value that a chain of free views begins with.
static Value throughFree(Value value) {
  while (auto view = value.getDefiningOp<ViewOpInterface>()) {
    if (!view.isFree())
      break;
    value = view->getOperand(0);
  }
  return value;
}

static bool isAnchor(Operation *op) {
  return isa_and_nonnull<MatmulOp, Conv2dOp, Conv2dInputGradOp,
                         Conv2dFilterGradOp>(op);
}

/// From the kernel's result back to its anchor.
bool LibraryMatcher::findAnchor() {
  if (kernel->getNumResults() != 1 || kernel.getPartsAttr())
    return false;
  Value value = throughFree(body.getTerminator()->getOperand(0));
  if (auto relu = value.getDefiningOp<ReluOp>()) {
    hasRelu = true;
    value = throughFree(relu->getOperand(0));
  }
  if (auto add = value.getDefiningOp<AddOp>()) {
    biasSum = value;
    for (Value operand : add->getOperands())
      if (isAnchor(throughFree(operand).getDefiningOp()))
        value = throughFree(operand);
  }
  anchor = value.getDefiningOp();
  return isAnchor(anchor);
}

std::optional<LibraryMatcher::Source>
LibraryMatcher::sourceOf(Value value, ArrayRef<AffineExpr> index) {
  Place place;
  for (AffineExpr expr : index)
    place.index.push_back(simplifyIndex(expr, sizes));
  while (auto view = value.getDefiningOp<ViewOpInterface>()) {
    Place source;
    SmallVector<IndexGuard> inside;
    if (!throughView(view, place, sizes, source, inside) || !inside.empty())
      return std::nullopt;
    place = source;
    value = view->getOperand(0);
  }
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || !place.guards.empty())
    return std::nullopt;
  AffineExpr position = simplifyIndex(
      linearize(place.index, typeOf(value).getShape(), kernel.getContext()),
      sizes);
  // Nothing but multiples of the dimensions: 0 at 0.
  for (unsigned d = 0; d < sizes.size(); ++d)
    if (!coefficientOf(position, d))
      return std::nullopt;
  SmallVector<AffineExpr> zeros(sizes.size(),
                                getAffineConstantExpr(0, b.getContext()));
  auto first = dyn_cast<AffineConstantExpr>(position.replaceDims(zeros));
  if (!first || first.getValue() != 0)
    return std::nullopt;
  return Source{argument.getArgNumber(), position};
}

/// The distance of neighbours along a dimension; nothing if it is negative.
std::optional<int64_t> LibraryMatcher::strideOf(const Source &source,
                                                unsigned dim) {
  if (sizes[dim] == 1)
    return 0;
  std::optional<int64_t> stride = coefficientOf(source.position, dim);
  return stride && *stride >= 0 ? stride : std::nullopt;
}

/// `value`, whose index is `dims`, as matrices with rows along the dimension
/// `row` and columns along `column`.
std::optional<LibraryMatcher::Matrix>
LibraryMatcher::matrix(Value value, unsigned row, unsigned column,
                       ArrayRef<unsigned> dims) {
  SmallVector<AffineExpr> index;
  for (unsigned d : dims)
    index.push_back(getAffineDimExpr(d, b.getContext()));
  std::optional<Source> source = sourceOf(value, index);
  if (!source)
    return std::nullopt;
  Matrix matrix{source->input, 0, 0, {}};
  std::optional<int64_t> rows = strideOf(*source, row),
                         columns = strideOf(*source, column);
  if (!rows || !columns)
    return std::nullopt;
  int64_t m = sizes[row], n = sizes[column];
  // A dimension of size 1 may have any stride.
  if ((n == 1 || *columns == 1) && (m == 1 || *rows >= n)) {
    matrix.ld = m == 1 ? n : *rows;
  } else if ((m == 1 || *rows == 1) && (n == 1 || *columns >= m)) {
    matrix.ld = n == 1 ? m : *columns;
    matrix.transposed = 1;
  } else {
    return std::nullopt;
  }
  for (unsigned d : dims.drop_back(2)) {
    std::optional<int64_t> stride = strideOf(*source, d);
    if (!stride)
      return std::nullopt;
    matrix.batch.push_back(*stride);
  }
  return matrix;
}

/// Makes one batch dimension of all of them, or, where all batches have the
/// same rhs, more rows.
bool LibraryMatcher::collapse(Matrix &lhs, Matrix &rhs, Matrix &y) {
  LibraryCase &p = call.product;
  SmallVector<int64_t> counts(ArrayRef(sizes).take_front(lhs.batch.size()));
  for (size_t d = counts.size(); d-- > 0;)
    if (counts[d] == 1)
      for (Matrix *one : {&lhs, &rhs, &y})
        one->batch.erase(one->batch.begin() + d);
  llvm::erase(counts, 1);
  auto join = [&](Matrix &one) {
    for (size_t d = 0; d + 1 < counts.size(); ++d)
      if (one.batch[d] != one.batch[d + 1] * counts[d + 1])
        return false;
    one.batch = {counts.empty() ? 0 : one.batch.back()};
    return true;
  };
  if (!join(lhs) || !join(rhs) || !join(y))
    return false;
  p.batch = 1;
  for (int64_t count : counts)
    p.batch *= count;
  bool areRows = lhs.batch[0] == p.m * lhs.ld || p.m == 1;
  if (p.batch > 1 && rhs.batch[0] == 0 && !lhs.transposed && areRows &&
      (p.m > 1 || lhs.batch[0] >= p.k)) {
    if (p.m == 1)
      lhs.ld = lhs.batch[0];
    p.m *= p.batch;
    p.batch = 1;
    lhs.batch = y.batch = {0};
  }
  return true;
}

/// `value`, one operand of the sum, is a vector along the columns.
bool LibraryMatcher::readBias(Value value, Value beside) {
  unsigned n = sizes.size() - 2;
  SmallVector<AffineExpr> result;
  for (unsigned d = 0; d <= n; ++d)
    result.push_back(getAffineDimExpr(d, b.getContext()));
  AffineExpr position = linearize(
      result, typeOf(anchor->getResult(0)).getShape(), b.getContext());
  auto source =
      sourceOf(value, delinearize(position, typeOf(beside).getShape(), sizes));
  if (!source)
    return false;
  for (unsigned d = 0; d < sizes.size(); ++d)
    if (sizes[d] > 1 && strideOf(*source, d) != (d == n ? 1 : 0))
      return false;
  bias = source->input;
  return true;
}

bool LibraryMatcher::describeMatmul(MatmulOp op) {
  RankedTensorType type = op.getY().getType();
  unsigned rank = type.getRank();
  unsigned m = rank - 2, n = rank - 1, k = rank;
  llvm::append_range(sizes, type.getShape());
  sizes.push_back(
      op.getLhs().getType().getDimSize(op.getTransposeLhs() ? m : n));
  LibraryCase &p = call.product;
  p.m = sizes[m];
  p.n = sizes[n];
  p.k = sizes[k];
  auto dims = [&](unsigned row, unsigned column, bool transposed) {
    SmallVector<unsigned> list;
    for (unsigned d = 0; d < m; ++d)
      list.push_back(d);
    list.push_back(transposed ? column : row);
    list.push_back(transposed ? row : column);
    return list;
  };
  auto lhs = matrix(op.getLhs(), m, k, dims(m, k, op.getTransposeLhs()));
  auto rhs = matrix(op.getRhs(), k, n, dims(k, n, op.getTransposeRhs()));
  if (!lhs || !rhs)
    return false;
  Matrix y{static_cast<int64_t>(kernel->getNumOperands()), p.n, 0, {}};
  int64_t stride = p.m * p.n;
  for (unsigned d = m; d-- > 0; stride *= sizes[d])
    y.batch.insert(y.batch.begin(), sizes[d] == 1 ? 0 : stride);
  // A library adds the bias before it rounds, and the product is a value.
  if (biasSum && type.getElementTypeBitWidth() < 32)
    return false;
  if (biasSum) {
    Operation *add = biasSum.getDefiningOp();
    bool isFirst = throughFree(add->getOperand(0)).getDefiningOp() == anchor;
    if (!readBias(add->getOperand(isFirst), biasSum))
      return false;
  }
  if (!collapse(*lhs, *rhs, y))
    return false;
  SmallVector<int64_t> operands = {lhs->input, rhs->input, y.input};
  if (bias)
    operands.push_back(*bias);
  call.operands = b.getDenseI64ArrayAttr(operands);
  call.sizes = b.getDenseI64ArrayAttr({p.batch, p.m, p.n, p.k});
  call.lds = b.getDenseI64ArrayAttr({lhs->ld, rhs->ld, y.ld});
  call.batchStrides =
      b.getDenseI64ArrayAttr({lhs->batch[0], rhs->batch[0], y.batch[0]});
  call.transposes = b.getDenseI64ArrayAttr({lhs->transposed, rhs->transposed});
  p.hasRelu = hasRelu;
  return llvm::all_of(ArrayRef{p.batch, p.m, p.n, p.k, lhs->ld, rhs->ld},
                      [](int64_t size) { return size > 0 && size <= largest; });
}

bool LibraryMatcher::describeConvolution(Operation *op,
                                         const Convolution2d &conv) {
  if (hasRelu || biasSum)
    return false;
  SmallVector<int64_t> operands;
  for (Value operand : op->getOperands()) {
    auto argument = dyn_cast<BlockArgument>(throughFree(operand));
    if (!argument)
      return false;
    operands.push_back(argument.getArgNumber());
  }
  // x, w, y, with the gradient in the place of what it is of.
  int64_t result = kernel->getNumOperands();
  if (isa<Conv2dOp>(op))
    operands.push_back(result);
  else if (isa<Conv2dInputGradOp>(op))
    operands = {result, operands[1], operands[0]};
  else
    operands = {operands[0], result, operands[1]};
  const Window2d &w = conv.window;
  for (int d = 0; d < 2; ++d) {
    int64_t seen =
        w.input[d] + 2 * w.before[d] - (w.kernel[d] - 1) * w.dilation[d] - 1;
    if (w.before[d] < 0 || seen < 0 || seen / w.stride[d] + 1 != w.output[d])
      return false;
  }
  SmallVector<int64_t> numbers = {
      conv.batch,  conv.channels, w.input[0],  w.input[1],  conv.filters,
      w.kernel[0], w.kernel[1],   w.output[0], w.output[1], conv.groups};
  if (!llvm::all_of(numbers,
                    [](int64_t size) { return size > 0 && size <= largest; }))
    return false;
  call.operands = b.getDenseI64ArrayAttr(operands);
  call.sizes = b.getDenseI64ArrayAttr(numbers);
  call.strides = b.getDenseI64ArrayAttr(w.stride);
  call.padding = b.getDenseI64ArrayAttr(w.before);
  call.dilation = b.getDenseI64ArrayAttr(w.dilation);
  LibraryCase &p = call.product;
  p.isConvolution = true;
  p.batch = conv.groups;
  p.m = conv.filtersPerGroup();
  p.n = conv.batch * w.output[0] * w.output[1];
  p.k = conv.channelsPerGroup() * w.kernel[0] * w.kernel[1];
  return true;
}

std::optional<Call> LibraryMatcher::describe() {
  if (!findAnchor())
    return std::nullopt;
  bool found = false;
  if (auto op = dyn_cast<MatmulOp>(anchor))
    found = describeMatmul(op);
  else if (auto op = dyn_cast<Conv2dOp>(anchor))
    found = describeConvolution(op, op.getConvolution());
  else if (auto op = dyn_cast<Conv2dInputGradOp>(anchor))
    found = describeConvolution(op, op.getConvolution());
  else if (auto op = dyn_cast<Conv2dFilterGradOp>(anchor))
    found = describeConvolution(op, op.getConvolution());
  if (!found)
    return std::nullopt;
  std::string dtype;
  llvm::raw_string_ostream(dtype)
      << typeOf(anchor->getResult(0)).getElementType();
  auto type = b.getStringAttr(dtype);
  LibraryCase &p = call.product;
  p.dtype = type.getValue();
  p.tf32 = productPrecision(anchor) == "tf32";
  for (Type t : kernel->getOperandTypes())
    p.bytes += byteSize(cast<RankedTensorType>(t));
  p.bytes += byteSize(typeOf(kernel->getResult(0)));
  call.op = b.getStringAttr(anchor->getName().stripDialect());
  call.dtype = typeOf(anchor->getResult(0)).getElementType();
  return std::move(call);
}

/// Returns how many kernels have a call.
static unsigned chooseLibraries(func::FuncOp func) {
  TargetAttr target = TargetAttr::of(func);
  if (!target || !target.isCuda() || target.getLibraries() == "no")
    return 0;
  unsigned count = 0;
  auto [sm, isExact] = cudaArchOf(func);
  for (KernelOp kernel : func.getOps<KernelOp>()) {
    std::optional<Call> call = LibraryMatcher(kernel).describe();
    if (!call)
      continue;
    call->product.sm = sm;
    call->product.isExact = isExact;
    if (target.getLibraries() != "yes" && !prefersLibrary(call->product))
      continue;
    kernel.setLibraryAttr(call->attribute(workspaceOf(call->product)));
    ++count;
  }
  return count;
}

namespace {
struct ChooseLibraries : tandem::impl::ChooseLibrariesBase<ChooseLibraries> {
  void runOnOperation() final { chosen += chooseLibraries(getOperation()); }
};
} // namespace

LibraryCallAttr tandem::libraryOf(Operation *op) {
  if (auto kernel = dyn_cast<KernelOp>(op))
    return kernel.getLibraryAttr();
  if (auto launch = dyn_cast<LaunchOp>(op))
    return launch.getLibraryAttr();
  return {};
}

int64_t tandem::libraryWorkspace(Operation *kernel) {
  LibraryCallAttr call = libraryOf(kernel);
  return call ? call.getWorkspaceBytes() : 0;
}

void tandem::placeLibraryWorkspace(KernelOp kernel, int64_t offset) {
  kernel.setLibraryAttr(kernel.getLibraryAttr().at(offset));
}
