//===- Ranks.cpp - a program on all ranks of a mesh, by the reference -----===//
#include "tests/shard/Ranks.h"

#include "ir/Sharding.h"
#include "ir/Signature.h"
#include "ir/reference/Ranks.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::test;

/// The index in the whole value of an index in the piece of `rank`.
static std::vector<int64_t> wholeIndex(func::FuncOp func, RoleAttr role,
                                       ArrayRef<int64_t> piece,
                                       ArrayRef<int64_t> index, int64_t rank) {
  std::vector<int64_t> whole(index);
  MeshAttr mesh = MeshAttr::of(func);
  if (ArrayAttr sharding = role.getSharding())
    for (auto [dim, axes] : llvm::enumerate(sharding.getAsRange<ArrayAttr>()))
      if (!axes.empty())
        whole[dim] += mesh.positionOf(rank, axes) * piece[dim];
  return whole;
}

/// True if there is such an element.
static bool isWithin(const Array &whole, ArrayRef<int64_t> index) {
  return llvm::all_of(llvm::zip_equal(index, whole.shape), [](auto pair) {
    return std::get<0>(pair) < std::get<1>(pair);
  });
}

/// Writes the piece of `rank` into `whole`, where other ranks have written
/// theirs.
static void join(func::FuncOp func, RoleAttr role, const Array &piece,
                 int64_t rank, Array &whole, std::vector<bool> &isThere) {
  reference::forEachIndex(piece.shape, [&](ArrayRef<int64_t> index) {
    auto place = wholeIndex(func, role, piece.shape, index, rank);
    if (!isWithin(whole, place))
      return;
    int64_t at = whole.at(place);
    bool isSame = whole[at] == piece(index) ||
                  (std::isnan(whole[at]) && std::isnan(piece(index)));
    if (isThere[static_cast<size_t>(at)])
      EXPECT_TRUE(isSame) << role.str() << " of rank " << rank << " is "
                          << piece(index) << ", not " << whole[at];
    isThere[static_cast<size_t>(at)] = true;
    whole[at] = piece(index);
  });
}

/// What `rank` has of `whole`, with what must not be used in its padding.
static Array pieceOf(func::FuncOp func, RoleAttr role, RankedTensorType type,
                     int64_t rank, const Array &whole) {
  Array piece(type);
  bool isFloat = isa<FloatType>(type.getElementType());
  int64_t count = 0;
  reference::forEachIndex(piece.shape, [&](ArrayRef<int64_t> index) {
    auto place = wholeIndex(func, role, piece.shape, index, rank);
    if (isWithin(whole, place))
      piece(index) = whole(place);
    else if (isFloat)
      piece(index) = ++count % 2 ? std::nan("") : HUGE_VAL;
    else if (!type.getElementType().isInteger(1))
      piece(index) = ++count % 2 ? 0 : 1000000007;
  });
  return piece;
}

Values tandem::test::runOnRanks(func::FuncOp func, const Values &values) {
  MeshAttr mesh = MeshAttr::of(func);
  int64_t ranks = mesh ? mesh.getNumRanks() : 1;
  std::vector<reference::Call> calls(static_cast<size_t>(ranks));
  for (auto [rank, call] : llvm::enumerate(calls)) {
    // Nothing is rounded, so that orders of sums make no difference.
    call.computed = [](Operation *, MutableArrayRef<Array>) {};
    for (BlockArgument argument : func.getArguments()) {
      RoleAttr role = roleOfArgument(func, argument.getArgNumber());
      auto found = values.find(role.str());
      EXPECT_NE(found, values.end()) << role.str();
      if (found == values.end())
        return {};
      call.arguments.push_back(
          pieceOf(func, role, cast<RankedTensorType>(argument.getType()),
                  int64_t(rank), found->second));
    }
  }
  std::vector<reference::Outcome> outcomes;
  if (mesh) {
    auto made = reference::runRanks(func, calls);
    EXPECT_TRUE(succeeded(made));
    if (failed(made))
      return {};
    outcomes = std::move(*made);
  } else {
    auto made = reference::run(func, calls.front());
    EXPECT_TRUE(succeeded(made));
    if (failed(made))
      return {};
    outcomes.push_back(std::move(*made));
  }
  Values results;
  for (unsigned i = 0, n = func.getNumResults(); i < n; ++i) {
    RoleAttr role = roleOfResult(func, i);
    Array whole(cast<RankedTensorType>(
        wholeType(func, role, func.getResultTypes()[i])));
    std::vector<bool> isThere(static_cast<size_t>(whole.size()));
    for (auto [rank, outcome] : llvm::enumerate(outcomes))
      join(func, role, *outcome.results[i], int64_t(rank), whole, isThere);
    EXPECT_FALSE(llvm::is_contained(isThere, false))
        << role.str() << " has elements that no rank has";
    results[role.str()] = std::move(whole);
  }
  return results;
}
