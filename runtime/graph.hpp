//===- graph.hpp - the run-time graph for C++ programs --------------------===//
//
// A header-only wrapper over graph.h: nodes and hooks that free themselves,
// lambdas as hooks and functions. Errors of calls are exceptions, as in
// tandem.hpp; what a lambda throws ends the backward and reaches its caller as
// tdm::Error with the same text. Without exceptions (tandem.hpp), an error that
// a lambda's calls left ends the backward. What the calls do, and from which
// threads, is in graph.h.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_GRAPH_HPP
#define TANDEM_GRAPH_HPP

#include "runtime/graph.h"
#include "runtime/tandem.hpp"

#include <functional>
#include <utility>

namespace tdm {

using TensorList = std::vector<Tensor>;

namespace detail {

inline std::vector<tdm_tensor *> handles(const TensorList &list) {
  std::vector<tdm_tensor *> made;
  for (const Tensor &tensor : list)
    made.push_back(tensor.get());
  return made;
}

/// Copies of handles that end with a callback.
inline TensorList copies(tdm_tensor *const *list, size_t count) {
  TensorList made(count);
  for (size_t i = 0; i < count; ++i)
    check(tdm_tensor_assign(made[i].get(), list[i]));
  return made;
}

/// What a callback made of them.
inline void giveBack(tdm_tensor *const *list, size_t count,
                     const TensorList &made, const char *what) {
  if (made.size() != count)
    return fail(Error(
        TDM_FAILED, std::string(what) + ": expected " + std::to_string(count) +
                        " tensors but got " + std::to_string(made.size())));
  for (size_t i = 0; i < count; ++i)
    check(tdm_tensor_assign(list[i], made[i].get()));
}

/// Calls `fn`; its error becomes a status with its message.
template <typename Fn> tdm_status guarded(Fn fn) {
#if defined(__cpp_exceptions)
  try {
    fn();
    return TDM_OK;
  } catch (const Error &error) {
    return tdm_fail(error.status, error.what());
  } catch (const std::exception &error) {
    return tdm_fail(TDM_FAILED, error.what());
  } catch (...) {
    return tdm_fail(TDM_FAILED, "an exception of an unknown type");
  }
#else
  Error outer = takeError();
  fn();
  Error own = takeError();
  if (outer)
    fail(outer);
  return own ? tdm_fail(own.status, own.what()) : TDM_OK;
#endif
}

template <typename Fn> void release(void *user) {
  delete static_cast<Fn *>(user);
}

} // namespace detail

/// By which a hook can be removed; the hook stays when this ends.
class Hook {
public:
  explicit Hook(tdm_hook *made) : handle(made, tdm_hook_free) {}
  /// Returns whether the hook was there.
  bool remove() { return tdm_hook_remove(handle.get()); }

private:
  std::shared_ptr<tdm_hook> handle;
};

using TensorHook = std::function<void(Tensor &gradient)>;
using PreHook = std::function<void(TensorList &gradients)>;
using PostHook =
    std::function<void(TensorList &outputs, const TensorList &inputs)>;

/// A handle of a node; copies share it.
class Node {
public:
  Node() = default;
  /// Takes over a handle.
  explicit Node(tdm_node *made) : handle(made, tdm_node_free) {}
  /// A handle that ends with a callback.
  static Node borrowed(tdm_node *node) {
    Node made;
    made.handle = {node, [](tdm_node *) {}};
    return made;
  }
  /// The node that a tensor's gradient goes to.
  static Node of(const Tensor &tensor, int *input = nullptr) {
    tdm_node *made = nullptr;
    check(tdm_tensor_node(tensor.get(), &made, input));
    return Node(made);
  }
  /// The node that runs on this thread, if one does.
  static Node current() {
    tdm_node *made = nullptr;
    check(tdm_node_current(&made));
    return Node(made);
  }

  explicit operator bool() const { return handle != nullptr; }
  bool operator==(const Node &other) const {
    return tdm_node_is_same(get(), other.get());
  }
  std::string name() const { return tdm_node_name(get()); }
  uint64_t number() const { return tdm_node_number(get()); }
  void setNumber(uint64_t number) { tdm_node_set_number(get(), number); }
  uint32_t thread() const { return tdm_node_thread(get()); }
  uint32_t topologicalNumber() const {
    return tdm_node_topological_number(get());
  }
  size_t inputs() const { return tdm_node_input_count(get()); }
  size_t edges() const { return tdm_node_edge_count(get()); }
  int64_t savedBytes() const { return tdm_node_saved_bytes(get()); }
  /// The node that an edge leads to, if it leads somewhere.
  Node edge(size_t index, int *input = nullptr) const {
    tdm_node *made = nullptr;
    check(tdm_node_edge(get(), index, &made, input));
    return Node(made);
  }
  bool shouldCompute(size_t index, bool forTask = false) const {
    int wanted = 0;
    check(tdm_node_should_compute(get(), index, forTask, &wanted));
    return wanted != 0;
  }

  void addEdge(const Node &to, int input = 0) {
    check(tdm_node_add_edge(get(), to.get(), input));
  }
  void setEdge(size_t index, const Node &to, int input = 0) {
    check(tdm_node_set_edge(get(), index, to.get(), input));
  }
  void setEdges(const TensorList &tensors) {
    check(tdm_node_set_edges(get(), detail::handles(tensors).data(),
                             tensors.size()));
  }
  int addInput(tdm_dtype dtype, const std::vector<int64_t> &shape) {
    int index = 0;
    check(tdm_node_add_input(get(), dtype, static_cast<int>(shape.size()),
                             shape.data(), nullptr, &index));
    return index;
  }
  int addPlaceholder() {
    int index = 0;
    check(tdm_node_add_placeholder(get(), &index));
    return index;
  }
  void clearInputs() { check(tdm_node_clear_inputs(get())); }
  /// A tensor without elements that stands for an input.
  Tensor place(int input = 0) const {
    Tensor made;
    check(tdm_tensor_from_edge(get(), input, made.get()));
    return made;
  }

  Hook addPreHook(PreHook hook) {
    tdm_hook *made = nullptr;
    check(tdm_node_add_pre_hook(
        get(),
        [](void *user, tdm_tensor *const *list, size_t count) {
          return detail::guarded([&] {
            TensorList gradients = detail::copies(list, count);
            (*static_cast<PreHook *>(user))(gradients);
            detail::giveBack(list, count, gradients, "pre-hook");
          });
        },
        new PreHook(std::move(hook)), detail::release<PreHook>, &made));
    return Hook(made);
  }
  Hook addPostHook(PostHook hook) {
    tdm_hook *made = nullptr;
    check(tdm_node_add_post_hook(
        get(),
        [](void *user, tdm_tensor *const *outputs, size_t outputCount,
           tdm_tensor *const *inputs, size_t inputCount) {
          return detail::guarded([&] {
            TensorList given = detail::copies(outputs, outputCount);
            (*static_cast<PostHook *>(user))(
                given, detail::copies(inputs, inputCount));
            detail::giveBack(outputs, outputCount, given, "post-hook");
          });
        },
        new PostHook(std::move(hook)), detail::release<PostHook>, &made));
    return Hook(made);
  }

  // Of functions.
  void save(const Tensor &value) { check(tdm_node_save(get(), value.get())); }
  Tensor saved(size_t index) const {
    Tensor made;
    check(tdm_node_saved(get(), index, made.get()));
    return made;
  }
  void mutates(size_t input) { check(tdm_node_mutates(get(), input)); }
  void notDifferentiable(size_t output) {
    check(tdm_node_not_differentiable(get(), output));
  }

  tdm_node *get() const { return handle.get(); }

private:
  std::shared_ptr<tdm_node> handle;
};

/// A function of the user, as tdm_function.
struct Function {
  std::string name;
  std::function<void(Node &node, const TensorList &inputs, TensorList &outputs)>
      forward;
  std::function<void(Node &node, const TensorList &gradients,
                     TensorList &results)>
      backward;
  std::function<void(Node &node)> announce = {};
  size_t flags = 0;
};

namespace detail {

inline tdm_function functionFor(const Function &function) {
  tdm_function made = TDM_FUNCTION_INIT;
  made.name = function.name.c_str();
  made.user = new Function(function);
  made.release = release<Function>;
  made.flags = function.flags;
  if (function.forward)
    made.forward = [](void *user, tdm_node *node, tdm_tensor *const *inputs,
                      size_t inputCount, tdm_tensor *const *outputs,
                      size_t outputCount) {
      return guarded([&] {
        Node self = node ? Node::borrowed(node) : Node();
        TensorList made = copies(outputs, outputCount);
        static_cast<Function *>(user)->forward(self, copies(inputs, inputCount),
                                               made);
        giveBack(outputs, outputCount, made, "forward");
      });
    };
  if (function.backward)
    made.backward = [](void *user, tdm_node *node, tdm_tensor *const *gradients,
                       size_t gradientCount, tdm_tensor *const *results,
                       size_t resultCount) {
      return guarded([&] {
        Node self = Node::borrowed(node);
        TensorList made = copies(results, resultCount);
        static_cast<Function *>(user)->backward(
            self, copies(gradients, gradientCount), made);
        giveBack(results, resultCount, made, "backward");
      });
    };
  if (function.announce)
    made.announce = [](void *user, tdm_node *node) {
      Node self = Node::borrowed(node);
      static_cast<Function *>(user)->announce(self);
    };
  return made;
}

} // namespace detail

/// Calls the function's forward, which sets `outputCount` tensors.
inline TensorList call(const Function &function, const TensorList &inputs,
                       size_t outputCount = 1) {
  TensorList outputs(outputCount);
  tdm_function made = detail::functionFor(function);
  check(tdm_function_apply(&made, detail::handles(inputs).data(), inputs.size(),
                           detail::handles(outputs).data(), outputCount));
  return outputs;
}

/// Calls the forward, and again in the backward: tdm_graph_checkpoint.
inline TensorList checkpoint(const Function &function, const TensorList &inputs,
                             size_t outputCount = 1) {
  TensorList outputs(outputCount);
  tdm_function made = detail::functionFor(function);
  check(tdm_graph_checkpoint(&made, detail::handles(inputs).data(),
                             inputs.size(), detail::handles(outputs).data(),
                             outputCount));
  return outputs;
}

/// A node by itself, whose inputs and edges are added by hand.
inline Node makeNode(const Function &function) {
  tdm_function made = detail::functionFor(function);
  tdm_node *node = nullptr;
  check(tdm_node_make(&made, &node));
  return Node(node);
}

/// Adds an input like the tensor, and leads the tensor's gradient there.
inline void setNode(Tensor &tensor, const Node &node) {
  check(tdm_tensor_set_node(tensor.get(), node.get()));
}

inline Hook addHook(const Tensor &tensor, TensorHook hook) {
  tdm_hook *made = nullptr;
  check(tdm_tensor_add_hook(
      tensor.get(),
      [](void *user, tdm_tensor *gradient) {
        return detail::guarded([&] {
          Tensor given = detail::copies(&gradient, 1)[0];
          (*static_cast<TensorHook *>(user))(given);
          check(tdm_tensor_assign(gradient, given.get()));
        });
      },
      new TensorHook(std::move(hook)), detail::release<TensorHook>, &made));
  return Hook(made);
}

inline Hook addAccumulatedHook(const Tensor &tensor, TensorHook hook) {
  tdm_hook *made = nullptr;
  check(tdm_tensor_add_accumulated_hook(
      tensor.get(),
      [](void *user, tdm_tensor *gradient) {
        return detail::guarded([&] {
          Tensor given = detail::copies(&gradient, 1)[0];
          (*static_cast<TensorHook *>(user))(given);
        });
      },
      new TensorHook(std::move(hook)), detail::release<TensorHook>, &made));
  return Hook(made);
}

/// The gradient that a leaf collected or that was retained.
inline Tensor gradientOf(const Tensor &tensor) {
  Tensor made;
  check(tdm_tensor_grad(tensor.get(), made.get()));
  return made;
}
inline void clearGradient(const Tensor &tensor) {
  check(tdm_tensor_set_grad(tensor.get(), nullptr));
}
inline void retainGradient(const Tensor &tensor) {
  check(tdm_tensor_retain_grad(tensor.get()));
}

inline void backward(const TensorList &roots, const TensorList &gradients = {},
                     unsigned flags = 0) {
  check(tdm_graph_backward(
      detail::handles(roots).data(),
      gradients.empty() ? nullptr : detail::handles(gradients).data(),
      roots.size(), nullptr, 0, flags));
}
/// Runs only what leads to `inputs`.
inline void backwardTo(const TensorList &inputs, const TensorList &roots,
                       const TensorList &gradients = {}, unsigned flags = 0) {
  tdm_tensor *none = nullptr;
  std::vector<tdm_tensor *> places = detail::handles(inputs);
  check(tdm_graph_backward(
      detail::handles(roots).data(),
      gradients.empty() ? nullptr : detail::handles(gradients).data(),
      roots.size(), inputs.empty() ? &none : places.data(), inputs.size(),
      flags));
}
inline TensorList grad(const TensorList &roots, const TensorList &inputs,
                       const TensorList &gradients = {}, unsigned flags = 0) {
  TensorList results(inputs.size());
  check(tdm_graph_grad(detail::handles(roots).data(),
                       gradients.empty() ? nullptr
                                         : detail::handles(gradients).data(),
                       roots.size(), detail::handles(inputs).data(),
                       inputs.size(), detail::handles(results).data(), flags));
  return results;
}

/// Calls `callback` when the backward of this thread is done.
inline void whenDone(std::function<void()> callback) {
  using Callback = std::function<void()>;
  check(tdm_graph_when_done(
      [](void *user) {
        return detail::guarded([&] { (*static_cast<Callback *>(user))(); });
      },
      new Callback(std::move(callback)), detail::release<Callback>));
}

/// Runs "forward" of a model as a node; `params` are handles of its params.
inline void graphForward(Model &model, Tensors inputs, Tensors params,
                         Tensors outputs) {
  std::vector<tdm_argument> in, leaves, out;
  for (const Named &one : inputs)
    in.push_back({one.name, one.tensor.get()});
  for (const Named &one : params)
    leaves.push_back({one.name, one.tensor.get()});
  for (const Named &one : outputs)
    out.push_back({one.name, one.tensor.get()});
  check(tdm_graph_forward(model.get(), in.data(), in.size(), leaves.data(),
                          leaves.size(), out.data(), out.size()));
}

inline Tensor add(const Tensor &x, const Tensor &y) {
  Tensor made;
  check(tdm_op_add(x.get(), y.get(), made.get()));
  return made;
}
inline Tensor mul(const Tensor &x, const Tensor &y) {
  Tensor made;
  check(tdm_op_mul(x.get(), y.get(), made.get()));
  return made;
}
inline Tensor scale(const Tensor &x, double factor) {
  Tensor made;
  check(tdm_op_scale(x.get(), factor, made.get()));
  return made;
}
inline Tensor sum(const Tensor &x) {
  Tensor made;
  check(tdm_op_sum(x.get(), made.get()));
  return made;
}
inline Tensor expand(const Tensor &x, const std::vector<int64_t> &shape) {
  Tensor made;
  check(tdm_op_expand(x.get(), static_cast<int>(shape.size()), shape.data(),
                      made.get()));
  return made;
}
inline Tensor reshape(const Tensor &x, const std::vector<int64_t> &shape) {
  Tensor made;
  check(tdm_op_reshape(x.get(), static_cast<int>(shape.size()), shape.data(),
                       made.get()));
  return made;
}
inline Tensor cast(const Tensor &x, tdm_dtype dtype) {
  Tensor made;
  check(tdm_op_cast(x.get(), dtype, made.get()));
  return made;
}

/// Sets grad mode of the thread until it ends.
class GradMode {
public:
  explicit GradMode(bool on) : before(tdm_set_grad_mode(on)) {}
  ~GradMode() { tdm_set_grad_mode(before); }
  GradMode(const GradMode &) = delete;
  GradMode &operator=(const GradMode &) = delete;

private:
  int before;
};

} // namespace tdm

#endif
