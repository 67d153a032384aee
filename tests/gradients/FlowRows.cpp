//===- FlowRows.cpp - gradient checks of branches and loops ---------------===//
//
// Bools and trip counts are drawn like any other integer; the row of each
// count that matters draws from one number.
//
//===----------------------------------------------------------------------===//
#include "tests/gradients/Rows.h"

using namespace tandem::test;

/// h' = tanh(h w + x), of which both h' and the sum are used.
static std::string scanBody(const std::string &trips, bool isReverse) {
  return "%h, %s = tandem.scan 5 " + std::string(isReverse ? "reverse " : "") +
         (trips.empty() ? "" : "trips " + trips + " ") +
         R"(carries(%0) inputs(%1) constants(%2) {
    ^bb0(%a: tensor<2x3xf64>, %x: tensor<2x3xf64>, %w: tensor<3x3xf64>):
      %m = tandem.matmul %a, %w : tensor<2x3xf64>, tensor<3x3xf64> -> tensor<2x3xf64>
      %b = tandem.add %m, %x : tensor<2x3xf64>
      %t = tandem.tanh %b : tensor<2x3xf64>
      tandem.yield %t, %b : tensor<2x3xf64>, tensor<2x3xf64>
    } : ()" +
         (trips.empty() ? "" : "tensor<i64>, ") +
         "tensor<2x3xf64>, tensor<5x2x3xf64>, tensor<3x3xf64>) -> "
         "(tensor<2x3xf64>, tensor<5x2x3xf64>)";
}

/// Branches of which one has a composite, and the other leaves %1 alone.
static const char *const ifBody = R"(
    %y = tandem.if %2 (%0, %1) then {
    ^bb0(%a: tensor<2x3xf64>, %b: tensor<2x3xf64>):
      %s = tandem.softmax %a dim 1 : tensor<2x3xf64>
      %m = tandem.mul %s, %b : tensor<2x3xf64>
      tandem.yield %m : tensor<2x3xf64>
    } else {
    ^bb0(%a: tensor<2x3xf64>, %b: tensor<2x3xf64>):
      %e = tandem.exp %a : tensor<2x3xf64>
      tandem.yield %e : tensor<2x3xf64>
    } : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>)";

/// A loop in a loop, with a branch in it. The counter is no number to
/// differentiate; %2, a constant of the outer loop, is one of the inner loop.
static const char *const nestedBody = R"(
    %h, %n, %s = tandem.scan 3 carries(%0, %3) inputs(%1) constants(%2) {
    ^bb0(%a: tensor<2xf64>, %i: tensor<i64>, %x: tensor<4x2xf64>, %w: tensor<2xf64>):
      %one = tandem.constant dense<1> : tensor<i64>
      %next = tandem.add %i, %one : tensor<i64>
      %o, %rows = tandem.scan 4 trips %i carries(%a) inputs(%x) constants(%w) {
      ^bb0(%c: tensor<2xf64>, %z: tensor<2xf64>, %v: tensor<2xf64>):
        %p = tandem.mul %c, %v : tensor<2xf64>
        %q = tandem.sin %p : tensor<2xf64>
        %r = tandem.add %q, %z : tensor<2xf64>
        tandem.yield %r, %p : tensor<2xf64>, tensor<2xf64>
      } : (tensor<i64>, tensor<2xf64>, tensor<4x2xf64>, tensor<2xf64>) -> (tensor<2xf64>, tensor<4x2xf64>)
      %two = tandem.constant dense<2> : tensor<i64>
      %big = tandem.compare ge %next, %two : tensor<i64>
      %u = tandem.if %big (%o, %a) then {
      ^bb0(%c: tensor<2xf64>, %d: tensor<2xf64>):
        %p = tandem.mul %c, %d : tensor<2xf64>
        tandem.yield %p : tensor<2xf64>
      } else {
      ^bb0(%c: tensor<2xf64>, %d: tensor<2xf64>):
        tandem.yield %c : tensor<2xf64>
      } : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
      tandem.yield %u, %next, %rows : tensor<2xf64>, tensor<i64>, tensor<4x2xf64>
    } : (tensor<2xf64>, tensor<i64>, tensor<3x4x2xf64>, tensor<2xf64>) -> (tensor<2xf64>, tensor<i64>, tensor<3x4x2xf64>))";

void tandem::test::addFlowRows(std::vector<GradientRow> &rows) {
  const std::string slice = tensorOf("2x3");
  auto number = [](int n) {
    return RowOperand{"tensor<i64>", double(n), double(n + 1), false};
  };
  std::vector<RowOperand> operands = {
      {slice}, {tensorOf("5x2x3")}, {tensorOf("3x3")}};
  std::vector<RowResult> results = {{"%h", slice}, {"%s", tensorOf("5x2x3")}};
  rows.push_back(
      {"tandem.scan", "scan", operands, scanBody("", false), results});
  rows.push_back(
      {"tandem.scan", "scan_reverse", operands, scanBody("", true), results});
  operands.push_back(number(3));
  rows.push_back(
      {"tandem.scan", "scan_trips", operands, scanBody("%3", false), results});
  rows.push_back({"tandem.scan", "scan_trips_reverse", operands,
                  scanBody("%3", true), results});
  operands.back() = number(0);
  rows.push_back({"tandem.scan", "scan_no_trips", operands,
                  scanBody("%3", false), results});
  operands.back() = number(9);
  rows.push_back({"tandem.scan", "scan_too_many_trips", operands,
                  scanBody("%3", false), results});
  rows.push_back(
      {"tandem.scan",
       "scan_nested",
       {{tensorOf("2")}, {tensorOf("3x4x2")}, {tensorOf("2")}, number(0)},
       nestedBody,
       {{"%h", tensorOf("2")}, {"%s", tensorOf("3x4x2")}}});
  for (int taken : {0, 1})
    rows.push_back({"tandem.if",
                    taken ? "if_then" : "if_else",
                    {{slice},
                     {slice},
                     {"tensor<i1>", double(taken), double(taken + 1), false}},
                    ifBody,
                    {{"%y", slice}}});
}
