//===- Hooks.cpp - what a user wants called at a node ---------------------===//
#include "runtime/graph/Hooks.h"
#include "runtime/graph/Leaf.h"
#include "runtime/graph/Ops.h"

namespace tandem::graph {

static uint64_t nextKey() {
  static std::atomic<uint64_t> key{1};
  return key++;
}

uint64_t addTensorHook(const Edge &edge, NodeHooks::TensorHook hook) {
  uint64_t key = nextKey();
  edge.node->makeHooks().tensor.add(key, std::move(hook), edge.input);
  return key;
}

uint64_t addPreHook(Node &node, NodeHooks::PreHook hook) {
  uint64_t key = nextKey();
  node.makeHooks().pre.add(key, std::move(hook));
  return key;
}

uint64_t addPostHook(Node &node, NodeHooks::PostHook hook) {
  uint64_t key = nextKey();
  node.makeHooks().post.add(key, std::move(hook));
  return key;
}

Result<uint64_t> addAccumulatedHook(Node &node,
                                    NodeHooks::AccumulatedHook hook) {
  if (!node.isLeaf())
    return Status::usage("node " + describe(node) +
                         " is no leaf: nothing is accumulated there");
  uint64_t key = nextKey();
  node.makeHooks().accumulated.add(key, std::move(hook));
  return key;
}

bool removeHook(Node &node, uint64_t key) {
  return node.hooks() && node.hooks()->remove(key);
}

std::shared_ptr<Retained> retain(const Edge &edge) {
  return edge.node->makeHooks().retained.make(static_cast<size_t>(edge.input));
}

void moveRetained(const Edge &from, const Edge &to) {
  if (!from || !to || !from.node->hooks())
    return;
  std::shared_ptr<Retained> moved = from.node->hooks()->retained.exchange(
      static_cast<size_t>(from.input), nullptr);
  if (moved)
    to.node->makeHooks().retained.exchange(static_cast<size_t>(to.input),
                                           std::move(moved));
}

size_t Places::size() const {
  std::lock_guard lock(mutex);
  return places.size();
}

std::shared_ptr<Retained> Places::at(size_t input) const {
  std::lock_guard lock(mutex);
  return input < places.size() ? places[input] : nullptr;
}

std::shared_ptr<Retained> Places::make(size_t input) {
  std::lock_guard lock(mutex);
  if (places.size() <= input)
    places.resize(input + 1);
  if (!places[input])
    places[input] = std::make_shared<Retained>();
  return places[input];
}

std::shared_ptr<Retained> Places::exchange(size_t input,
                                           std::shared_ptr<Retained> place) {
  std::lock_guard lock(mutex);
  if (places.size() <= input) {
    if (!place)
      return nullptr;
    places.resize(input + 1);
  }
  return std::exchange(places[input], std::move(place));
}

Status Retained::add(const Value &given) {
  if (!given.defined())
    return Status::success();
  std::lock_guard lock(mutex);
  if (!gradient.defined()) {
    gradient = given;
    return Status::success();
  }
  Result<Value> sum = ops::add(gradient, given);
  if (!sum)
    return std::move(sum).status();
  gradient = std::move(*sum);
  return Status::success();
}

Value Retained::get() const {
  std::lock_guard lock(mutex);
  return gradient;
}

void Retained::set(Value given) {
  std::lock_guard lock(mutex);
  std::swap(gradient, given); // the old one ends without the lock
}

} // namespace tandem::graph
