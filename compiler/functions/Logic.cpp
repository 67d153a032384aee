//===- Logic.cpp - comparisons, bools and bits, broadcast -----------------===//
//
// None of these has a gradient, but for `where` and `masked_fill`.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Build.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::functions;

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

template <ComparePredicate predicate>
static CallResults comparison(Call &call) {
  SmallVector<Expr> x = stretchedOperands(call);
  if (x.empty())
    return failure();
  // Bools as numbers: a comparison of single bits may take 1 for a sign.
  if (isBool(x[0]))
    for (Expr &value : x)
      value = value.cast(call.builder.getI8Type());
  return results({compare(predicate, x[0], x[1])});
}

//===----------------------------------------------------------------------===//
// Bools
//===----------------------------------------------------------------------===//

/// True where `x` is not 0.
static Expr truth(const Expr &x) {
  return isBool(x) ? x : compare(ComparePredicate::ne, x, x.like(0.0));
}

template <typename Formula>
static CallResults ofBools(Call &call, Formula formula) {
  SmallVector<Expr> x{truth(call[0]), truth(call[1])};
  if (failed(call.broadcast(x)))
    return failure();
  return results({formula(x[0], x[1])});
}

static CallResults bothTrue(Call &call) {
  return ofBools(call,
                 [](const Expr &x, const Expr &y) { return logicalAnd(x, y); });
}
static CallResults eitherTrue(Call &call) {
  return ofBools(call,
                 [](const Expr &x, const Expr &y) { return logicalOr(x, y); });
}
static CallResults oneTrue(Call &call) {
  return ofBools(call, [](const Expr &x, const Expr &y) {
    return compare(ComparePredicate::ne, x, y);
  });
}

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

/// `op` of integers, `formula` of bools.
template <typename Formula>
static CallResults bitwise(Call &call, StringRef op, Formula formula) {
  if (isFloat(call[0]))
    return call.fail("expected operands to have integers or bools, but got "
                     "floats");
  SmallVector<Expr> x = stretchedOperands(call);
  if (x.empty())
    return failure();
  if (isBool(x[0]))
    return results({formula(x[0], x[1])});
  return results({call.op(op, {x[0].value, x[1].value})});
}

static CallResults bitwiseAnd(Call &call) {
  return bitwise(call, "bit_and",
                 [](const Expr &x, const Expr &y) { return logicalAnd(x, y); });
}
static CallResults bitwiseOr(Call &call) {
  return bitwise(call, "bit_or",
                 [](const Expr &x, const Expr &y) { return logicalOr(x, y); });
}
static CallResults bitwiseXor(Call &call) {
  return bitwise(call, "bit_xor", [](const Expr &x, const Expr &y) {
    return compare(ComparePredicate::ne, x, y);
  });
}

static CallResults bitwiseNot(Call &call) {
  if (isFloat(call[0]))
    return call.fail("expected operand #0 to have integers or bools, but got "
                     "floats");
  if (isBool(call[0]))
    return results({isNot(call[0])});
  return results({call.op("bit_not", call.value(0))});
}

static CallResults shift(Call &call, StringRef op) {
  SmallVector<Expr> x;
  if (failed(call.expectInteger(0)) || (x = stretchedOperands(call)).empty())
    return failure();
  return results({call.op(op, {x[0].value, x[1].value})});
}
static CallResults bitsLeft(Call &call) { return shift(call, "shift_left"); }
static CallResults bitsRight(Call &call) { return shift(call, "shift_right"); }

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

static CallResults where(Call &call) {
  if (failed(call.expectBool(0)) || failed(call.expectSameElements(1, 2)))
    return failure();
  SmallVector<Expr> x{call[0], call[1], call[2]};
  if (failed(call.broadcast(x)))
    return failure();
  return results({select(x[0], x[1], x[2])});
}

static CallResults maskedFill(Call &call) {
  if (failed(call.expectBool(1)))
    return failure();
  if (call.has(2) == call.hasAttribute("value"))
    return call.fail("expected 'value' as an operand or an attribute");
  if (call.has(2) && (failed(call.expectSameElements(0, 2)) ||
                      failed(call.expectRank(2, 0, 0))))
    return failure();
  SmallVector<Expr> x{call[0], call[1]};
  if (failed(call.broadcast(x)))
    return failure();
  Expr value = call.has(2) ? call.stretch(call[2], x[0].shape())
                           : x[0].like(numberOf(call, "value", 0, x[0]));
  return results({select(x[1], value, x[0])});
}

void tandem::addLogicFunctions(FunctionTable &table) {
  table.family("Logic");
  table.add("eq(x, y)", "whether x = y, broadcast",
            comparison<ComparePredicate::eq>);
  table.add("ne(x, y)", "whether x and y differ, broadcast",
            comparison<ComparePredicate::ne>);
  table.add("lt(x, y)", "whether x < y, broadcast",
            comparison<ComparePredicate::lt>);
  table.add("le(x, y)", "whether x <= y, broadcast",
            comparison<ComparePredicate::le>);
  table.add("gt(x, y)", "whether x > y, broadcast",
            comparison<ComparePredicate::gt>);
  table.add("ge(x, y)", "whether x >= y, broadcast",
            comparison<ComparePredicate::ge>);
  table.add("both(x, y)",
            "whether both are not 0, broadcast (PyTorch's logical_and)",
            bothTrue);
  table.add("either(x, y)",
            "whether one is not 0, broadcast (PyTorch's logical_or)",
            eitherTrue);
  table.add("logical_xor(x, y)", "whether one but not both is not 0, broadcast",
            oneTrue);
  table.add("bitwise_and(x, y)", "of integers or bools, broadcast", bitwiseAnd);
  table.add("bitwise_or(x, y)", "of integers or bools, broadcast", bitwiseOr);
  table.add("bitwise_xor(x, y)", "of integers or bools, broadcast", bitwiseXor);
  table.add("bitwise_not(x)", "of integers or bools", bitwiseNot);
  table.add("bitwise_left_shift(x, y)", "x 2^y, broadcast", bitsLeft);
  table.add("bitwise_right_shift(x, y)", "floor(x / 2^y), broadcast",
            bitsRight);
  table.add("where(condition, x, y)", "x or y by a condition, broadcast",
            where);
  table.add("masked_fill(x, mask, value?; value)",
            "x with one number where the mask is true", maskedFill);
}
