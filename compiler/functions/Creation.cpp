//===- Creation.cpp - tensors made of nothing, or of a shape --------------===//
#include "compiler/functions/Build.h"
#include "ir/ops/Inference.h"

#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::functions;

/// The attribute `dtype`.
static Type typeOf(Call &call, StringRef otherwise) {
  OpBuilder &b = call.builder;
  StringRef name = call.text("dtype", otherwise,
                             {"f32", "f64", "f16", "bf16", "i32", "i64"});
  return name == "f32"    ? Type(b.getF32Type())
         : name == "f64"  ? Type(b.getF64Type())
         : name == "f16"  ? Type(b.getF16Type())
         : name == "bf16" ? Type(b.getBF16Type())
         : name == "i32"  ? Type(b.getI32Type())
                          : Type(b.getI64Type());
}

/// start + i step, `count` times, computed in f64 (or i64).
static Expr progression(Call &call, Type element, double start, double step,
                        int64_t count) {
  if (count == 0)
    return call.full(element, 0, 0);
  Type wideType = isa<FloatType>(element) ? Type(call.builder.getF64Type())
                                          : Type(call.builder.getI64Type());
  Expr index = indices(call, wideType, count, 0);
  return index ? (index * step + start).cast(element) : index;
}

static CallResults arange(Call &call) {
  double start = call.number("start", 0), end = call.number("end", 0);
  double step = call.number("step", 1);
  Type element = typeOf(call, "i64");
  double count = std::ceil((end - start) / step);
  if (call.failed())
    return failure();
  if (!(count >= 0) || count > double(kMaxElements))
    return call.fail("expected a step that leads from 'start' to 'end'");
  bool isWhole = start == std::trunc(start) && step == std::trunc(step) &&
                 std::abs(start) <= 0x1p53 && std::abs(step) <= 0x1p53;
  if (!isa<FloatType>(element) && !isWhole)
    return call.fail("expected 'start' and 'step' to be integers");
  return results(
      {progression(call, element, start, step, static_cast<int64_t>(count))});
}

static CallResults linspace(Call &call) {
  double start = call.number("start", 0), end = call.number("end", 1);
  int64_t steps = call.integer("steps", 2);
  Type element = typeOf(call, "f32");
  if (call.failed())
    return failure();
  if (steps < 0 || steps > kMaxElements || !isa<FloatType>(element))
    return call.fail("expected 'steps' to be the elements of a tensor of "
                     "floats, but got " +
                     Twine(steps));
  double step = steps > 1 ? (end - start) / double(steps - 1) : 0;
  return results({progression(call, element, start, step, steps)});
}

static CallResults fullLike(Call &call) {
  double value = numberOf(call, "value", 0, call[0]);
  return results({call[0].like(value)});
}

static CallResults eye(Call &call) {
  int64_t n = call.integer("n", 1), m = call.integer("m", n);
  int64_t diagonal = call.integer("diagonal", 0);
  Type element = typeOf(call, "f32"), i64 = call.builder.getI64Type();
  if (call.failed())
    return failure();
  if (n < 0 || m < 0 || productOf({n, m}) > kMaxElements)
    return call.fail("expected rows and columns of a tensor, but got " +
                     infer::text({n, m}));
  if (n == 0 || m == 0)
    return results({call.full(element, {n, m}, 0)});
  Expr row = indices(call, i64, {n, m}, 0);
  Expr column = indices(call, i64, {n, m}, 1);
  if (!row || !column)
    return failure();
  diagonal = std::clamp(diagonal, -kMaxElements, kMaxElements);
  return results({isEqual(column - row, double(diagonal)).cast(element)});
}

/// Vectors along the dimensions of all of them.
static CallResults meshgrid(Call &call) {
  StringRef indexing = call.text("indexing", "ij", {"ij", "xy"});
  int64_t n = call.size();
  List shape, dims = upTo(n);
  if (indexing == "xy" && n > 1)
    std::swap(dims[0], dims[1]);
  shape.resize(n);
  for (int64_t i = 0; i < n; ++i) {
    if (failed(call.expectRank(i, 0, 1)))
      return failure();
    shape[dims[i]] = productOf(call[i].shape());
  }
  SmallVector<Value> list;
  for (int64_t i = 0; i < n; ++i) {
    Expr x =
        along(call, reshaped(call, call[i], shape[dims[i]]), shape, dims[i]);
    if (!x)
      return failure();
    list.push_back(x);
  }
  return list;
}

void tandem::addCreationFunctions(FunctionTable &table) {
  table.family("Creation");
  table.add("arange(; start=0, end, step=1, dtype='i64')",
            "start, start + step, ... before end; of i64, i32 or floats",
            arange);
  table.add("linspace(; start=0.0, end=1.0, steps, dtype='f32')",
            "`steps` numbers from start to end", linspace);
  table.add("full_like(x; value=0.0)", "one number in the shape of x",
            fullLike);
  table.add("eye(; n, m, diagonal=0, dtype='f32')",
            "1 on a diagonal and else 0, n by m (n by n by default)", eye);
  table.add("meshgrid(xs...; indexing='ij')",
            "each vector along its dimension of the shape of all; with 'xy' "
            "the first two are exchanged",
            meshgrid);
}
