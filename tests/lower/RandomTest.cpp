//===- RandomTest.cpp - every target draws the reference's bits -----------===//
//
// No tolerance: what a generator gives is bits, and so is what is made of them
// without rounding. The ranges that a program's items are split in, and the
// orders of threads, change nothing.
//
//===----------------------------------------------------------------------===//
#include "tests/lower/Check.h"

#include "ir/ops/Philox.h"

#include "llvm/ADT/DenseSet.h"

using namespace tandem;
using namespace tandem::test;

namespace {

std::string type(const std::string &shape, const std::string &element) {
  return "tensor<" + (shape.empty() ? "" : shape + "x") + element + ">";
}

/// The positions of a tensor, and the words of the state %s in its shape.
std::string operands(const std::string &shape, const std::string &list,
                     int64_t elements) {
  std::string whole = type(shape, "i64"),
              line = type(std::to_string(elements), "i64");
  std::string text = "%line = tandem.iota dim 0 : " + line +
                     "\n%position = tandem.reshape %line to [" + list +
                     "] : " + line + " -> " + whole + "\n";
  for (int i : {0, 1}) {
    std::string n = std::to_string(i), next = std::to_string(i + 1);
    text += "%one" + n + " = tandem.slice %s from [" + n + "] to [" + next +
            "] step [1] : tensor<2xi64> -> tensor<1xi64>\n%word" + n +
            " = tandem.reshape %one" + n +
            " to [] : tensor<1xi64> -> tensor<i64>\n%all" + n +
            " = tandem.broadcast %word" + n + " to [" + list +
            "] along [] : tensor<i64> -> " + whole + "\n";
  }
  return text;
}

/// `name` is draw `number`, of elements of a type, at all positions of a shape.
std::string draw(const std::string &name, const std::string &shape,
                 const std::string &element, const std::string &number) {
  return name + "draw = tandem.constant dense<" + number +
         "> : " + type(shape, "i64") + "\n" + name +
         " = tandem.philox %all0, %all1, %position draw " + name +
         "draw : " + type(shape, element) + "\n";
}

Arrays state(double seed, double offset) {
  reference::Array array(llvm::ArrayRef<int64_t>{2});
  array[0] = seed;
  array[1] = offset;
  return {array};
}

class Random : public testing::TestWithParam<const char *> {};

} // namespace

TEST_P(Random, BitsOfTheReference) {
  for (auto [shape, list, elements] :
       {std::tuple<const char *, const char *, int64_t>{"3x45", "3, 45", 135},
        {"2x3x16", "2, 3, 16", 96},
        {"", "", 1}}) {
    std::string y = type(shape, GetParam());
    std::string text = program("s: tensor<2xi64> -> " + y + ", " + y,
                               operands(shape, list, elements) +
                                   draw("%a", shape, GetParam(), "0") +
                                   draw("%b", shape, GetParam(), "16777215") +
                                   "return %a, %b : " + y + ", " + y);
    std::vector<Arrays> states = {state(-1, 3)};
    if (elements == 1)
      states = {state(0, 0), state(0x1p53 - 1, 0x1p40 + 5)};
    for (const Arrays &given : states)
      check(text, {.tolerance = 0}, &given);
  }
}
INSTANTIATE_TEST_SUITE_P(Types, Random,
                         testing::Values("i32", "f32", "f64", "bf16", "f16"));

// More than one item of a kernel has, in blocks of four numbers that end with
// the item or not.
TEST(RandomBits, LongTensors) {
  Arrays given = state(5, 6);
  for (int64_t size : {12000, 12001}) {
    std::string n = std::to_string(size), y = type(n, "f32");
    check(program("s: tensor<2xi64> -> " + y, operands(n, n, size) +
                                                  draw("%a", n, "f32", "2") +
                                                  "return %a : " + y),
          {.tolerance = 0}, &given);
  }
}

// The third of the published answers, whose key and counter are no numbers
// that the reference could hold.
TEST(RandomBits, KnownAnswers) {
  std::string text = program("x: tensor<4xi64> -> tensor<4xi32>", R"(
    %seed = tandem.constant dense<0x299F31D0A4093822> : tensor<4xi64>
    %offset = tandem.constant dense<0x0370734413198A2E> : tensor<4xi64>
    %base = tandem.constant dense<0x34C90FDAA20> : tensor<4xi64>
    %i = tandem.iota dim 0 : tensor<4xi64>
    %position = tandem.add %base, %i : tensor<4xi64>
    %draw = tandem.constant dense<0x85A308> : tensor<4xi64>
    %y = tandem.philox %seed, %offset, %position draw %draw : tensor<4xi32>
    return %y : tensor<4xi32>)");
  const uint32_t expected[] = {0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1};
  for (std::string target : {"cpu", "cuda"}) {
    Machine machine(text, target);
    ASSERT_EQ(machine.error(), "");
    Arrays x = machine.randomArguments("evaluate", 1);
    Arrays y = machine.run("evaluate", x);
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(y[0][i], double(int32_t(expected[i]))) << target;
  }
}

// A mask is made where it is used, in one kernel with what it is used for.
TEST(RandomBits, AMaskIsNotStored) {
  std::string x = type("33x65", "f32");
  check(program("s: tensor<2xi64>, x: " + x + " -> " + x,
                operands("33x65", "33, 65", 33 * 65) +
                    draw("%u", "33x65", "f32", "1") + R"(
    %p = tandem.constant dense<0.25> : tensor<33x65xf32>
    %0 = tandem.constant dense<0.0> : tensor<33x65xf32>
    %drop = tandem.compare lt %u, %p : tensor<33x65xf32>
    %t = tandem.tanh %x : tensor<33x65xf32>
    %y = tandem.select %drop, %0, %t : tensor<33x65xi1>, tensor<33x65xf32>
    return %y : tensor<33x65xf32>)"),
        {.kernels = 1});
}

// Behind a product, in the product's kernel.
TEST(RandomBits, BehindAProduct) {
  std::string y = type("20x24", "f32");
  check(program("s: tensor<2xi64>, a: tensor<20x16xf32>, b: tensor<16x24xf32> "
                "-> " +
                    y,
                operands("20x24", "20, 24", 480) +
                    draw("%u", "20x24", "f32", "1") + R"(
    %p = tandem.constant dense<0.25> : tensor<20x24xf32>
    %0 = tandem.constant dense<0.0> : tensor<20x24xf32>
    %drop = tandem.compare lt %u, %p : tensor<20x24xf32>
    %t = tandem.matmul %a, %b : tensor<20x16xf32>, tensor<16x24xf32> -> tensor<20x24xf32>
    %y = tandem.select %drop, %0, %t : tensor<20x24xi1>, tensor<20x24xf32>
    return %y : tensor<20x24xf32>)"),
        {.tolerance = 1e-5, .kernels = 1});
}

// Layers that differ in the number of their draw alone; the products between
// them keep their kernels apart.
TEST(RandomBits, KernelsOfOtherDrawsAreOne) {
  std::string x = type("24x24", "f32"),
              body = operands("24x24", "24, 24", 576) + R"(
    %p = tandem.constant dense<0.25> : tensor<24x24xf32>
    %0 = tandem.constant dense<0.0> : tensor<24x24xf32>
)",
              last = "%x";
  for (std::string u : {"%u", "%v", "%w"}) {
    body += draw(u, "24x24", "f32", std::to_string(u[1] - 'a'));
    body += u + "t = tandem.matmul " + last + ", %a : " + x + ", " + x +
            " -> " + x + "\n" + u + "m = tandem.compare lt " + u +
            ", %p : " + x + "\n" + u + "y = tandem.select " + u + "m, %0, " +
            u + "t : tensor<24x24xi1>, " + x + "\n";
    last = u + "y";
  }
  std::string text =
      program("s: tensor<2xi64>, x: " + x + ", a: " + x + " -> " + x,
              body + "return " + last + " : " + x);
  check(text, {.tolerance = 1e-4, .kernels = 3});
  for (std::string target : {"cpu", "cuda"}) {
    Machine machine(text, target);
    ASSERT_EQ(machine.error(), "");
    llvm::SmallDenseSet<mlir::Attribute> functions;
    machine.lowered().walk(
        [&](LaunchOp launch) { functions.insert(launch.getKernel()); });
    EXPECT_EQ(functions.size(), 1u) << target;
  }
}
