//===- tandem.hpp - the runtime for C++ programs --------------------------===//
//
// A header-only wrapper over tandem.h: handles that free themselves, and errors
// as exceptions (tdm::Error, thrown in the user's program, never by the
// library). What the calls do, and who may call them from which thread, is in
// tandem.h.
//
// In a program that is compiled without exceptions (-fno-exceptions, all of it)
// a call that fails gives an empty handle, and the first error of a thread
// waits until takeError() is called.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_HPP
#define TANDEM_HPP

#include "runtime/tandem.h"

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tdm {

#if defined(__cpp_exceptions)

/// A call's status other than TDM_OK, with its message.
class Error : public std::runtime_error {
public:
  explicit Error(tdm_status status) : Error(status, tdm_last_error()) {}
  Error(tdm_status status, const std::string &message)
      : std::runtime_error(message), status(status) {}
  tdm_status status;
};

inline void fail(const Error &error) { throw error; }

#else

/// A call's status, with its message; TDM_OK and "": there was no error.
class Error {
public:
  Error() = default;
  explicit Error(tdm_status status) : Error(status, tdm_last_error()) {}
  Error(tdm_status status, std::string message)
      : status(status), message(std::move(message)) {}
  const char *what() const { return message.c_str(); }
  explicit operator bool() const { return status != TDM_OK; }
  tdm_status status = TDM_OK;

private:
  std::string message;
};

namespace detail {
inline Error &firstError() {
  static thread_local Error first;
  return first;
}
} // namespace detail

/// Returns the first error of this thread since the last call of this function.
inline Error takeError() {
  return std::exchange(detail::firstError(), Error());
}

inline void fail(const Error &error) {
  if (!detail::firstError())
    detail::firstError() = error;
}

#endif

inline void check(tdm_status status) {
  if (status != TDM_OK)
    fail(Error(status));
}

/// A tensor, or an empty place for one. Copies share the handle.
class Tensor {
public:
  Tensor() {
    tdm_tensor *made = nullptr;
    check(tdm_tensor_empty(&made));
    own(made);
  }
  /// Takes over a handle.
  explicit Tensor(tdm_tensor *made) { own(made); }

  static Tensor zeros(tdm_dtype dtype, const std::vector<int64_t> &shape) {
    tdm_tensor *made = nullptr;
    check(tdm_tensor_zeros(dtype, static_cast<int>(shape.size()), shape.data(),
                           &made));
    return Tensor(made);
  }
  static Tensor zeros(const char *device, tdm_dtype dtype,
                      const std::vector<int64_t> &shape) {
    tdm_tensor *made = nullptr;
    check(tdm_tensor_zeros_on(device, dtype, static_cast<int>(shape.size()),
                              shape.data(), &made));
    return Tensor(made);
  }
  /// Returns a tensor over the caller's memory.
  static Tensor wrap(void *data, tdm_dtype dtype,
                     const std::vector<int64_t> &shape) {
    tdm_tensor *made = nullptr;
    check(tdm_tensor_wrap(data, dtype, static_cast<int>(shape.size()),
                          shape.data(), nullptr, &made));
    return Tensor(made);
  }

  /// Returns a dense copy on `device`.
  Tensor copyTo(const char *device) const {
    tdm_tensor *made = nullptr;
    check(tdm_tensor_copy_to(get(), device, &made));
    return Tensor(made);
  }
  std::string device() const {
    const char *name = tdm_tensor_device(get());
    return name ? name : "";
  }
  bool defined() const { return tdm_tensor_rank(get()) >= 0; }
  tdm_dtype dtype() const { return tdm_tensor_dtype(get()); }
  std::vector<int64_t> shape() const {
    int rank = tdm_tensor_rank(get());
    const int64_t *sizes = tdm_tensor_shape(get());
    return rank > 0 ? std::vector<int64_t>(sizes, sizes + rank)
                    : std::vector<int64_t>();
  }
  int64_t elements() const { return tdm_tensor_elements(get()); }
  template <typename T> T *data() const {
    return static_cast<T *>(tdm_tensor_data(get()));
  }
  /// Returns a view of the storage, `offset` elements after the first.
  Tensor view(const std::vector<int64_t> &shape,
              const std::vector<int64_t> &strides, int64_t offset = 0) const {
    tdm_tensor *made = nullptr;
    check(tdm_tensor_view(get(), static_cast<int>(shape.size()), shape.data(),
                          strides.data(), offset, &made));
    return Tensor(made);
  }
  Tensor detach() const {
    tdm_tensor *made = nullptr;
    check(tdm_tensor_detach(get(), &made));
    return Tensor(made);
  }
  std::vector<int64_t> strides() const {
    int rank = tdm_tensor_rank(get());
    const int64_t *steps = tdm_tensor_strides(get());
    return rank > 0 ? std::vector<int64_t>(steps, steps + rank)
                    : std::vector<int64_t>();
  }
  /// Frees the storage (0), or makes it hold that many elements.
  void resizeStorage(int64_t elements) {
    check(tdm_tensor_resize_storage(get(), elements));
  }
  uint64_t version() const { return tdm_tensor_version(get()); }
  Tensor &setRequiresGrad(bool requiresGrad = true) {
    check(tdm_tensor_set_requires_grad(get(), requiresGrad));
    return *this;
  }
  bool requiresGrad() const { return tdm_tensor_requires_grad(get()); }
  bool isLeaf() const { return tdm_tensor_is_leaf(get()); }
  /// Reports a write through `data`.
  void markWritten() { tdm_tensor_mark_written(get()); }
  tdm_tensor *get() const { return handle.get(); }

private:
  void own(tdm_tensor *made) { handle = {made, tdm_tensor_free}; }
  std::shared_ptr<tdm_tensor> handle;
};

/// A named tensor of a call; the name must outlive the call.
struct Named {
  const char *name;
  Tensor tensor;
};
using Tensors = std::initializer_list<Named>;

/// What a forward saved; given to `Model::forward` again, it is reused.
class Context {
public:
  tdm_context *get() const { return handle.get(); }

private:
  friend class Model;
  std::unique_ptr<tdm_context, void (*)(tdm_context *)> handle{
      nullptr, tdm_context_free};
};

class Model {
public:
  /// `device` is null (cpu, else cuda), "cpu", "cuda", "cuda:1", ...
  explicit Model(const std::string &path, int threads = 0, uint64_t seed = 0,
                 const char *device = nullptr) {
    tdm_options options = TDM_OPTIONS_INIT;
    options.threads = threads;
    options.seed = seed;
    options.device = device;
    tdm_model *made = nullptr;
    check(tdm_model_load(path.c_str(), &options, &made));
    handle.reset(made);
  }

  std::vector<tdm_value> values() const {
    std::vector<tdm_value> all(tdm_value_count(get()), TDM_VALUE_INIT);
    for (size_t i = 0; i < all.size(); ++i)
      check(tdm_value_at(get(), i, &all[i]));
    return all;
  }

  Tensor parameter(const char *name) const {
    tdm_tensor *made = nullptr;
    check(tdm_get(get(), name, &made));
    return Tensor(made);
  }
  void set(const char *name, const Tensor &tensor) {
    check(tdm_set(get(), name, tensor.get()));
  }
  void initialize(uint64_t seed) { check(tdm_initialize(get(), seed)); }
  void save(const std::string &path) const {
    check(tdm_save(get(), path.c_str()));
  }
  void load(const std::string &path) { check(tdm_load(get(), path.c_str())); }

  void run(const char *program, Tensors inputs, Tensors outputs) {
    fill(inputs, outputs);
    check(
        tdm_run(get(), program, in.data(), in.size(), out.data(), out.size()));
  }
  /// Any number of rows, for outputs with rows alone: see tdm_predict.
  void predict(Tensors inputs, Tensors outputs) {
    fill(inputs, outputs);
    check(tdm_predict(get(), in.data(), in.size(), out.data(), out.size()));
  }
  void step(Tensors inputs, Tensors outputs) { run("step", inputs, outputs); }
  /// Steps on the batches of `feed`; returns how many: see tdm_train.
  int64_t train(const tdm_feed &feed, Tensors outputs,
                const char *program = "step") {
    fill({}, outputs);
    std::vector<tdm_argument> wanted(out); // a callback may call the model
    int64_t steps = 0;
    check(
        tdm_train(get(), program, &feed, wanted.data(), wanted.size(), &steps));
    return steps;
  }
  void forward(Context &context, Tensors inputs, Tensors outputs) {
    fill(inputs, outputs);
    tdm_context *held = context.get();
    check(tdm_forward(get(), in.data(), in.size(), out.data(), out.size(),
                      &held));
    if (held != context.get())
      context.handle.reset(held);
  }
  void backward(Context &context, Tensors cotangents, Tensors grads,
                unsigned flags = 0) {
    fill(cotangents, grads);
    check(tdm_backward(get(), context.get(), in.data(), in.size(), out.data(),
                       out.size(), flags));
  }
  /// Gradients that have gradients themselves; `graph` serves a backward whose
  /// cotangents are named "grad of w".
  void backward(Context &context, Tensors cotangents, Tensors grads,
                Context &graph, unsigned flags = 0) {
    fill(cotangents, grads);
    tdm_context *held = graph.get();
    check(tdm_backward_graph(get(), context.get(), in.data(), in.size(),
                             out.data(), out.size(), flags, &held));
    if (held != graph.get())
      graph.handle.reset(held);
  }
  void update(Tensors grads) { run("update", grads, {}); }

  tdm_memory memory() const {
    tdm_memory use = TDM_MEMORY_INIT;
    check(tdm_memory_use(get(), &use));
    return use;
  }
  tdm_model *get() const { return handle.get(); }

private:
  void fill(Tensors inputs, Tensors outputs) {
    in.clear();
    out.clear();
    for (const Named &named : inputs)
      in.push_back({named.name, named.tensor.get()});
    for (const Named &named : outputs)
      out.push_back({named.name, named.tensor.get()});
  }

  std::unique_ptr<tdm_model, void (*)(tdm_model *)> handle{nullptr,
                                                           tdm_model_free};
  std::vector<tdm_argument> in, out; ///< one thread per Model object
};

} // namespace tdm

#endif
