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
  auto &places = edge.node->makeHooks().retained;
  auto index = static_cast<size_t>(edge.input);
  if (places.size() <= index)
    places.resize(index + 1);
  if (!places[index])
    places[index] = std::make_shared<Retained>();
  return places[index];
}

void moveRetained(const Edge &from, const Edge &to) {
  if (!from || !to || !from.node->hooks())
    return;
  auto &places = from.node->hooks()->retained;
  auto index = static_cast<size_t>(from.input);
  if (index >= places.size() || !places[index])
    return;
  std::shared_ptr<Retained> moved = std::move(places[index]);
  places[index] = nullptr;
  retain(to); // makes the place
  to.node->hooks()->retained[static_cast<size_t>(to.input)] = std::move(moved);
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
