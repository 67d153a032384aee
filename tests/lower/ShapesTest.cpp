//===- ShapesTest.cpp - the forms of loop kernels over many shapes --------===//
//
// What decides the form of a kernel and how its threads divide the work: sizes
// around those of vectors, warps and blocks; which dimensions are reduced; how
// many levels there are; types.
//
//===----------------------------------------------------------------------===//
#include "tests/lower/Check.h"

#include "passes/plan/FormKernels.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;

namespace {

std::string tensor(const std::vector<int64_t> &shape, const char *element) {
  std::string type = "tensor<";
  for (int64_t size : shape)
    type += std::to_string(size) + "x";
  return type + element + ">";
}

std::string list(const std::vector<int64_t> &numbers) {
  std::string text;
  for (int64_t n : numbers)
    text += (text.empty() ? "" : ", ") + std::to_string(n);
  return "[" + text + "]";
}

/// A tensor normalized over `dims` (two levels), its sums and its maxima.
std::string normalized(const std::vector<int64_t> &shape,
                       const std::vector<int64_t> &dims,
                       const char *element = "f32") {
  std::vector<int64_t> kept, keptDims;
  for (size_t d = 0; d < shape.size(); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) {
      kept.push_back(shape[d]);
      keptDims.push_back(static_cast<int64_t>(d));
    }
  std::string full = tensor(shape, element), part = tensor(kept, element);
  std::string spread = " to " + list(shape) + " along " + list(keptDims) +
                       " : " + part + " -> " + full + "\n";
  std::string over = " over " + list(dims) + " : " + full + " -> " + part;
  return program(
      "x: " + full + " -> " + full + ", " + part + ", " + part,
      "%m = tandem.reduce_max %x" + over + "\n%mb = tandem.broadcast %m" +
          spread + "%c = tandem.sub %x, %mb : " + full +
          "\n%e = tandem.exp %c : " + full + "\n%s = tandem.reduce_sum %e" +
          over + "\n%sb = tandem.broadcast %s" + spread +
          "%y = tandem.div %e, %sb : " + full +
          "\nreturn %y, %s, %m : " + full + ", " + part + ", " + part);
}

TEST(ReductionShapes, RowsAroundWarpsAndBlocks) {
  for (int64_t length :
       {1, 3, 8, 15, 16, 17, 31, 33, 64, 129, 256, 260, 516, 768, 1028, 4100})
    check(normalized({9, length}, {1}), {.tolerance = 1e-5});
}

TEST(ReductionShapes, LongRows) {
  // Longer than what stays in registers; with a rest and without.
  for (int64_t length : {16384, 17001, 40004})
    check(normalized({2, length}, {1}), {.tolerance = 1e-5});
}

TEST(ReductionShapes, ColumnsAroundVectorsAndWarps) {
  for (int64_t columns : {1, 3, 4, 12, 33, 64, 132, 260})
    for (int64_t rows : {1, 8, 129})
      check(normalized({rows, columns}, {0}), {.tolerance = 1e-5});
}

TEST(ReductionShapes, AnyDimensions) {
  for (const auto &dims : std::vector<std::vector<int64_t>>{{0},
                                                            {1},
                                                            {2},
                                                            {3},
                                                            {0, 1},
                                                            {0, 2},
                                                            {0, 3},
                                                            {1, 2},
                                                            {1, 3},
                                                            {2, 3},
                                                            {0, 1, 2},
                                                            {0, 2, 3},
                                                            {1, 2, 3},
                                                            {0, 1, 3},
                                                            {0, 1, 2, 3}})
    for (const auto &shape :
         std::vector<std::vector<int64_t>>{{3, 4, 5, 8}, {2, 1, 7, 3}})
      check(normalized(shape, dims), {.tolerance = 1e-5});
}

TEST(ReductionShapes, Types) {
  for (const char *element : {"f64", "f16", "bf16"})
    for (int64_t dim : {0, 1}) {
      double tolerance = std::string(element) == "f64" ? 1e-12 : 2e-2;
      check(normalized({40, 48}, {dim}, element), {.tolerance = tolerance});
      check(normalized({33, 51}, {dim}, element), {.tolerance = tolerance});
    }
}

/// Reductions of booleans, and the first index of a maximum.
TEST(ReductionShapes, BooleansAndPositions) {
  for (int64_t dim : {0, 1})
    for (const auto &shape :
         std::vector<std::vector<int64_t>>{{5, 7}, {40, 36}, {3, 600}}) {
      std::string x = tensor(shape, "f32"), i = tensor(shape, "i32");
      std::string y = tensor({shape[1 - dim]}, "f32");
      std::string n = tensor({shape[1 - dim]}, "i32");
      std::string d = std::to_string(dim), k = std::to_string(1 - dim);
      std::string b = tensor(shape, "i1");
      check(program("x: " + x + " -> " + n,
                    "%m = tandem.reduce_max %x over [" + d + "] : " + x +
                        " -> " + y + "\n%mb = tandem.broadcast %m to " +
                        list(shape) + " along [" + k + "] : " + y + " -> " + x +
                        "\n%is = tandem.compare eq %x, %mb : " + x +
                        "\n%i = tandem.iota dim " + d + " : " + i +
                        "\n%far = tandem.constant dense<100000> : " + i +
                        "\n%p = tandem.select %is, %i, %far : " + b + ", " + i +
                        "\n%r = tandem.reduce_min %p over [" + d + "] : " + i +
                        " -> " + n + "\nreturn %r : " + n),
            {.tolerance = 0, .kernels = 1});
    }
}

/// Reads that are strided, transposed, padded and cut, in vectors or not.
TEST(PointwiseShapes, Reads) {
  for (int64_t n : {4, 5, 32, 33, 130})
    for (int64_t m : {3, 8, 36, 64}) {
      std::string x = tensor({n, m}, "f32"), t = tensor({m, n}, "f32");
      std::string low = tensor({n + 3, m + 2}, "f32"),
                  cut = tensor({n, (m + 1) / 2}, "f32");
      check(program(
          "x: " + x + ", y: " + t + " -> " + t + ", " + low + ", " + cut,
          "%0 = tandem.permute %x by [1, 0] : " + x + " -> " + t +
              "\n%1 = tandem.add %0, %y : " + t +
              "\n%2 = tandem.exp %x : " + x +
              "\n%3 = tandem.pad %2 low [1, 2] high [2, 0] interior "
              "[0, 0] with 3.0 : f32 : " +
              x + " -> " + low + "\n%4 = tandem.slice %x from [0, 0] to " +
              list({n, m}) + " step [1, 2] : " + x + " -> " + cut +
              "\n%5 = tandem.neg %4 : " + cut + "\nreturn %1, %3, %5 : " + t +
              ", " + low + ", " + cut));
    }
}

/// What is one number and takes long is computed once for each block.
TEST(PointwiseShapes, NumbersForAll) {
  for (int64_t n : {1, 31, 33, 1000, 1030}) {
    std::string x = tensor({n}, "f32");
    check(program("x: " + x + ", s: tensor<f64>, l: tensor<f32> -> " + x,
                  "%b = tandem.constant dense<0.9> : tensor<f64>\n"
                  "%p = tandem.pow %b, %s : tensor<f64>\n"
                  "%o = tandem.constant dense<1.0> : tensor<f64>\n"
                  "%c = tandem.sub %o, %p : tensor<f64>\n"
                  "%f = tandem.cast %c : tensor<f64> to tensor<f32>\n"
                  "%e = tandem.exp %l : tensor<f32>\n"
                  "%fb = tandem.broadcast %f to " +
                      list({n}) + " along [] : tensor<f32> -> " + x +
                      "\n%eb = tandem.broadcast %e to " + list({n}) +
                      " along [] : tensor<f32> -> " + x +
                      "\n%0 = tandem.mul %x, %fb : " + x +
                      "\n%1 = tandem.add %0, %eb : " + x +
                      "\nreturn %1 : " + x),
          {.low = 1});
  }
}

/// A value per row, and the row itself, overwrite what they come from.
TEST(InPlaceShapes, RowsAndColumns) {
  for (int64_t dim : {0, 1})
    for (const auto &shape :
         std::vector<std::vector<int64_t>>{{8, 16}, {6, 600}, {3, 17000}}) {
      std::string x = tensor(shape, "f32"), v = tensor({shape[1 - dim]}, "f32");
      std::string body = "%s = tandem.reduce_sum %x over [" +
                         std::to_string(dim) + "] : " + x + " -> " + v +
                         "\n%w = tandem.add %s, %v : " + v +
                         "\n%wb = tandem.broadcast %w to " + list(shape) +
                         " along [" + std::to_string(1 - dim) + "] : " + v +
                         " -> " + x + "\n%y = tandem.sub %x, %wb : " + x +
                         "\nreturn %y, %w : " + x + ", " + v;
      std::string text =
          "module @m attributes {tandem.phase = \"partition\"} {\n"
          "func.func @step(%x: " +
          x + " {tandem.role = #tandem.role<state \"x\">}, %v: " + v +
          " {tandem.role = #tandem.role<state \"v\">}) -> (" + x +
          " {tandem.role = #tandem.role<update of \"x\">}, " + v +
          " {tandem.role = #tandem.role<update of \"v\">}) {\n" + body +
          "\n}\n}\n";
      Machine machine(text, "cuda");
      ASSERT_EQ(machine.error(), "");
      auto kernel = machine.kernels("step")[0];
      ASSERT_TRUE(kernel.getInPlaceAttr()) << text;
      Arrays arguments = machine.randomArguments("step", 3);
      Arrays expected = machine.reference("step", arguments);
      for (int64_t order : {0, 1, 2})
        compare(machine.run("step", arguments, order), expected, 1e-4);
      EXPECT_EQ(machine.error(), "");
    }
}

/// Small updates are the parts of one kernel, also where they read the same
/// numbers and one of these is updated itself.
TEST(InPlaceShapes, UpdatesOfManyParameters) {
  std::string arguments, results, body, types, values;
  auto add = [](std::string &list, const std::string &item) {
    list += (list.empty() ? "" : ", ") + item;
  };
  add(arguments, "%s: tensor<f32> {tandem.role = #tandem.role<state \"s\">}");
  body = "%one = tandem.constant dense<1.0> : tensor<f32>\n"
         "%b = tandem.constant dense<0.9> : tensor<f32>\n"
         "%t = tandem.add %s, %one : tensor<f32>\n"
         "%p = tandem.pow %b, %t : tensor<f32>\n";
  int64_t sizes[] = {1, 5, 64, 1000, 2050};
  for (int64_t i = 0; i < 5; ++i) {
    std::string x = tensor({sizes[i]}, "f32"), n = std::to_string(i);
    add(arguments, "%w" + n + ": " + x +
                       " {tandem.role = #tandem.role<param \"w" + n + "\">}");
    add(arguments, "%g" + n + ": " + x +
                       " {tandem.role = #tandem.role<input \"g" + n + "\">}");
    add(results, x + " {tandem.role = #tandem.role<update of \"w" + n + "\">}");
    body += "%p" + n + " = tandem.broadcast %p to " + list({sizes[i]}) +
            " along [] : tensor<f32> -> " + x + "\n%d" + n +
            " = tandem.mul %g" + n + ", %p" + n + " : " + x + "\n%y" + n +
            " = tandem.sub %w" + n + ", %d" + n + " : " + x + "\n";
    add(values, "%y" + n);
    add(types, x);
  }
  add(results, "tensor<f32> {tandem.role = #tandem.role<update of \"s\">}");
  std::string text = "module @m attributes {tandem.phase = \"partition\"} {\n"
                     "func.func @step(" +
                     arguments + ") -> (" + results + ") {\n" + body +
                     "return " + values + ", %t : " + types +
                     ", tensor<f32>\n}\n}\n";
  for (const char *target : {"cpu", "cuda"}) {
    Machine machine(text, target);
    ASSERT_EQ(machine.error(), "") << text;
    auto kernels = machine.kernels("step");
    if (std::string(target) == "cuda") {
      ASSERT_LE(kernels.size(), 2u); // what several of them read may be apart
      auto parts = kernels.back().getPartsAttr();
      ASSERT_TRUE(parts);
      EXPECT_GE(parts.size(), 4);
      EXPECT_TRUE(kernels.back().getInPlaceAttr());
    } else {
      EXPECT_GT(kernels.size(), 2u);
    }
    Arrays numbers = machine.randomArguments("step", 3);
    Arrays expected = machine.reference("step", numbers);
    for (int64_t order : {0, 1, 2})
      compare(machine.run("step", numbers, order), expected, 2e-6);
    EXPECT_EQ(machine.error(), "");
  }
}

/// Steps of vectors of these sizes: each is updated by the sum of 16 rows, by a
/// count of its own. The last is updated by a vector.
std::string vectorSteps(const std::vector<int64_t> &sizes) {
  std::string arguments, results, body, types, values;
  auto add = [](std::string &list, const std::string &item) {
    list += (list.empty() ? "" : ", ") + item;
  };
  body = "%b = tandem.constant dense<0.9> : tensor<f32>\n";
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::string x = tensor({sizes[i]}, "f32"), n = std::to_string(i);
    bool isSum = i + 1 < sizes.size();
    std::string g = isSum ? tensor({16, sizes[i]}, "f32") : x;
    add(arguments, "%w" + n + ": " + x +
                       " {tandem.role = #tandem.role<param \"w" + n + "\">}");
    add(arguments, "%g" + n + ": " + g +
                       " {tandem.role = #tandem.role<input \"g" + n + "\">}");
    add(arguments, "%t" + n +
                       ": tensor<f32> {tandem.role = #tandem.role<input \"t" +
                       n + "\">}");
    add(results, x + " {tandem.role = #tandem.role<update of \"w" + n + "\">}");
    body += "%p" + n + " = tandem.pow %b, %t" + n + " : tensor<f32>\n%q" + n +
            " = tandem.broadcast %p" + n + " to " + list({sizes[i]}) +
            " along [] : tensor<f32> -> " + x + "\n";
    std::string s = "%g" + n;
    if (isSum) {
      s = "%s" + n;
      body += s + " = tandem.reduce_sum %g" + n + " over [0] : " + g + " -> " +
              x + "\n";
    }
    body += "%d" + n + " = tandem.mul " + s + ", %q" + n + " : " + x + "\n%y" +
            n + " = tandem.sub %w" + n + ", %d" + n + " : " + x + "\n";
    add(values, "%y" + n);
    add(types, x);
  }
  return "module @m attributes {tandem.phase = \"partition\"} {\n"
         "func.func @step(" +
         arguments + ") -> (" + results + ") {\n" + body + "return " + values +
         " : " + types + "\n}\n}\n";
}

/// The barriers in the code of a module's kernels.
size_t countBarriers(mlir::ModuleOp module) {
  size_t count = 0;
  module.walk([&](mlir::Operation *op) {
    count += op->getName().getStringRef().contains("barrier");
  });
  return count;
}

/// Updates that begin with a sum are parts of one kernel too. Parts of equal
/// sizes share code, whose pointers a block chooses.
TEST(InPlaceShapes, UpdatesThatSum) {
  std::vector<int64_t> sizes{64, 1000, 64, 5, 1000, 64, 64, 2050};
  std::string text = vectorSteps(sizes);
  for (const char *target : {"cpu", "cuda"}) {
    Machine machine(text, target);
    ASSERT_EQ(machine.error(), "") << text;
    auto kernels = machine.kernels("step");
    if (std::string(target) == "cuda") {
      ASSERT_EQ(kernels.size(), 1u);
      auto parts = kernels[0].getPartsAttr();
      ASSERT_TRUE(parts);
      EXPECT_EQ(parts.size(), 8);
      ASSERT_TRUE(kernels[0].getInPlaceAttr());
      EXPECT_EQ(kernels[0].getInPlaceAttr().getPairs().size(), 8u);
    } else {
      EXPECT_GT(kernels.size(), 2u);
    }
    Arrays numbers = machine.randomArguments("step", 3);
    Arrays expected = machine.reference("step", numbers);
    for (int64_t order : {0, 1, 2})
      compare(machine.run("step", numbers, order), expected, 4e-6);
    EXPECT_EQ(machine.error(), "");
  }
  Machine few(vectorSteps({64, 64, 7}), "cuda");
  Machine many(vectorSteps({64, 64, 64, 64, 64, 64, 7}), "cuda");
  ASSERT_EQ(few.error() + many.error(), "");
  EXPECT_GT(countBarriers(few.lowered()), 0u);
  EXPECT_EQ(countBarriers(few.lowered()), countBarriers(many.lowered()));
}

//===----------------------------------------------------------------------===//
// Windows and tables
//===----------------------------------------------------------------------===//

TEST(WindowShapes, Maxima) {
  struct Case {
    int64_t h, w, kernel, stride, before, dilation;
    const char *element;
  };
  for (const Case &c :
       {Case{9, 11, 3, 2, 1, 1, "f32"}, Case{8, 8, 2, 2, 0, 1, "bf16"},
        Case{7, 10, 3, 1, 1, 2, "f32"}, Case{64, 60, 3, 2, 1, 1, "f32"},
        Case{5, 5, 5, 1, 0, 1, "f64"}}) {
    auto out = [&](int64_t n) {
      return (n + 2 * c.before - (c.kernel - 1) * c.dilation - 1) / c.stride +
             1;
    };
    std::string x = tensor({2, 3, c.h, c.w}, c.element);
    std::string y = tensor({2, 3, out(c.h), out(c.w)}, c.element);
    std::string i = tensor({2, 3, out(c.h), out(c.w)}, "i32");
    check(program("x: " + x + ", dy: " + y + " -> " + y + ", " + i + ", " + x +
                      ", " + y,
                  "%y, %i = tandem.max_pool2d %x kernel " +
                      list({c.kernel, c.kernel}) + " strides " +
                      list({c.stride, c.stride}) + " padding " +
                      list({c.before, c.before, c.before, c.before}) +
                      " dilation " + list({c.dilation, c.dilation}) + " : " +
                      x + " -> " + y + ", " + i +
                      "\n%dx = tandem.max_pool2d_grad %dy, %i to " +
                      list({2, 3, c.h, c.w}) + " : " + y + ", " + i + " -> " +
                      x + "\n%t = tandem.max_pool2d_take %x, %i : " + x + ", " +
                      i + " -> " + y + "\nreturn %y, %i, %dx, %t : " + y +
                      ", " + i + ", " + x + ", " + y),
          {.tolerance = std::string(c.element) == "bf16" ? 2e-2 : 2e-6});
  }
}

/// Many elements for one position, in a plane of several blocks, with indices
/// outside of it.
TEST(WindowShapes, ManyElementsForOnePosition) {
  Arrays arguments = {reference::Array(llvm::ArrayRef<int64_t>{1, 2, 20, 30}),
                      reference::Array(llvm::ArrayRef<int64_t>{1, 2, 20, 30})};
  for (int64_t i = 0; i < arguments[0].size(); ++i) {
    arguments[0][i] = static_cast<float>(std::sin(static_cast<double>(i)));
    arguments[1][i] = static_cast<double>(i % 3 ? (i * 37) % 7300 - 100 : 5);
  }
  check(program("dy: tensor<1x2x20x30xf32>, i: tensor<1x2x20x30xi32> -> "
                "tensor<1x2x80x90xf32>",
                "%0 = tandem.max_pool2d_grad %dy, %i to [1, 2, 80, 90] : "
                "tensor<1x2x20x30xf32>, tensor<1x2x20x30xi32> -> "
                "tensor<1x2x80x90xf32>\nreturn %0 : tensor<1x2x80x90xf32>"),
        {}, &arguments);
}

TEST(WindowShapes, Means) {
  for (const char *count : {"true", "false"})
    for (auto [kernel, stride, before] :
         {std::tuple<int64_t, int64_t, int64_t>{3, 1, 1},
          {2, 2, 0},
          {3, 2, 1}}) {
      int64_t h = 9, w = 12;
      auto out = [&, kernel = kernel, stride = stride,
                  before = before](int64_t n) {
        return (n + 2 * before - kernel) / stride + 1;
      };
      std::string x = tensor({2, 3, h, w}, "f32");
      std::string y = tensor({2, 3, out(h), out(w)}, "f32");
      std::string about = " kernel " + list({kernel, kernel}) + " strides " +
                          list({stride, stride}) + " padding " +
                          list({before, before, before, before}) +
                          " {count_include_pad = " + count + "} : ";
      check(program("x: " + x + ", dy: " + y + " -> " + y + ", " + x,
                    "%y = tandem.avg_pool2d %x" + about + x + " -> " + y +
                        "\n%dx = tandem.avg_pool2d_grad %dy to " +
                        list({2, 3, h, w}) + about + y + " -> " + x +
                        "\nreturn %y, %dx : " + y + ", " + x));
    }
}

TEST(IndexedShapes, TakeAndItsGradient) {
  for (auto [rows, width, count] :
       {std::tuple<int64_t, int64_t, int64_t>{7, 1, 5},
        {300, 3, 700},
        {11, 64, 300},
        {1000, 33, 600},
        {5, 520, 1000},
        {3, 1, 4000}})
    for (const char *element : {"f32", "bf16"}) {
      std::string table = tensor({rows, width}, element);
      std::string index = tensor({count}, "i32");
      std::string taken = tensor({count, width}, element);
      Arrays arguments = {
          reference::Array(llvm::ArrayRef<int64_t>{rows, width}),
          reference::Array(llvm::ArrayRef<int64_t>{count}),
          reference::Array(llvm::ArrayRef<int64_t>{count, width})};
      // Numbers whose sums are exact in every type.
      for (int64_t i = 0; i < arguments[0].size(); ++i)
        arguments[0][i] = static_cast<double>(i % 13) - 6;
      for (int64_t i = 0; i < count; ++i) // some outside, some often
        arguments[1][i] =
            static_cast<double>(i % 5 == 0 ? 1 : (i * 7919) % (rows + 4) - 2);
      for (int64_t i = 0; i < arguments[2].size(); ++i)
        arguments[2][i] = static_cast<double>(i % 3) - 1;
      check(program("t: " + table + ", i: " + index + ", dy: " + taken +
                        " -> " + taken + ", " + table,
                    "%y = tandem.take %t, %i : " + table + ", " + index +
                        " -> " + taken + "\n%g = tandem.take_grad %dy, %i to " +
                        list({rows, width}) + " : " + taken + ", " + index +
                        " -> " + table + "\nreturn %y, %g : " + taken + ", " +
                        table),
            {.tolerance = 1e-5}, &arguments);
    }
}

} // namespace
