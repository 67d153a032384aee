//===- RoundingTest.cpp - values of f16 and bf16 have their type's digits -===//
//
// A value of f16 or bf16 is rounded when it is made, in whatever kernel: each
// pair of ops gives the same bits in one kernel and in two. The rows have every
// op of the dialect that makes or reads floats element by element or reduces
// them: functions of one or two numbers by themselves; a test fails for another
// one that has none.
//
//===----------------------------------------------------------------------===//
#include "tests/lower/Check.h"

#include "compiler/Compile.h"
#include "ir/reference/Elements.h"

#include "llvm/ADT/StringSet.h"

#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::test;

namespace {

/// Text in which T stands for the narrow type, S for the other one, and $ for
/// the value that the op reads, which a producer makes and a consumer is given.
struct Row {
  const char *op;     ///< in the dialect, without its prefix
  const char *text;   ///< what stands behind "%r = "
  const char *result; ///< its type
  /// Computed in f32 and rounded it is rounded correctly: the reference, which
  /// computes in f64, gives the same bits. (Of zeros with two signs it may
  /// choose the other one.)
  bool isCorrect = false;
};

#define UNARY(OP)                                                              \
  { OP, "tandem." OP " $ : tensor<64x8xT>", "64x8xT" }
#define EXACT_UNARY(OP)                                                        \
  { OP, "tandem." OP " $ : tensor<64x8xT>", "64x8xT", true }
#define BINARY(OP)                                                             \
  { OP, "tandem." OP " $, %y : tensor<64x8xT>", "64x8xT" }
#define EXACT_BINARY(OP)                                                       \
  { OP, "tandem." OP " $, %y : tensor<64x8xT>", "64x8xT", true }
#define CAST(TYPE)                                                             \
  {                                                                            \
    "cast", "tandem.cast $ : tensor<64x8xT> to tensor<64x8x" TYPE ">",         \
        "64x8x" TYPE, true                                                     \
  }

/// What makes a T of T, and reads it, beside the other functions of the
/// dialect.
const Row kPointwise[] = {
    EXACT_UNARY("neg"),
    EXACT_UNARY("abs"),
    EXACT_UNARY("sqrt"),
    EXACT_UNARY("relu"),
    EXACT_UNARY("floor"),
    EXACT_UNARY("ceil"),
    EXACT_UNARY("round"),
    EXACT_UNARY("trunc"),
    EXACT_BINARY("add"),
    EXACT_BINARY("sub"),
    EXACT_BINARY("mul"),
    EXACT_BINARY("div"),
    EXACT_BINARY("rem"),
    EXACT_BINARY("accumulate"),
    EXACT_BINARY("pass_grad"),
    {"select", "tandem.select %b, $, %y : tensor<64x8xi1>, tensor<64x8xT>",
     "64x8xT", true},
    {"add", "tandem.add $, $ : tensor<64x8xT>", "64x8xT", true},
    {"mul", "tandem.mul $, $ : tensor<64x8xT>", "64x8xT", true},
};

/// What makes a T of something else.
const Row kMakers[] = {
    {"cast", "tandem.cast %w : tensor<64x8xf32> to tensor<64x8xT>", "64x8xT",
     true},
    {"cast", "tandem.cast %d : tensor<64x8xf64> to tensor<64x8xT>", "64x8xT",
     true},
    {"cast", "tandem.cast %s : tensor<64x8xS> to tensor<64x8xT>", "64x8xT",
     true},
    {"cast", "tandem.cast %i : tensor<64x8xi32> to tensor<64x8xT>", "64x8xT",
     true},
    {"cast", "tandem.cast %l : tensor<64x8xi64> to tensor<64x8xT>", "64x8xT",
     true},
    {"cast", "tandem.cast %e : tensor<64x8xf8E4M3FN> to tensor<64x8xT>",
     "64x8xT", true},
    {"philox", "tandem.philox %l, %l, %l draw %l : tensor<64x8xT>", "64x8xT",
     true},
    {"bitcast", "tandem.bitcast %h : tensor<64x8xi16> -> tensor<64x8xT>",
     "64x8xT", true},
};

/// What reads a T and makes something else.
const Row kReaders[] = {
    CAST("f32"),
    CAST("f64"),
    CAST("S"),
    CAST("i1"),
    CAST("i32"),
    CAST("ui8"),
    CAST("f8E4M3FN"),
    CAST("f8E5M2"),
    {"compare", "tandem.compare lt $, %y : tensor<64x8xT>", "64x8xi1", true},
    {"compare", "tandem.compare eq $, %y : tensor<64x8xT>", "64x8xi1", true},
    {"bitcast", "tandem.bitcast $ : tensor<64x8xT> -> tensor<64x8xi16>",
     "64x8xi16", true},
};

/// Rows so short that their elements are added in order, in every kernel.
const Row kReductions[] = {
    {"reduce_sum",
     "tandem.reduce_sum $ over [1] : tensor<64x8xT> -> "
     "tensor<64xT>",
     "64xT"},
    {"reduce_prod",
     "tandem.reduce_prod $ over [1] : tensor<64x8xT> -> "
     "tensor<64xT>",
     "64xT"},
    {"reduce_max",
     "tandem.reduce_max $ over [1] : tensor<64x8xT> -> "
     "tensor<64xT>",
     "64xT"},
    {"reduce_min",
     "tandem.reduce_min $ over [1] : tensor<64x8xT> -> "
     "tensor<64xT>",
     "64xT"},
};

/// Without a row: what has no narrow floats, or decides by conditions that this
/// program does not have.
const char *const kOthers[] = {
    "logical_not", "logical_and", "logical_or", "idiv",   "bit_and",
    "bit_or",      "bit_xor",     "bit_not",    "detach", "shift_left",
    "shift_right", "or_zero",     "if_defined",
};

using Rows = std::vector<Row>;

template <size_t N> void append(Rows &rows, const Row (&more)[N]) {
  rows.insert(rows.end(), std::begin(more), std::end(more));
}

std::string replaced(std::string text, const std::string &what,
                     const std::string &by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos;
       at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

/// The text of a program at phase `partition` for one narrow type.
struct Program {
  Program(const std::string &type)
      : type(type), other(type == "f16" ? "bf16" : "f16") {}

  std::string typed(std::string text) const {
    text = replaced(text, "xT", "x" + type);
    return replaced(text, "xS", "x" + other);
  }
  /// The row's op of `value`; returns the name of the result.
  std::string add(const Row &row, const std::string &value) {
    std::string name = "%r" + std::to_string(count++);
    body += name + " = " + typed(replaced(row.text, "$", value)) + "\n";
    return name;
  }
  void give(const std::string &value, const std::string &ofType) {
    std::string whole = typed("tensor<" + ofType + ">");
    returned += (returned.empty() ? "" : ", ") + value;
    types += (types.empty() ? "" : ", ") + whole;
  }
  std::string text() const {
    return program(typed(kArguments) + types,
                   body + "return " + returned + " : " + types);
  }

  static constexpr const char *kArguments =
      "x: tensor<64x8xT>, y: tensor<64x8xT>, b: tensor<64x8xi1>, "
      "w: tensor<64x8xf32>, d: tensor<64x8xf64>, s: tensor<64x8xS>, "
      "i: tensor<64x8xi32>, l: tensor<64x8xi64>, e: tensor<64x8xf8E4M3FN>, "
      "h: tensor<64x8xi16> -> ";
  std::string type, other, body, returned, types;
  int count = 0;
};

/// Ends of the range, denormals, ties and their neighbours, and what is no
/// number.
std::vector<double> special(const std::string &type) {
  bool isHalf = type == "f16";
  int digits = isHalf ? 10 : 7;
  double largest = isHalf ? 65504 : 0x1.FEp127;
  double normal = isHalf ? 0x1p-14 : 0x1p-126;
  double least = std::ldexp(normal, -digits), unit = std::ldexp(1, -digits);
  return {0.0,      -0.0,         1 + unit, -1 - 3 * unit, 45.25,      300,
          largest,  -largest / 2, normal,   least,         -3 * least, 0.5,
          1.0 / 3,  -7.5,         255,      M_PI,          1 - unit,   1e-3,
          INFINITY, -INFINITY,    NAN,      -2.75};
}

/// One array per argument of a program: pairs of special numbers, and numbers
/// between two of the type.
Arrays argumentsFor(Machine &machine, const std::string &type) {
  Arrays arrays = machine.randomArguments("evaluate", 7, -4, 4);
  std::vector<double> numbers = special(type);
  auto n = static_cast<int64_t>(numbers.size());
  double unit = type == "f16" ? 0x1p-10 : 0x1p-7;
  for (int64_t k = 0; k < arrays[0].size() && k < n * n; ++k) {
    double x = numbers[k % n], y = numbers[k / n];
    arrays[0][k] = x;
    arrays[1][k] = y;
    // Ties of the narrow type, and what is just beside one.
    double tie = x * (1 + unit / 2 * static_cast<double>(k % 3));
    arrays[3][k] = tie * (1 + 0x1p-23 * static_cast<double>(k % 5 - 2));
    arrays[4][k] = tie * (1 + 0x1p-40 * static_cast<double>(k % 5 - 2));
    arrays[5][k] = std::isfinite(y) ? std::clamp(y, -6e4, 6e4) : y;
    // The same of integers, which f32 rounds to a tie of bf16.
    double integer = std::ldexp(1 + unit / 2, 25) + static_cast<double>(k % 4);
    arrays[6][k] = k % 2 ? -integer : integer;
    arrays[7][k] = arrays[6][k] * 0x1p20;
    // The bits of numbers.
    arrays[9][k] = static_cast<double>(k % 2 * -32768 + k % 240 * 128);
  }
  auto func = machine.planned().lookupSymbol<func::FuncOp>("evaluate");
  for (auto [array, type] : llvm::zip_equal(arrays, func.getArgumentTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    array = reference::decode(encode(array, tensor.getElementType()).data(),
                              tensor);
  }
  return arrays;
}

/// The bits of narrow numbers, those of all that are none as the same ones:
/// which of two such operands a processor hands on, it may choose.
reference::Array withOneNaN(reference::Array bits, const std::string &type) {
  double infinity = type == "f16" ? 0x7c00 : 0x7f80;
  for (double &x : bits.data)
    if ((x < 0 ? x + 32768 : x) > infinity)
      x = 0x7fff;
  return bits;
}

bool same(double x, double y) {
  return x == y ? std::signbit(x) == std::signbit(y)
                : std::isnan(x) && std::isnan(y);
}

/// Fails, and shows the first element, where the bits differ.
void expectSame(const reference::Array &got, const reference::Array &expected,
                const std::string &what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (int64_t i = 0; i < got.size(); ++i)
    if (!same(got[i], expected[i])) {
      ADD_FAILURE() << what << ": element " << i << " is " << got[i] << ", not "
                    << expected[i];
      return;
    }
}

std::string nameOf(const Row &first, const Row &second) {
  return std::string(first.op) + " (" + first.text + ") -> " + second.op +
         " (" + second.text + ")";
}

/// The values between producers and consumers stay in their kernels.
bool areJoined(Machine &machine) {
  size_t made = 0, returned = 0;
  for (KernelOp kernel : machine.kernels("evaluate")) {
    made += kernel->getNumResults();
    for (Value result : kernel->getResults())
      returned += llvm::any_of(result.getUsers(), [](Operation *user) {
        return user->hasTrait<OpTrait::IsTerminator>();
      });
  }
  return made == returned;
}

/// All consumers of what each producer makes, in kernels with it and apart.
void comparePairs(const std::string &type, const std::string &target,
                  const Rows &producers, const Rows &consumers) {
  Program first(type), second(type);
  for (const Row &row : producers)
    first.give(first.add(row, "%x"), row.result);
  for (const Row &row : consumers)
    second.give(second.add(row, "%x"), row.result);
  Machine makes(first.text(), target), reads(second.text(), target);
  ASSERT_EQ(makes.error(), "") << first.text();
  ASSERT_EQ(reads.error(), "") << second.text();
  Arrays arguments = argumentsFor(makes, type);
  Arrays made = makes.run("evaluate", arguments);
  for (auto [p, producer] : llvm::enumerate(producers)) {
    Program both(type);
    std::string value = both.add(producer, "%x");
    for (const Row &row : consumers)
      both.give(both.add(row, value), row.result);
    Machine joined(both.text(), target);
    ASSERT_EQ(joined.error(), "") << both.text();
    EXPECT_TRUE(areJoined(joined)) << both.text();
    Arrays between = arguments;
    between[0] = made[p];
    Arrays got = joined.run("evaluate", arguments);
    Arrays apart = reads.run("evaluate", between);
    Arrays exact = joined.reference("evaluate", arguments);
    joined.round("evaluate", exact);
    for (auto [c, consumer] : llvm::enumerate(consumers)) {
      std::string what =
          type + " on " + target + ": " + nameOf(producer, consumer);
      bool isBits = consumer.result == std::string("64x8xi16");
      auto shown = [&](const reference::Array &array) {
        return isBits ? withOneNaN(array, type) : array;
      };
      expectSame(shown(got[c]), shown(apart[c]), what);
      if (producer.isCorrect && consumer.isCorrect)
        expectSame(shown(got[c]), shown(exact[c]),
                   what + ", against the reference");
    }
  }
}

/// What makes a T of T, and reads it.
Rows allPointwise() {
  Rows rows;
  append(rows, kPointwise);
  llvm::StringSet<> known;
  for (const Row &row : rows)
    known.insert(row.op);
  for (const char *other : kOthers)
    known.insert(other);
  const Row functions[] = {
#define TANDEM_UNARY(FUNCTION, OP, MNEMONIC) UNARY(MNEMONIC),
#define TANDEM_BINARY(FUNCTION, OP, MNEMONIC) BINARY(MNEMONIC),
#include "ir/ops/PointwiseFunctions.h.inc"
  };
  for (const Row &row : functions)
    if (!known.contains(row.op))
      rows.push_back(row);
  return rows;
}

Rows allProducers() {
  Rows rows = allPointwise();
  append(rows, kMakers);
  return rows;
}

Rows allConsumers() {
  Rows rows = allPointwise();
  append(rows, kReaders);
  return rows;
}

class Rounding : public testing::TestWithParam<const char *> {};

} // namespace

// A cast to f16 inside of a kernel was carried in f32, so that what came out
// hung on fusion: 300 squared was 90000 and not infinite, 45.25 squared
// 2047.5625 and not 2048.
TEST(RoundingOnce, TheSquareOfAHalf) {
  for (const char *target : {"cpu", "cuda"}) {
    SCOPED_TRACE(target);
    Machine machine(program("x: tensor<2xf32> -> tensor<2xf32>", R"(
      %h = tandem.cast %x : tensor<2xf32> to tensor<2xf16>
      %s = tandem.mul %h, %h : tensor<2xf16>
      %y = tandem.cast %s : tensor<2xf16> to tensor<2xf32>
      return %y : tensor<2xf32>)"),
                    target);
    ASSERT_EQ(machine.error(), "");
    ASSERT_EQ(machine.kernels("evaluate").size(), 1u);
    Arrays x(1, reference::Array(ArrayRef<int64_t>{2}));
    x[0].data = {300, 45.25};
    Arrays y = machine.run("evaluate", x);
    EXPECT_EQ(y[0][0], INFINITY);
    EXPECT_EQ(y[0][1], 2048);
    Arrays exact = machine.reference("evaluate", x);
    EXPECT_EQ(exact[0][0], INFINITY);
    EXPECT_EQ(exact[0][1], 2048);
  }
}

// With --fast-math values of a kernel have the digits of f32 until a cast or a
// store.
TEST(RoundingOnce, FastMathKeepsDigits) {
  Machine machine(program("x: tensor<2xf32> -> tensor<2xf32>, tensor<2xf16>",
                          R"(
      %h = tandem.cast %x : tensor<2xf32> to tensor<2xf16>
      %s = tandem.mul %h, %h : tensor<2xf16>
      %y = tandem.cast %s : tensor<2xf16> to tensor<2xf32>
      return %y, %s : tensor<2xf32>, tensor<2xf16>)"),
                  "cpu", /*fastMath=*/true);
  ASSERT_EQ(machine.error(), "");
  Arrays x(1, reference::Array(ArrayRef<int64_t>{2}));
  x[0].data = {300, 45.26}; // which is 45.25 in f16
  Arrays y = machine.run("evaluate", x);
  EXPECT_EQ(y[0].data, (std::vector<double>{90000, 2047.5625}));
  EXPECT_EQ(y[1].data, (std::vector<double>{INFINITY, 2048}));
}

// A bf16 that was copied beside a call of the C library went through f32 and
// back by a call of the compiler's, which no program that loads a kernel has.
TEST(RoundingOnce, CopiesOfBf16CallNothing) {
  Machine machine(program("l: tensor<64x8xi64>, y: tensor<64x8xbf16> -> "
                          "tensor<64x8xbf16>, tensor<64x8xbf16>",
                          R"(
      %v = tandem.philox %l, %l, %l draw %l : tensor<64x8xbf16>
      %r = tandem.rem %v, %y : tensor<64x8xbf16>
      %c = tandem.pass_grad %v, %y : tensor<64x8xbf16>
      return %r, %c : tensor<64x8xbf16>, tensor<64x8xbf16>)"));
  ASSERT_EQ(machine.error(), "");
  Arrays given = machine.randomArguments("evaluate", 1, 1, 2);
  expectSame(machine.run("evaluate", given)[1], given[1], "the copy");
}

// No pointwise op and no reduction is without a row, or a reason.
TEST(RoundingOnce, EveryOpHasARow) {
  llvm::StringSet<> known;
  Rows rows = allProducers();
  append(rows, kReaders);
  append(rows, kReductions);
  for (const Row &row : rows)
    known.insert(row.op);
  for (const char *other : kOthers)
    known.insert(other);
  DialectRegistry registry;
  registerCompiler(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadDialect<TandemDialect>();
  for (RegisteredOperationName op :
       context.getRegisteredOperationsByDialect("tandem"))
    if (op.hasInterface<PointwiseOpInterface>() ||
        op.hasInterface<ReductionOpInterface>()) {
      EXPECT_TRUE(known.contains(op.stripDialect())) << op.stripDialect().str();
    }
}

TEST_P(Rounding, PairsInOneKernelAndInTwo) {
  comparePairs(GetParam(), "cpu", allProducers(), allConsumers());
}

TEST_P(Rounding, ReductionsInOneKernelAndInTwo) {
  Rows consumers;
  append(consumers, kReductions);
  comparePairs(GetParam(), "cpu", allProducers(), consumers);
}

// A sample on the other target, which emulates slowly.
TEST_P(Rounding, PairsOnCuda) {
  Rows producers, consumers;
  for (const Row &row : allProducers())
    if (llvm::is_contained({"add", "mul", "exp", "div", "select", "cast"},
                           StringRef(row.op)))
      producers.push_back(row);
  for (const Row &row : allConsumers())
    if (llvm::is_contained({"sub", "mul", "sqrt", "tanh", "relu", "cast",
                            "compare", "bitcast"},
                           StringRef(row.op)))
      consumers.push_back(row);
  comparePairs(GetParam(), "cuda", producers, consumers);
}

namespace {

/// What makes a narrow value and has a kernel of its own kind: the text of
/// `%v`, which is of type `result`.
struct Maker {
  const char *arguments, *text, *result;
};

const Maker kKernels[] = {
    {"a: tensor<24x40xT>, b: tensor<40x32xT>",
     "tandem.matmul %a, %b : tensor<24x40xT>, tensor<40x32xT> -> "
     "tensor<24x32xT>",
     "24x32xT"},
    {"a: tensor<1x40xT>, b: tensor<72x40xT>",
     "tandem.matmul %a, %b {transpose_rhs} : tensor<1x40xT>, tensor<72x40xT> "
     "-> tensor<1x72xT>",
     "1x72xT"},
    {"a: tensor<2x4x9x9xT>, b: tensor<8x4x3x3xT>",
     "tandem.conv2d %a, %b padding [1, 1, 1, 1] : tensor<2x4x9x9xT>, "
     "tensor<8x4x3x3xT> -> tensor<2x8x9x9xT>",
     "2x8x9x9xT"},
    {"a: tensor<2x16x8x8xT>, b: tensor<8x16x1x1xT>",
     "tandem.conv2d %a, %b : tensor<2x16x8x8xT>, tensor<8x16x1x1xT> -> "
     "tensor<2x8x8x8xT>",
     "2x8x8x8xT"},
    {"a: tensor<2x8x9x9xT>, b: tensor<8x4x3x3xT>",
     "tandem.conv2d_input_grad %a, %b to [2, 4, 9, 9] padding [1, 1, 1, 1] : "
     "tensor<2x8x9x9xT>, tensor<8x4x3x3xT> -> tensor<2x4x9x9xT>",
     "2x4x9x9xT"},
    {"a: tensor<2x4x9x9xT>, b: tensor<2x8x9x9xT>",
     "tandem.conv2d_filter_grad %a, %b to [8, 4, 3, 3] padding [1, 1, 1, 1] : "
     "tensor<2x4x9x9xT>, tensor<2x8x9x9xT> -> tensor<8x4x3x3xT>",
     "8x4x3x3xT"},
    {"a: tensor<2x4x8x8xT>",
     "tandem.avg_pool2d %a kernel [3, 3] strides [2, 2] padding [1, 1, 1, 1] "
     ": tensor<2x4x8x8xT> -> tensor<2x4x4x4xT>",
     "2x4x4x4xT"},
    {"a: tensor<6x40xT>",
     "tandem.cumsum %a dim 1 : tensor<6x40xT> -> tensor<6x40xT>", "6x40xT"},
    {"a: tensor<20x6xT>, i: tensor<20xi32>",
     "tandem.take_grad %a, %i to [8, 6] : tensor<20x6xT>, tensor<20xi32> -> "
     "tensor<8x6xT>",
     "8x6xT"},
    {"q: tensor<2x12x8xT>, k: tensor<2x12x8xT>, u: tensor<2x12x8xT>",
     "tandem.attention_forward %q, %k, %u {scale = 0.5 : f64} : "
     "(tensor<2x12x8xT>, "
     "tensor<2x12x8xT>, tensor<2x12x8xT>) -> (tensor<2x12x8xT>, "
     "tensor<2x12xf32>)",
     "2x12x8xT"},
    // Sums of rows, of columns, and of so much that they are made of parts.
    {"a: tensor<40x15xT>",
     "tandem.reduce_sum %a over [1] : tensor<40x15xT> -> tensor<40xT>", "40xT"},
    {"a: tensor<40x48xT>",
     "tandem.reduce_sum %a over [0] : tensor<40x48xT> -> tensor<48xT>", "48xT"},
    {"a: tensor<1024x256xT>",
     "tandem.reduce_sum %a over [0] : tensor<1024x256xT> -> tensor<256xT>",
     "256xT"},
    {"a: tensor<70000xT>",
     "tandem.reduce_sum %a over [0] : tensor<70000xT> -> tensor<T>", "T"},
};

} // namespace

// An end of a product read its sums in f32, whatever the product's type.
TEST_P(Rounding, WhatFollowsInTheKernelOfAnAnchor) {
  std::string type = GetParam();
  auto typed = [&](std::string text) {
    text = replaced(text, "<T>", "<" + type + ">");
    return replaced(text, "xT", "x" + type);
  };
  for (const char *target : {"cpu", "cuda"})
    for (const Maker &maker : kKernels) {
      std::string of = typed(std::string("tensor<") + maker.result + ">");
      std::string arguments = typed(maker.arguments), text = typed(maker.text);
      SCOPED_TRACE(text + " on " + target);
      bool hasTwo = text.find("attention") != std::string::npos;
      text = (hasTwo ? "%v:2 = " : "%v = ") + text + "\n";
      std::string value = hasTwo ? "%v#0" : "%v";
      std::string follows = "%m = tandem.mul " + value + ", " + value + " : " +
                            of + "\n%n = tandem.sub %m, " + value + " : " + of +
                            "\nreturn %n : " + of;
      Machine joined(program(arguments + " -> " + of, text + follows), target);
      Machine alone(program(arguments + " -> " + of,
                            text + "return " + value + " : " + of),
                    target);
      Machine reads(
          program("v: " + of + " -> " + of, replaced(follows, "%v#0", "%v")),
          target);
      for (Machine *machine : {&joined, &alone, &reads})
        ASSERT_EQ(machine->error(), "");
      Arrays given = joined.randomArguments("evaluate", 3, -2, 2);
      Arrays made = alone.run("evaluate", given);
      made.resize(1);
      expectSame(joined.run("evaluate", given)[0],
                 reads.run("evaluate", made)[0], "what follows");
    }
}

// Integers with more digits than f32, and than f64, were rounded twice.
TEST(RoundingOnce, LargeIntegersRoundOnce) {
  for (const char *target : {"cpu", "cuda"}) {
    SCOPED_TRACE(target);
    Machine machine(program("x: tensor<4xi64>, by: tensor<4xi64>, "
                            "more: tensor<4xi64> -> tensor<4xbf16>",
                            R"(
      %z = tandem.shift_left %x, %by : tensor<4xi64>
      %n = tandem.add %z, %more : tensor<4xi64>
      %y = tandem.cast %n : tensor<4xi64> to tensor<4xbf16>
      return %y : tensor<4xbf16>)"),
                    target);
    ASSERT_EQ(machine.error(), "");
    Arrays given(3, reference::Array(ArrayRef<int64_t>{4}));
    double tie = 0x1p25 + 0x1p17;
    given[0].data = {tie, tie, -tie, tie};
    given[1].data = {34, 34, 34, 0};
    given[2].data = {0, 1, -1, 1};
    EXPECT_EQ(machine.run("evaluate", given)[0].data,
              (std::vector<double>{0x1p59, 0x1p59 + 0x1p52, -0x1p59 - 0x1p52,
                                   0x1p25 + 0x1p18}));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Rounding, testing::Values("f16", "bf16"));
