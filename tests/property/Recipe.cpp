//===- Recipe.cpp - random programs as lists of choices -------------------===//
#include "tests/property/Recipe.h"

#include <random>

using namespace tandem::property;

/// How often each action is chosen, in the order of Action.
static constexpr unsigned kWeights[] = {18, 16, 6, 18, 22, 4, 6, 3, 2, 8, 10};

Recipe tandem::property::generate(uint64_t seed, unsigned longest) {
  std::mt19937_64 random(seed);
  auto below = [&](uint64_t n) { return static_cast<uint32_t>(random() % n); };
  Recipe recipe{seed, {}, {}};
  for (uint32_t i = 0, n = 1 + below(4); i < n; ++i)
    recipe.arguments.push_back({static_cast<Kind>(below(3)), below(3) != 0,
                                below(16), below(4) ? 0 : 1 + below(1 << 16)});
  unsigned total = 0;
  for (unsigned weight : kWeights)
    total += weight;
  for (uint32_t i = 0, n = 2 + below(longest - 1); i < n; ++i) {
    unsigned at = below(total), action = 0;
    while (at >= kWeights[action])
      at -= kWeights[action++];
    recipe.steps.push_back(
        {static_cast<Action>(action),
         {below(1 << 16), below(1 << 16), below(1 << 16), below(1 << 16)}});
  }
  // What most programs are for.
  for (uint32_t i = 0, n = below(4); i < n; ++i)
    recipe.steps.push_back({Action::Output, {below(3), below(1 << 16), 0, 0}});
  return recipe;
}

Recipe
tandem::property::shrink(Recipe recipe,
                         const std::function<bool(const Recipe &)> &fails) {
  bool smaller = true;
  auto tried = [&](const Recipe &candidate) {
    if (!fails(candidate))
      return false;
    recipe = candidate;
    return smaller = true;
  };
  while (smaller) {
    smaller = false;
    // Runs of steps, the longest first.
    for (size_t length = recipe.steps.size(); length > 0; length /= 2)
      for (size_t i = 0; i + length <= recipe.steps.size();) {
        Recipe candidate = recipe;
        candidate.steps.erase(candidate.steps.begin() + i,
                              candidate.steps.begin() + i + length);
        if (!tried(candidate))
          ++i;
      }
    for (size_t i = 0; i < recipe.arguments.size();) {
      Recipe candidate = recipe;
      candidate.arguments.erase(candidate.arguments.begin() + i);
      if (candidate.arguments.empty() || !tried(candidate))
        ++i;
    }
    for (size_t i = 0; i < recipe.arguments.size(); ++i) {
      Recipe candidate = recipe;
      if (candidate.arguments[i].requiresGrad) {
        candidate.arguments[i].requiresGrad = false;
        tried(candidate);
      }
      candidate = recipe;
      if (candidate.arguments[i].alias) {
        candidate.arguments[i].alias = 0;
        tried(candidate);
      }
      candidate = recipe;
      if (candidate.arguments[i].shape) {
        candidate.arguments[i].shape = 0;
        tried(candidate);
      }
    }
    // Simpler choices: 0 is the simplest.
    for (size_t i = 0; i < recipe.steps.size(); ++i)
      for (size_t k = 0; k < recipe.steps[i].choice.size(); ++k)
        for (uint32_t simple : {0u, 1u}) {
          if (recipe.steps[i].choice[k] <= simple)
            break;
          Recipe candidate = recipe;
          candidate.steps[i].choice[k] = simple;
          if (tried(candidate))
            break;
        }
  }
  return recipe;
}
