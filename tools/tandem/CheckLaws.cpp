//===- CheckLaws.cpp - what holds of gradients without knowing them -------===//
#include "tools/tandem/CheckLaws.h"
#include "ir/Signature.h"
#include "ir/reference/Rounding.h"
#include "runtime/model/Initialize.h"
#include "tools/tandem/CheckArrays.h"
#include "tools/tandem/CheckModel.h"
#include "tools/tandem/RoundingNoise.h"

#include <algorithm>
#include <numeric>
#include <set>

using namespace mlir;
using namespace tandem;
using reference::Array;
using runtime::CounterStream;

using Arrays = std::vector<Array>;
using Run = std::function<Result<NamedArrays>(const NamedArrays &)>;

namespace {

/// 2 g - h / 2: powers of two, so that what is put together is not rounded.
constexpr double kOfFirst = 2, kOfSecond = -0.5;

Array combined(const Array &first, const Array &second) {
  Array sum = first;
  for (int64_t i = 0; i < sum.size(); ++i)
    sum[i] = kOfFirst * first[i] + kOfSecond * second[i];
  return sum;
}

/// What the reference gives at some arguments, and what rounding changes of it.
struct Point {
  Arrays arguments;
  SmallVector<Array> results;
  std::vector<double> rounding;
};

Status evaluateAt(func::FuncOp joint, Point &point) {
  auto results = reference::evaluateUnrounded(joint, point.arguments);
  if (failed(results))
    return Status::failed("the reference cannot evaluate the joint program");
  point.results = std::move(*results);
  return Status::success();
}

Status roundAt(func::FuncOp joint, uint64_t seed, int samples, Point &point) {
  reference::Call call;
  llvm::append_range(call.arguments, point.arguments);
  auto rounding = roundingDistances(joint, call, point.results, seed, samples);
  if (failed(rounding))
    return Status::failed("the reference cannot evaluate the joint program");
  point.rounding.resize(rounding->size(), 0);
  for (auto [known, found] : llvm::zip_equal(point.rounding, *rounding))
    known = std::max(known, found);
  return Status::success();
}

/// Rounding is looked at where something is left for it to explain, and then
/// more often where that is not enough.
Status explain(func::FuncOp joint, uint64_t seed, MutableArrayRef<Point> points,
               std::vector<LawCheck> &checks,
               llvm::function_ref<void()> addRounding) {
  auto isExplained = [&] {
    return llvm::all_of(checks, [](const LawCheck &check) {
      return !check.isFinite ||
             check.compiled <=
                 std::max(kRelative, kOfRounding * check.rounding);
    });
  };
  for (auto [samples, from] :
       {std::pair(kSamples, seed), {kMoreSamples, ~seed}}) {
    if (isExplained())
      break;
    for (Point &point : points)
      if (Status s = roundAt(joint, from, samples, point); !s)
        return s;
    addRounding();
  }
  return Status::success();
}

/// Numbers that every type of floats holds, as their sum above, and no zero.
Array drawnCotangent(RankedTensorType type, uint64_t seed,
                     const std::string &what) {
  CounterStream stream(seed, runtime::streamOf(what));
  Array array(type);
  for (int64_t i = 0; i < array.size(); ++i)
    array[i] = (2 * std::floor(8 * stream.unit(i)) - 7) / 8;
  return array;
}

} // namespace

Result<std::vector<LawCheck>> tandem::checkLinear(func::FuncOp joint,
                                                  const Arrays &arguments,
                                                  uint64_t seed,
                                                  const Run &run) {
  Point points[3] = {
      {arguments, {}, {}}, {arguments, {}, {}}, {arguments, {}, {}}};
  NamedArrays given[3], code[3];
  for (unsigned i = 0, n = joint.getNumArguments(); i < n; ++i) {
    RoleAttr role = roleOfArgument(joint, i);
    if (role.getKind() != RoleKind::Cotangent)
      continue;
    auto type = cast<RankedTensorType>(joint.getArgumentTypes()[i]);
    std::string name = role.getName().str();
    Array g = drawnCotangent(type, seed, "cotangent g " + name),
          h = drawnCotangent(type, seed, "cotangent h " + name);
    const Array at[] = {g, h, combined(g, h)};
    for (int k = 0; k < 3; ++k)
      given[k][name] = points[k].arguments[i] = at[k];
  }
  for (int k = 0; k < 3; ++k) {
    if (Status s = evaluateAt(joint, points[k]); !s)
      return s;
    auto gradients = run(given[k]);
    if (!gradients)
      return gradients.status();
    code[k] = std::move(*gradients);
  }
  std::vector<unsigned> which;
  double largest = 0;
  auto sizeOf = [&](unsigned i) {
    return std::max({kOfFirst * norm(points[0].results[i]),
                     -kOfSecond * norm(points[1].results[i]),
                     norm(points[2].results[i])});
  };
  for (unsigned i = 0, n = joint.getNumResults(); i < n; ++i)
    if (roleOfResult(joint, i).getKind() == RoleKind::Grad) {
      which.push_back(i);
      if (double size = sizeOf(i); std::isfinite(size))
        largest = std::max(largest, size);
    }
  std::vector<LawCheck> checks;
  std::vector<double> scales;
  for (unsigned i : which) {
    LawCheck check;
    check.name = roleOfResult(joint, i).getName().str();
    double size = sizeOf(i);
    check.isFinite = std::isfinite(size);
    double scale = std::max({size, kOfLargest * largest, 1e-300});
    scales.push_back(scale);
    const Array *of[3] = {};
    for (int k = 0; k < 3; ++k) {
      auto found = code[k].find(check.name);
      if (found == code[k].end())
        return Status::failed("the artifact has no gradient of '" + check.name +
                              "'");
      of[k] = &found->second;
      check.compiled = std::max(check.compiled,
                                distance(*of[k], points[k].results[i]) / scale);
    }
    check.reference =
        distance(points[2].results[i],
                 combined(points[0].results[i], points[1].results[i])) /
        scale;
    double off = distance(*of[2], combined(*of[0], *of[1])) / scale;
    // Neither of max() is NaN's.
    check.compiled = off <= check.compiled ? check.compiled : off;
    checks.push_back(check);
  }
  auto addRounding = [&] {
    for (auto [check, i, scale] : llvm::zip_equal(checks, which, scales))
      check.rounding =
          (kOfFirst * points[0].rounding[i] -
           kOfSecond * points[1].rounding[i] + points[2].rounding[i]) /
          scale;
  };
  if (Status s = explain(joint, seed, points, checks, addRounding); !s)
    return s;
  return checks;
}

namespace {

/// An order of rows in which few are where they were.
std::vector<int64_t> drawnOrder(int64_t rows, uint64_t seed) {
  std::vector<int64_t> order(rows);
  std::iota(order.begin(), order.end(), 0);
  CounterStream stream(seed, runtime::streamOf("order of rows"));
  for (int64_t i = rows - 1; i > 0; --i)
    std::swap(order[i], order[int64_t(stream.unit(i) * double(i))]);
  return order;
}

Array permuted(const Array &array, ArrayRef<int64_t> order) {
  if (array.rank() == 0 || array.dim(0) != int64_t(order.size()))
    return array;
  Array moved = array;
  int64_t row = array.size() / int64_t(order.size());
  for (auto [to, from] : llvm::enumerate(order))
    std::copy_n(array.data.begin() + from * row, row,
                moved.data.begin() + int64_t(to) * row);
  return moved;
}

/// The name of a gradient or an output, or nothing.
std::string nameOf(RoleAttr role) {
  if (role.getKind() == RoleKind::Grad)
    return role.getName().str();
  return role.getKind() == RoleKind::Output
             ? "output '" + role.getName().str() + "'"
             : "";
}

} // namespace

Result<std::vector<LawCheck>> tandem::checkRows(func::FuncOp joint,
                                                const Arrays &arguments,
                                                uint64_t seed, const Run &run) {
  Point points[2] = {{arguments, {}, {}}, {arguments, {}, {}}};
  NamedArrays given;
  std::vector<int64_t> order;
  std::set<std::string> moved;
  for (unsigned i = 0, n = joint.getNumArguments(); i < n; ++i) {
    RoleAttr role = roleOfArgument(joint, i);
    const Array &array = arguments[i];
    if (role.getKind() != RoleKind::Input || array.rank() == 0)
      continue;
    if (order.empty())
      order = drawnOrder(array.dim(0), seed);
    if (array.dim(0) != int64_t(order.size()))
      continue;
    moved.insert(role.getName().str());
    given[role.getName().str()] = points[1].arguments[i] =
        permuted(array, order);
  }
  if (order.size() < 2)
    return Status::usage("--rows-alike needs an input with at least two rows");
  for (unsigned i = 0, n = joint.getNumArguments(); i < n; ++i)
    if (roleOfArgument(joint, i).getKind() == RoleKind::Cotangent)
      points[1].arguments[i] = permuted(arguments[i], order);
  for (Point &point : points)
    if (Status s = evaluateAt(joint, point); !s)
      return s;
  auto before = run({}), after = run(given);
  if (!before || !after)
    return before ? after.status() : before.status();
  double largest = 0;
  for (unsigned i = 0, n = joint.getNumResults(); i < n; ++i)
    if (double size = norm(points[0].results[i]);
        roleOfResult(joint, i).getKind() == RoleKind::Grad &&
        std::isfinite(size))
      largest = std::max(largest, size);
  std::vector<LawCheck> checks;
  std::vector<std::pair<unsigned, double>> which;
  for (unsigned i = 0, n = joint.getNumResults(); i < n; ++i) {
    RoleAttr role = roleOfResult(joint, i);
    LawCheck check;
    check.name = nameOf(role);
    if (check.name.empty())
      continue;
    // Of a param as long as the batch, rows are none of the batch's.
    bool isOfRows =
        role.getKind() == RoleKind::Output || moved.count(role.getName().str());
    auto expected = [&](const Array &array) {
      return isOfRows ? permuted(array, order) : array;
    };
    auto was = before->find(check.name), is = after->find(check.name);
    if (was == before->end() || is == after->end())
      return Status::failed("the artifact has no '" + check.name + "'");
    double size =
        std::max(norm(points[0].results[i]), norm(points[1].results[i]));
    bool isGrad = role.getKind() == RoleKind::Grad;
    double scale = std::max({size, isGrad ? kOfLargest * largest : 0, 1e-300});
    check.isFinite = std::isfinite(size);
    check.reference =
        distance(points[1].results[i], expected(points[0].results[i])) / scale;
    check.compiled = distance(is->second, expected(was->second)) / scale;
    checks.push_back(check);
    which.emplace_back(i, scale);
  }
  auto addRounding = [&] {
    for (auto [check, of] : llvm::zip_equal(checks, which))
      check.rounding =
          (points[0].rounding[of.first] + points[1].rounding[of.first]) /
          of.second;
  };
  if (Status s = explain(joint, seed, points, checks, addRounding); !s)
    return s;
  return checks;
}
