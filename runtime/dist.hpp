//===- dist.hpp - distributed autograd for C++ programs -------------------===//
//
// A header-only wrapper over dist.h: workers and contexts that free themselves,
// lambdas as functions and steps. Errors are those of graph.hpp. What the calls
// do, and from which threads, is in dist.h.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_DIST_HPP
#define TANDEM_DIST_HPP

#include "runtime/dist.h"
#include "runtime/graph.hpp"

namespace tdm::dist {

/// Sets outputs from inputs.
using Function =
    std::function<void(const TensorList &inputs, TensorList &outputs)>;
/// Updates params from gradients, some of them empty.
using Step = std::function<void(uint64_t context, TensorList &params,
                                const TensorList &gradients)>;

/// A transport that a library has: "mpi".
inline tdm_dist_transport open(const char *name, void *argument = nullptr) {
  tdm_dist_transport made = TDM_DIST_TRANSPORT_INIT;
  check(tdm_dist_open(name, argument, &made));
  return made;
}

/// Transports between threads of this process.
inline std::vector<tdm_dist_transport>
loopback(uint32_t workers, const tdm_dist_loopback_options *options = nullptr) {
  std::vector<tdm_dist_transport> made(workers);
  check(tdm_dist_loopback(workers, options, made.data()));
  return made;
}

/// This process' worker. Copies share it; the last one ends it.
class Worker {
public:
  Worker() = default;
  explicit Worker(const tdm_dist_transport &transport,
                  const tdm_dist_options *options = nullptr) {
    tdm_dist_worker *made = nullptr;
    check(tdm_dist_start(&transport, options, &made));
    handle = {made, tdm_dist_free};
  }

  explicit operator bool() const { return handle != nullptr; }
  uint32_t number() const { return tdm_dist_number(get()); }
  uint32_t count() const { return tdm_dist_count(get()); }
  void meet(const char *place) { check(tdm_dist_meet(get(), place)); }
  void leave() { check(tdm_dist_leave(get())); }

  void serve(const char *name, Function function) {
    check(tdm_dist_serve(
        get(), name,
        [](void *user, tdm_tensor *const *inputs, size_t inputCount,
           tdm_tensor *const *outputs, size_t outputCount) {
          return detail::guarded([&] {
            TensorList made = detail::copies(outputs, outputCount);
            (*static_cast<Function *>(user))(detail::copies(inputs, inputCount),
                                             made);
            detail::giveBack(outputs, outputCount, made, "function");
          });
        },
        new Function(std::move(function)), detail::release<Function>));
  }
  TensorList call(uint32_t to, const char *name, const TensorList &inputs,
                  size_t outputCount = 1) {
    TensorList outputs(outputCount);
    check(tdm_dist_call(get(), to, name, detail::handles(inputs).data(),
                        inputs.size(), detail::handles(outputs).data(),
                        outputCount));
    return outputs;
  }

  void backward(uint64_t context, const TensorList &roots, unsigned flags = 0) {
    check(tdm_dist_backward(get(), context, detail::handles(roots).data(),
                            roots.size(), flags));
  }
  /// What the context has for a leaf; an empty tensor if nothing.
  Tensor gradient(uint64_t context, const Tensor &leaf) {
    Tensor made;
    check(tdm_dist_grad(get(), context, leaf.get(), made.get()));
    return made;
  }

  void optimize(const TensorList &params, Step step) {
    check(tdm_dist_optimize(
        get(), detail::handles(params).data(), params.size(),
        [](void *user, uint64_t context, tdm_tensor *const *leaves,
           tdm_tensor *const *gradients, size_t count) {
          return detail::guarded([&] {
            TensorList given = detail::copies(leaves, count);
            (*static_cast<Step *>(user))(context, given,
                                         detail::copies(gradients, count));
          });
        },
        new Step(std::move(step)), detail::release<Step>));
  }
  void step(uint64_t context) { check(tdm_dist_step(get(), context)); }

  tdm_dist_counts counts() const {
    tdm_dist_counts made = TDM_DIST_COUNTS_INIT;
    check(tdm_dist_get_counts(get(), &made));
    return made;
  }
  tdm_dist_worker *get() const { return handle.get(); }

private:
  std::shared_ptr<tdm_dist_worker> handle;
};

/// A context of this thread, released at its end.
class Context {
public:
  explicit Context(Worker worker) : worker(std::move(worker)) {
    check(tdm_dist_begin(this->worker.get(), &id));
  }
  ~Context() { (void)tdm_dist_release(worker.get(), id); }
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;

  uint64_t number() const { return id; }
  void backward(const TensorList &roots, unsigned flags = 0) {
    worker.backward(id, roots, flags);
  }
  Tensor gradient(const Tensor &leaf) { return worker.gradient(id, leaf); }
  void step() { worker.step(id); }

private:
  Worker worker;
  uint64_t id = 0;
};

/// Steps down the gradients of f32 parameters of the host.
inline Step sgd(float rate) {
  return [rate](uint64_t, TensorList &params, const TensorList &gradients) {
    for (size_t i = 0; i < params.size(); ++i) {
      if (!gradients[i].defined())
        continue;
      auto count = static_cast<size_t>(params[i].elements());
      std::vector<float> values(count), slopes(count);
      check(tdm_tensor_read(params[i].get(), values.data(),
                            count * sizeof(float)));
      check(tdm_tensor_read(gradients[i].get(), slopes.data(),
                            count * sizeof(float)));
      for (size_t j = 0; j < count; ++j)
        values[j] -= rate * slopes[j];
      check(tdm_tensor_write(params[i].get(), values.data(),
                             count * sizeof(float)));
    }
  };
}

} // namespace tdm::dist

#endif
