//===- CollectiveTest.cpp - what ranks do together, and its gradients -----===//
//
// Each collective over 1 to 4 simulated ranks, over one axis of a mesh and over
// both: the result against its definition, and its gradients of first and
// second order against differences of the sum over ranks of <cotangent,
// result>.
//
//===----------------------------------------------------------------------===//
#include "ir/Collective.h"
#include "ir/Signature.h"
#include "ir/reference/Ranks.h"
#include "tests/gradients/GradientCheck.h"
#include "tests/ir/Random.h"
#include "tests/support/TestModule.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace tandem;
using namespace tandem::test;
using reference::Array;

namespace {

using OnRanks = std::vector<SmallVector<Array>>;

/// One collective, whose operand has 12 rows of 2 elements; `rows` are those of
/// its result for a group of so many ranks.
struct CollectiveRow {
  const char *name, *text;
  int64_t (*rows)(int64_t ranks);
  int64_t (*columns)(int64_t ranks);
};

int64_t all(int64_t) { return 12; }
int64_t cut(int64_t ranks) { return 12 / ranks; }
int64_t gathered(int64_t ranks) { return 12 * ranks; }
int64_t two(int64_t) { return 2; }
int64_t wider(int64_t ranks) { return 2 * ranks; }

const CollectiveRow rows[] = {
    {"AllReduce", "all_reduce sum %s over", all, two},
    {"ReduceScatter", "reduce_scatter sum %s dim 0 over", cut, two},
    {"AllGather", "all_gather %s dim 0 over", gathered, two},
    {"AllGatherColumns", "all_gather %s dim 1 over", all, wider},
    {"AllToAll", "all_to_all %s split 0 concat 1 over", cut, wider},
    {"AllToAllInPlace", "all_to_all %s split 0 concat 0 over", all, two},
    {"Broadcast", "broadcast_from %s root 0 over", all, two},
    {"RankSlice", "rank_slice %s dim 0 over", cut, two},
};

struct MeshRow {
  const char *name, *mesh, *axes;
};
const MeshRow meshes[] = {
    {"One", "data = 1", R"(["data"])"},
    {"Two", "data = 2", R"(["data"])"},
    {"Three", "data = 3", R"(["data"])"},
    {"Four", "data = 4", R"(["data"])"},
    {"OuterOfTwo", "data = 2, tensor = 2", R"(["data"])"},
    {"InnerOfTwo", "data = 2, tensor = 2", R"(["tensor"])"},
    {"Both", "data = 2, tensor = 2", R"(["data", "tensor"])"},
    {"BothTurned", "data = 2, tensor = 2", R"(["tensor", "data"])"},
};

int64_t groupOf(const MeshRow &mesh) {
  std::string axes = mesh.axes, sizes = mesh.mesh;
  if (axes.find(',') != std::string::npos)
    return 4;
  return sizes[7] - '0';
}

/// The collective of the square of `x`.
std::string textOf(const CollectiveRow &row, const MeshRow &mesh) {
  int64_t ranks = groupOf(mesh);
  std::string op = row.text, operand = "tensor<12x2xf64>";
  op.replace(op.find("%s"), 2, "%0");
  std::string type = "tensor<" + std::to_string(row.rows(ranks)) + "x" +
                     std::to_string(row.columns(ranks)) + "xf64>";
  return "module attributes {tandem.phase = \"functionalize\", tandem.mesh = "
         "#tandem.mesh<" +
         std::string(mesh.mesh) + ">} {\nfunc.func @graph(%x: " + operand +
         " {tandem.role = #tandem.role<input \"x\" {requires_grad}>}) -> (" +
         type + " {tandem.role = #tandem.role<output \"y\">}) {\n" +
         "%0 = tandem.mul %x, %x : " + operand + "\n%1 = tandem." + op + " " +
         mesh.axes + " : " + operand + " -> " + type + "\nreturn %1 : " + type +
         "\n}\n}";
}

OnRanks draw(func::FuncOp func, std::mt19937_64 &random) {
  OnRanks made(MeshAttr::of(func).getNumRanks());
  for (auto &own : made)
    for (Type type : func.getArgumentTypes())
      own.push_back(
          randomArray(cast<RankedTensorType>(type), random, -1, 1, 1));
  return made;
}

double inner(const Array &a, const Array &b) {
  EXPECT_EQ(a.shape, b.shape);
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}

using Case = std::tuple<CollectiveRow, MeshRow>;
class Collective : public ::testing::TestWithParam<Case> {};

/// The sum over ranks and outputs of <cotangent, result>, where the inputs are
/// moved along `direction`.
double along(func::FuncOp graph, OnRanks inputs, const OnRanks &direction,
             double step, const OnRanks &cotangents) {
  for (auto [own, by] : llvm::zip_equal(inputs, direction))
    for (auto [array, change] : llvm::zip_equal(own, by))
      for (int64_t i = 0; i < array.size(); ++i)
        array[i] += step * change[i];
  auto results = reference::evaluateRanks(graph, inputs);
  EXPECT_TRUE(succeeded(results));
  double sum = 0;
  for (auto [own, weights] : llvm::zip_equal(*results, cotangents))
    for (auto [array, weight] : llvm::zip_equal(own, weights))
      sum += inner(array, weight);
  return sum;
}

TEST_P(Collective, X16_GradientsOfBothOrdersAreThoseOfDifferences) {
  const auto &[row, mesh] = GetParam();
  TestModule t(textOf(row, mesh));
  ASSERT_TRUE(t.module) << t.diagnostics;
  std::mt19937_64 random(7);
  for (int order = 1; order <= 2; ++order) {
    OwningOpRef<ModuleOp> before = t.module->clone();
    auto graph = before->lookupSymbol<func::FuncOp>("graph");
    ASSERT_TRUE(runPasses(*t.module, "tandem-build-joint")) << t.diagnostics;
    auto joint = t.module->lookupSymbol<func::FuncOp>("joint");
    OnRanks inputs = draw(joint, random), direction = draw(graph, random);
    auto results = reference::evaluateRanks(joint, inputs);
    ASSERT_TRUE(succeeded(results)) << t.diagnostics;
    OnRanks primals(inputs.size()), cotangents(inputs.size());
    double expected = 0;
    for (size_t r = 0; r < inputs.size(); ++r) {
      for (auto [i, array] : llvm::enumerate(inputs[r]))
        (roleOfArgument(joint, i).getKind() == RoleKind::Cotangent
             ? cotangents[r]
             : primals[r])
            .push_back(array);
      size_t next = 0;
      for (auto [i, array] : llvm::enumerate((*results)[r]))
        if (roleOfResult(joint, i).getKind() == RoleKind::Grad)
          expected += inner(array, direction[r][next++]);
      ASSERT_EQ(next, direction[r].size());
    }
    double step = 1e-4;
    double difference = (along(graph, primals, direction, step, cotangents) -
                         along(graph, primals, direction, -step, cotangents)) /
                        (2 * step);
    EXPECT_NEAR(expected, difference, 1e-6 * (1 + std::abs(expected)))
        << "order " << order;
    if (order == 1)
      makeJointTheGraph(*t.module);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, Collective,
                         ::testing::Combine(::testing::ValuesIn(rows),
                                            ::testing::ValuesIn(meshes)),
                         [](const auto &info) {
                           return std::string(std::get<0>(info.param).name) +
                                  "Over" + std::get<1>(info.param).name;
                         });

/// The only result of @f on each rank, whose arguments are scalars of `values`.
std::vector<std::vector<double>>
run(const std::string &mesh, const std::string &body, const std::string &from,
    const std::string &to, std::vector<std::vector<double>> values) {
  TestModule t("module attributes {tandem.mesh = #tandem.mesh<" + mesh +
               ">} {\nfunc.func @f(%x: " + from + ") -> " + to + " {\n" + body +
               "\nreturn %y : " + to + "\n}\n}");
  EXPECT_TRUE(t.module) << t.diagnostics;
  if (!t.module)
    return {};
  func::FuncOp f = t.function("f");
  OnRanks arguments;
  for (std::vector<double> &own : values) {
    Array x(cast<RankedTensorType>(f.getArgumentTypes()[0]));
    x.data = std::move(own);
    arguments.push_back({x});
  }
  auto results = reference::evaluateRanks(f, arguments);
  EXPECT_TRUE(succeeded(results)) << t.diagnostics;
  std::vector<std::vector<double>> out;
  if (succeeded(results))
    for (auto &own : *results)
      out.push_back(own[0].data);
  return out;
}

using Numbers = std::vector<std::vector<double>>;

TEST(CollectiveReference, GroupsAreThoseThatDifferInTheirAxesAlone) {
  std::string body = R"(%y = tandem.all_reduce sum %x over ["AXIS"] :
      tensor<f32> -> tensor<f32>)";
  auto over = [&](const char *axis) {
    std::string text = body;
    text.replace(text.find("AXIS"), 4, axis);
    return run("a = 2, b = 3", text, "tensor<f32>", "tensor<f32>",
               {{1}, {2}, {4}, {8}, {16}, {32}});
  };
  EXPECT_EQ(over("a"), (Numbers{{9}, {18}, {36}, {9}, {18}, {36}}));
  EXPECT_EQ(over("b"), (Numbers{{7}, {7}, {7}, {56}, {56}, {56}}));
}

TEST(CollectiveReference, OrderInAGroupIsThatOfItsAxes) {
  auto over = [&](const std::string &axes) {
    return run("a = 2, b = 2",
               "%y = tandem.all_gather %x dim 0 over " + axes +
                   " : tensor<1xi32> -> tensor<4xi32>",
               "tensor<1xi32>", "tensor<4xi32>", {{0}, {1}, {2}, {3}});
  };
  EXPECT_EQ(over(R"(["a", "b"])")[3], (std::vector<double>{0, 1, 2, 3}));
  EXPECT_EQ(over(R"(["b", "a"])")[3], (std::vector<double>{0, 2, 1, 3}));
}

TEST(CollectiveReference, MaxAndMinKeepNaN) {
  double nan = std::nan("");
  auto all = [&](const std::string &reduce, Numbers values) {
    return run("a = 2",
               "%y = tandem.all_reduce " + reduce +
                   R"( %x over ["a"] : tensor<2xf32> -> tensor<2xf32>)",
               "tensor<2xf32>", "tensor<2xf32>", std::move(values))[0];
  };
  EXPECT_EQ(all("max", {{1, -2}, {-3, 5}}), (std::vector<double>{1, 5}));
  EXPECT_EQ(all("min", {{1, -2}, {-3, 5}}), (std::vector<double>{-3, -2}));
  EXPECT_TRUE(std::isnan(all("max", {{nan, 0}, {1, 0}})[0]));
  EXPECT_TRUE(std::isnan(all("min", {{1, 0}, {nan, 0}})[0]));
}

TEST(CollectiveReference, PiecesGoWhereTheirNumbersSay) {
  EXPECT_EQ(run("a = 2",
                R"(%y = tandem.all_to_all %x split 1 concat 0 over ["a"] :
                   tensor<1x4xf32> -> tensor<2x2xf32>)",
                "tensor<1x4xf32>", "tensor<2x2xf32>",
                {{1, 2, 3, 4}, {5, 6, 7, 8}}),
            (Numbers{{1, 2, 5, 6}, {3, 4, 7, 8}}));
  EXPECT_EQ(run("a = 2",
                R"(%y = tandem.reduce_scatter max %x dim 1 over ["a"] :
                   tensor<2x2xf32> -> tensor<2x1xf32>)",
                "tensor<2x2xf32>", "tensor<2x1xf32>",
                {{1, 2, 3, 4}, {4, 3, 2, 1}}),
            (Numbers{{4, 3}, {3, 4}}));
  EXPECT_EQ(run("a = 3",
                R"(tandem.barrier over ["a"]
                   %y = tandem.broadcast_from %x root 1 over ["a"] :
                   tensor<f32> -> tensor<f32>)",
                "tensor<f32>", "tensor<f32>", {{1}, {2}, {3}}),
            (Numbers{{2}, {2}, {2}}));
}

// X16: every rank goes round the loop equally often.
TEST(CollectiveReference, X16_InALoop) {
  EXPECT_EQ(run("a = 2",
                R"(%y = tandem.scan 3 carries(%x) inputs() constants() {
                   ^bb0(%c: tensor<f32>):
                     %s = tandem.all_reduce sum %c over ["a"] : tensor<f32> -> tensor<f32>
                     tandem.yield %s : tensor<f32>
                   } : (tensor<f32>) -> tensor<f32>)",
                "tensor<f32>", "tensor<f32>", {{1}, {2}}),
            (Numbers{{12}, {12}}));
}

TEST(CollectiveReference, OneRankAloneIsToldSo) {
  TestModule t(R"(module attributes {tandem.mesh = #tandem.mesh<a = 2>} {
    func.func @f(%x: tensor<f32>) -> tensor<f32> {
      %y = tandem.all_reduce sum %x over ["a"] : tensor<f32> -> tensor<f32>
      return %y : tensor<f32>
    }
  })");
  ASSERT_TRUE(t.module) << t.diagnostics;
  EXPECT_TRUE(failed(
      reference::evaluate(t.function("f"), {Array(ArrayRef<int64_t>())})));
  EXPECT_NE(t.diagnostics.find("expected to run on 2 ranks together"),
            std::string::npos)
      << t.diagnostics;
}

TEST(CollectiveGradient, OfAMaximumThereIsNone) {
  TestModule t(
      R"(module attributes {tandem.phase = "functionalize", tandem.mesh = #tandem.mesh<a = 2>} {
    func.func @graph(%x: tensor<f32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
        -> (tensor<f32> {tandem.role = #tandem.role<output "y">}) {
      %y = tandem.all_reduce max %x over ["a"] : tensor<f32> -> tensor<f32>
      return %y : tensor<f32>
    }
  })");
  ASSERT_TRUE(t.module) << t.diagnostics;
  EXPECT_FALSE(runPasses(*t.module, "tandem-build-joint"));
  EXPECT_NE(t.diagnostics.find("'tandem.all_reduce' op has no gradient for "
                               "'max': only sums over ranks have one"),
            std::string::npos)
      << t.diagnostics;
}

TEST(CollectiveCost, IsTheBytesThatARankSends) {
  TestModule t(R"(module attributes {tandem.mesh = #tandem.mesh<a = 4>} {
    func.func @f(%x: tensor<16xf32>) {
      %0 = tandem.all_reduce sum %x over ["a"] : tensor<16xf32> -> tensor<16xf32>
      %1 = tandem.reduce_scatter sum %x dim 0 over ["a"] : tensor<16xf32> -> tensor<4xf32>
      %2 = tandem.all_gather %1 dim 0 over ["a"] : tensor<4xf32> -> tensor<16xf32>
      %3 = tandem.all_to_all %x split 0 concat 0 over ["a"] : tensor<16xf32> -> tensor<16xf32>
      %4 = tandem.rank_slice %x dim 0 over ["a"] : tensor<16xf32> -> tensor<4xf32>
      return
    }
  })");
  ASSERT_TRUE(t.module) << t.diagnostics;
  std::vector<int64_t> bytes;
  for (auto op : t.function("f").getOps<CollectiveOpInterface>())
    bytes.push_back(op.getLinkBytes());
  EXPECT_EQ(bytes, (std::vector<int64_t>{96, 48, 48, 48, 0}));
}

} // namespace
