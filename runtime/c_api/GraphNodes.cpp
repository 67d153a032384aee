//===- GraphNodes.cpp - the C API: nodes, their edges and hooks -----------===//
#include "runtime/c_api/GraphCApi.h"
#include "runtime/graph/Function.h"

#include <cstring>

using namespace tandem;
using namespace tandem::capi;
using namespace tandem::graph;

namespace {

/// Calls `fn(node)` unless the handle is null.
template <typename Fn> tdm_status withNode(const tdm_node *node, Fn fn) {
  return call(
      [&]() -> Status { return node ? fn(*node->node) : null("node"); });
}

Status giveIndex(Result<int> made, int *index) {
  if (made && index)
    *index = *made;
  return std::move(made).status();
}

Status giveAnswer(Result<bool> made, int *wanted) {
  if (!wanted)
    return null("place for the answer");
  if (made)
    *wanted = *made;
  return std::move(made).status();
}

/// What a call made runs with the inputs and as many edges as the call gave it.
Status checkOpen(const Node &node, const char *what) {
  if (dynamic_cast<const Function *>(&node))
    return Status::success();
  return Status::usage("the " + std::string(what) + " of node " +
                       describe(node) +
                       " are those of its call: only a function's can change");
}

/// Adds a hook; `add` gives its key. The caller of this owns the hook's user,
/// who is released if it fails.
template <typename Add>
tdm_status addHook(tdm_node *node, bool hasCall, tdm_hook **hook, Add add) {
  return withNode(node, [&](Node &to) {
    if (!hasCall)
      return null("hook");
    auto made = std::make_unique<tdm_hook>(tdm_hook{node->node, 0});
    made->key = add(to);
    if (hook)
      *hook = made.release();
    return Status::success();
  });
}

} // namespace

void tdm_node_free(tdm_node *node) { delete node; }

const char *tdm_node_name(const tdm_node *node) {
  thread_local std::string name;
  name = node ? node->node->name() : "";
  return name.c_str();
}

int tdm_node_is_same(const tdm_node *node, const tdm_node *other) {
  return node && other && node->node == other->node;
}

uint64_t tdm_node_number(const tdm_node *node) {
  return node ? node->node->number() : 0;
}

void tdm_node_set_number(tdm_node *node, uint64_t number) {
  if (node)
    node->node->setNumber(number);
}

uint32_t tdm_node_thread(const tdm_node *node) {
  return node ? node->node->thread() : 0;
}

uint32_t tdm_node_topological_number(const tdm_node *node) {
  return node ? node->node->topologicalNumber() : 0;
}

size_t tdm_node_input_count(const tdm_node *node) {
  return node ? node->node->inputs().size() : 0;
}

size_t tdm_node_edge_count(const tdm_node *node) {
  return node ? node->node->edges().size() : 0;
}

int64_t tdm_node_saved_bytes(const tdm_node *node) {
  return node ? node->node->savedBytes() : 0;
}

tdm_status tdm_node_edge(const tdm_node *node, size_t index, tdm_node **to,
                         int *input) {
  return withNode(node, [&](Node &from) {
    if (!to)
      return null("place for the node");
    // For its message.
    if (Result<bool> found = from.shouldCompute(index); !found)
      return std::move(found).status();
    const Edge &edge = from.edges()[index];
    *to = edge ? new tdm_node{edge.node} : nullptr;
    if (input)
      *input = edge.input;
    return Status::success();
  });
}

tdm_status tdm_node_should_compute(const tdm_node *node, size_t index,
                                   int for_task, int *wanted) {
  return withNode(node, [&](Node &of) {
    return giveAnswer(of.shouldCompute(index, for_task != 0), wanted);
  });
}

tdm_status tdm_node_should_compute_any(const tdm_node *node,
                                       const size_t *begins, const size_t *ends,
                                       size_t count, int for_task,
                                       int *wanted) {
  return withNode(node, [&](Node &of) {
    if (count && (!begins || !ends))
      return null("list of ranges");
    std::vector<std::pair<size_t, size_t>> ranges;
    for (size_t i = 0; i < count; ++i)
      ranges.emplace_back(begins[i], ends[i]);
    return giveAnswer(of.shouldCompute(ranges, for_task != 0), wanted);
  });
}

tdm_status tdm_node_current(tdm_node **node) {
  return call([&]() -> Status {
    if (!node)
      return null("place for the node");
    Node *current = currentNode();
    *node = current ? new tdm_node{current->shared_from_this()} : nullptr;
    return Status::success();
  });
}

tdm_status tdm_node_add_edge(tdm_node *node, const tdm_node *to, int input) {
  return withNode(node, [&](Node &from) {
    Status status = checkOpen(from, "edges");
    return status ? from.addEdge(to ? Edge{to->node, input} : Edge()) : status;
  });
}

tdm_status tdm_node_set_edge(tdm_node *node, size_t index, const tdm_node *to,
                             int input) {
  return withNode(node, [&](Node &from) {
    return from.setEdge(index, to ? Edge{to->node, input} : Edge());
  });
}

tdm_status tdm_node_set_edges(tdm_node *node, tdm_tensor *const *tensors,
                              size_t count) {
  return withNode(node, [&](Node &from) {
    if (Status status = checkOpen(from, "edges");
        !status && count != from.edges().size())
      return status;
    auto values = valuesOf("tensor", tensors, count);
    return values ? from.setEdges(edgesOf(*values))
                  : std::move(values).status();
  });
}

tdm_status tdm_node_add_input(tdm_node *node, tdm_dtype dtype, int rank,
                              const int64_t *shape, const char *device,
                              int *index) {
  return withNode(node, [&](Node &to) {
    if (dtype < TDM_F16 || dtype > TDM_F8E5M2 ||
        !artifact::isFloat(static_cast<artifact::DType>(dtype)))
      return Status::usage("expected the tdm_dtype of a gradient but got " +
                           std::to_string(static_cast<int>(dtype)));
    if (rank < 0 || rank > runtime::maxRank || (rank && !shape))
      return Status::usage("expected a rank of 0 to " +
                           std::to_string(runtime::maxRank) + " and a shape");
    Result<runtime::Device> found =
        runtime::parseDevice(device ? device : "cpu");
    if (!found)
      return std::move(found).status();
    if (Status status = checkOpen(to, "inputs"); !status)
      return status;
    return giveIndex(to.addInput(static_cast<artifact::DType>(dtype),
                                 {shape, size_t(rank)}, *found),
                     index);
  });
}

tdm_status tdm_node_add_placeholder(tdm_node *node, int *index) {
  return withNode(node, [&](Node &to) {
    Status status = checkOpen(to, "inputs");
    return status ? giveIndex(to.addPlaceholder(), index) : status;
  });
}

tdm_status tdm_node_clear_inputs(tdm_node *node) {
  return withNode(node, [](Node &of) {
    Status status = checkOpen(of, "inputs");
    return status ? of.clearInputs() : status;
  });
}

tdm_status tdm_tensor_set_node(tdm_tensor *tensor, tdm_node *node) {
  return call([&]() -> Status {
    if (!tensor || !node)
      return null(tensor ? "node" : "tensor");
    if (!tensor->tensor.defined() || !artifact::isFloat(tensor->tensor.dtype()))
      return Status::usage("expected a tensor of floating point numbers");
    if (Status status = checkOpen(*node->node, "inputs"); !status)
      return status;
    Edge before = tensor->edge;
    Value value(tensor->tensor);
    if (Status status = makeEdge(value, node->node); !status)
      return status;
    if (before)
      moveRetained(before, value.edge);
    tensor->edge = std::move(value.edge);
    tensor->tensor.setMade(true, tensor->tensor.partOf());
    return Status::success();
  });
}

tdm_status tdm_node_add_pre_hook(tdm_node *node, tdm_pre_hook hook, void *user,
                                 void (*release)(void *), tdm_hook **handle) {
  auto kept = ownedUser(user, release);
  return addHook(node, hook, handle, [&](Node &to) {
    return addPreHook(to, [hook, kept](Gradients &gradients) {
      Handles shown(gradients);
      return callUser("a pre-hook", nullptr, [&] {
        return hook(kept.get(), shown.pointers(), shown.size());
      });
    });
  });
}

tdm_status tdm_node_add_post_hook(tdm_node *node, tdm_post_hook hook,
                                  void *user, void (*release)(void *),
                                  tdm_hook **handle) {
  auto kept = ownedUser(user, release);
  return addHook(node, hook, handle, [&](Node &to) {
    return addPostHook(
        to, [hook, kept](Gradients &outputs, const Gradients &inputs) {
          Gradients seen = inputs;
          Handles given(outputs), taken(seen);
          return callUser("a post-hook", nullptr, [&] {
            return hook(kept.get(), given.pointers(), given.size(),
                        taken.pointers(), taken.size());
          });
        });
  });
}

int tdm_hook_remove(tdm_hook *hook) {
  std::shared_ptr<Node> node = hook ? hook->node.lock() : nullptr;
  return node && removeHook(*node, hook->key);
}

void tdm_hook_free(tdm_hook *hook) { delete hook; }
