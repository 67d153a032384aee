//===- NoiseSpec.cpp - "0.01,gamma=0.55" ----------------------------------===//
#include "passes/partition/NoiseSpec.h"

#include "passes/partition/OptimizerSpec.h"

#include "ir/Ops.h"
#include "ir/ops/Composite.h"

#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tandem;

static const OptimizerOption kOptions[] = {
    {"eta", 0, std::numeric_limits<float>::min(), 1e6, false,
     "the variance of the noise of the first update"},
    {"gamma", 0, 0, 100, false, "how fast the variance falls"}};

std::optional<NoiseSpec> tandem::parseNoiseSpec(StringRef text,
                                                std::string &error) {
  llvm::StringMap<double> values;
  SmallVector<StringRef> entries;
  std::string list = "eta=" + text.str();
  StringRef(list).split(entries, ',');
  SmallVector<std::string> problems;
  readNumbers("--gradient-noise", kOptions, entries, values, problems);
  if (!problems.empty()) {
    error = "expected a variance from 1.18e-38 to 1e+06, and perhaps "
            "',gamma=N' with a number from 0 to 100, but got '" +
            text.str() + "'";
    return std::nullopt;
  }
  return NoiseSpec{values.lookup("eta"), values.lookup("gamma")};
}

/// The first draw. What models draw under the same seed, they number from 0;
/// a normal number is of a second draw 2^23 behind the first.
static constexpr int64_t kFirstDraw = 1 << 22;

Expr NoiseSpec::added(const Expr &gradient, const Expr &state,
                      size_t param) const {
  OpBuilder &b = *gradient.builder;
  Location loc(gradient.loc);
  Type type = composite::computeType(gradient.value);
  Expr g = composite::in(b, loc, gradient.value, type);
  Expr noise = state.wrap(RandomNormalOp::create(
      b, loc, g.type(), state.value,
      b.getI64IntegerAttr(kFirstDraw + static_cast<int64_t>(param))));
  // The number of updates is the second of the two.
  Expr both = state.cast(b.getF64Type());
  auto second = DenseElementsAttr::get(both.type(), ArrayRef<double>{0, 1});
  Expr updates =
      (both * state.wrap(ConstantOp::create(b, loc, second))).reduceSum({0});
  Expr size = pow(updates + 1.0, updates.like(-gamma / 2)) * std::sqrt(eta);
  Expr sum = g + noise * size.cast(type).broadcastTo(g.shape(), {});
  return sum.cast(gradient.type().getElementType());
}

Expr NoiseSpec::next(const Expr &state) {
  auto one = DenseElementsAttr::get(state.type(), ArrayRef<int64_t>{0, 1});
  return state + state.wrap(ConstantOp::create(*state.builder, state.loc, one));
}
