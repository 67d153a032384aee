//===- OneHotTest.cpp - sums that are one element, and short rows ---------===//
//
// A label's logit is a sum over its row of what is zero but for one element.
// Long rows read that element alone, rows shorter than a vector have code for
// each of their elements; the results are those of the sum either way.
//
//===----------------------------------------------------------------------===//
#include "tests/lower/Check.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;

namespace {

/// Of x [rows..., columns] and labels [rows...]: exp(x - largest), its sum, and
/// the labels' elements of x - largest, which are 0 outside of the row.
std::string picked(const std::string &rows, int64_t columns,
                   const std::string &label = "i64", bool isLabelFirst = false,
                   const std::string &zero = "0.0") {
  std::string dims, shape;
  int64_t rank = 0;
  for (size_t i = 0; i <= rows.size(); ++i)
    if (i == rows.size() || rows[i] == 'x')
      dims += (rank ? ", " : "") + std::to_string(rank), ++rank;
  shape = rows;
  for (size_t at = 0; (at = shape.find('x', at)) != std::string::npos; at += 2)
    shape.replace(at, 1, ", ");
  std::string wide = rows + "x" + std::to_string(columns) + "x";
  std::string full = "tensor<" + wide + "f32>",
              row = "tensor<" + rows + "xf32>";
  std::string hits = "tensor<" + wide + label + ">",
              labels = "tensor<" + rows + "x" + label + ">";
  std::string to = " to [" + shape + ", " + std::to_string(columns) +
                   "] along [" + dims + "] : ";
  std::string over =
      " over [" + std::to_string(rank) + "] : " + full + " -> " + row + "\n";
  return program(
      "x: " + full + ", t: " + labels + " -> " + full + ", " + row + ", " + row,
      "%m = tandem.reduce_max %x" + over + "%mb = tandem.broadcast %m" + to +
          row + " -> " + full + "\n%c = tandem.sub %x, %mb : " + full +
          "\n%e = tandem.exp %c : " + full + "\n%s = tandem.reduce_sum %e" +
          over + "%i = tandem.iota dim " + std::to_string(rank) + " : " + hits +
          "\n%tb = tandem.broadcast %t" + to + labels + " -> " + hits +
          "\n%hit = tandem.compare eq " +
          (isLabelFirst ? "%tb, %i : " : "%i, %tb : ") + hits +
          "\n%z = tandem.constant dense<" + zero + "> : " + full +
          "\n%y = tandem.select %hit, %c, %z : tensor<" + wide + "i1>, " +
          full + "\n%p = tandem.reduce_sum %y" + over +
          "%pb = tandem.broadcast %p" + to + row + " -> " + full +
          "\n%g = tandem.add %e, %pb : " + full +
          "\nreturn %g, %s, %p : " + full + ", " + row + ", " + row);
}

/// Labels below, in and above [0, columns), from all over the rows.
Arrays arguments(int64_t rows, int64_t columns) {
  Arrays result = {reference::Array(llvm::ArrayRef<int64_t>{rows, columns}),
                   reference::Array(llvm::ArrayRef<int64_t>{rows})};
  for (int64_t i = 0; i < rows * columns; ++i)
    result[0][i] = static_cast<float>(std::sin(static_cast<double>(i * 7)));
  for (int64_t i = 0; i < rows; ++i)
    result[1][i] = static_cast<double>((i * 5) % (columns + 4) - 2);
  return result;
}

TEST(Picked, RowsOfAllLengths) {
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{35, 2},
                               {70, 3},
                               {33, 10},
                               {50, 15},
                               {7, 16},
                               {19, 17},
                               {5, 100},
                               {3, 1001},
                               {2, 5003}}) {
    SCOPED_TRACE(columns);
    Arrays given = arguments(rows, columns);
    check(picked(std::to_string(rows), columns), {.kernels = 1}, &given);
  }
}

TEST(Picked, LabelsOfAllTypes) {
  for (const char *label : {"i8", "i16", "i32", "i64"})
    for (int64_t columns : {9, 40}) {
      SCOPED_TRACE(label);
      Arrays given = arguments(37, columns);
      check(picked("37", columns, label, /*isLabelFirst=*/columns == 40),
            {.kernels = 1}, &given);
    }
}

TEST(Picked, RowsOfSeveralDimensions) {
  for (int64_t columns : {5, 29})
    check(picked("3x7x2", columns), {.low = 0, .high = 5});
}

// What is not zero elsewhere is a sum.
TEST(Picked, OtherwiseNotZero) {
  for (int64_t columns : {6, 50}) {
    Arrays given = arguments(21, columns);
    check(picked("21", columns, "i64", false, "0.5"), {.tolerance = 1e-5},
          &given);
  }
}

// A NaN spoils its own row alone, and the label's element only where it is one.
TEST(Picked, NaN) {
  for (int64_t columns : {8, 33}) {
    Arrays given = arguments(20, columns);
    given[0][columns + 3] = NAN;
    given[0][5 * columns + 1] = -INFINITY;
    given[0][9 * columns] = INFINITY;
    check(picked("20", columns), {}, &given);
  }
}

} // namespace
