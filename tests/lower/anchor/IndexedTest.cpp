//===- IndexedTest.cpp - rows by index on the cpu -------------------------===//
#include "tests/lower/anchor/KernelCheck.h"

using namespace tandem::test;

static std::string tensor(std::string shape, std::string element) {
  return "tensor<" + shape + element + ">";
}

/// Checks take and its gradient for a table of `rows` rows of shape `row` and
/// indices of shape `at` (both end in "x" or are empty).
static void check(int64_t rows, std::string row, std::string at,
                  std::string element, std::string index, double repeats) {
  std::string size = std::to_string(rows), sizes = size;
  for (char c : "x" + row)
    sizes += c == 'x' ? std::string(", ") : std::string(1, c);
  sizes.resize(sizes.size() - 2); // what the last x became
  std::string table = tensor(size + "x" + row, element);
  std::string indices = tensor(at, index);
  std::string y = tensor(at + row, element);
  checkKernel(kernelModule({table, indices}, {y},
                           "%y = tandem.take %0, %1 : " + table + ", " +
                               indices + " -> " + y +
                               "\ntandem.yield %y : " + y),
              {}, rows + 1);
  if (element[0] == 'i')
    return;
  checkKernel(kernelModule({y, indices}, {table},
                           "%y = tandem.take_grad %0, %1 to [" + sizes +
                               "] : " + y + ", " + indices + " -> " + table +
                               "\ntandem.yield %y : " + table),
              {repeats}, rows + 1);
}

TEST(Indexed, Shapes) {
  check(10, "16x", "7x", "f32", "i64", 7);
  check(10, "37x", "4x5x", "f32", "i32", 20);
  check(100, "3x5x", "50x", "f32", "i64", 50);
  check(1, "1x", "1x", "f32", "i64", 1);
  check(5, "", "9x", "f32", "i64", 9);
  check(7, "4x", "", "f32", "i32", 1);
}

TEST(Indexed, WideRows) { check(40, "70000x", "6x", "f32", "i64", 6); }

TEST(Indexed, Elements) {
  for (const char *element : {"f64", "bf16", "f16", "i32", "i1", "i64"})
    check(12, "9x", "30x", element, "i64", 30);
  for (const char *index : {"i8", "i16"})
    check(12, "9x", "30x", "f32", index, 30);
}

TEST(Indexed, EpilogueAndView) {
  checkKernel(
      kernelModule({"tensor<30x8xf32>", "tensor<6x2xi64>", "tensor<6x8xf32>"},
                   {"tensor<2x6x8xf32>"}, R"(
    %i = tandem.permute %1 by [1, 0] : tensor<6x2xi64> -> tensor<2x6xi64>
    %y = tandem.take %0, %i : tensor<30x8xf32>, tensor<2x6xi64> -> tensor<2x6x8xf32>
    %p = tandem.broadcast %2 to [2, 6, 8] along [1, 2] : tensor<6x8xf32> -> tensor<2x6x8xf32>
    %z = tandem.add %y, %p : tensor<2x6x8xf32>
    tandem.yield %z : tensor<2x6x8xf32>)"),
      {}, 29);
  checkKernel(
      kernelModule({"tensor<12x8xf32>", "tensor<12xi64>", "tensor<30x8xf32>"},
                   {"tensor<30x8xf32>"}, R"(
    %y = tandem.take_grad %0, %1 to [30, 8] : tensor<12x8xf32>, tensor<12xi64> -> tensor<30x8xf32>
    %z = tandem.sub %2, %y : tensor<30x8xf32>
    tandem.yield %z : tensor<30x8xf32>)"),
      {12}, 29);
}
