//===- GraphCApi.h - what the files of the graph's C API share ------------===//
//
// Internal to the C API: handles of nodes and hooks, and how callbacks of a C
// program are called. See runtime/c_api/CApi.h.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_C_API_GRAPHCAPI_H
#define TANDEM_RUNTIME_C_API_GRAPHCAPI_H

#include "runtime/c_api/CApi.h"
#include "runtime/graph.h"
#include "runtime/graph/Engine.h"
#include "runtime/graph/Hooks.h"
#include "runtime/graph/Leaf.h"
#include "runtime/graph/Modes.h"

#include <array>
#include <vector>

struct tdm_node {
  std::shared_ptr<tandem::graph::Node> node;
};
struct tdm_hook {
  std::weak_ptr<tandem::graph::Node> node;
  uint64_t key;
};

namespace tandem::capi {

/// Returns where the gradient of a handle goes: none if it requires none. A
/// leaf gets its node at the first use. An error for what a program made
/// outside of the graph.
Result<graph::Edge> edgeOf(tdm_tensor &tensor);
/// The same with the tensor.
Result<graph::Value> valueOf(tdm_tensor &tensor);

/// Makes the node of a leaf, before its handle is copied: else the copy would
/// be another leaf.
Status shareLeaf(const tdm_tensor &tensor);

/// Makes a handle show a value, with its history.
void show(tdm_tensor &handle, graph::Value value);
/// Takes a value out of a handle.
graph::Value take(tdm_tensor &handle);

/// Fails with the index of a null one.
Status checkHandles(const char *what, tdm_tensor *const *list, size_t count);
Result<std::vector<graph::Value>>
valuesOf(const char *what, tdm_tensor *const *list, size_t count);

/// A pointer of the user's, which `release` gets once.
inline std::shared_ptr<void> ownedUser(void *user, void (*release)(void *)) {
  return {user, [release](void *given) {
            if (release)
              release(given);
          }};
}

/// Calls a function of the user, which returns a status of the API. `what` it
/// is, and of which node (may be null), is for a message where it gave none.
template <typename Fn>
Status callUser(const char *what, const graph::Node *node, Fn call) {
  lastError.clear();
  tdm_status status = call();
  if (status == TDM_OK)
    return Status::success();
  bool isKnown = status > TDM_OK && status <= TDM_NO_DEVICE;
  std::string text =
      lastError.empty()
          ? what + (node ? " of '" + node->name() + "'" : std::string()) +
                " gave status " + std::to_string(static_cast<int>(status))
          : lastError;
  return Status(isKnown ? static_cast<Code>(status) : Code::Failed,
                std::move(text));
}

/// Handles of values during a callback; what the callback sets comes back.
class Handles {
public:
  explicit Handles(graph::Gradients &values) : values(values) {
    if (values.size() > few.size()) {
      many.resize(values.size());
      manyPointers.resize(values.size());
    }
    for (size_t i = 0; i < values.size(); ++i) {
      show(at(i), std::move(values[i]));
      pointers()[i] = &at(i);
    }
  }
  ~Handles() {
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = take(at(i));
  }
  Handles(const Handles &) = delete;
  Handles &operator=(const Handles &) = delete;

  tdm_tensor **pointers() {
    return many.empty() ? fewPointers.data() : manyPointers.data();
  }
  size_t size() const { return values.size(); }

private:
  tdm_tensor &at(size_t i) { return many.empty() ? few[i] : many[i]; }

  graph::Gradients &values;
  std::array<tdm_tensor, 3> few{};
  std::array<tdm_tensor *, 3> fewPointers{};
  std::vector<tdm_tensor> many;
  std::vector<tdm_tensor *> manyPointers;
};

} // namespace tandem::capi

#endif
