//===- GraphBehaviors.h - callbacks that do what bytes say ----------------===//
//
// The functions, hooks and saved values of a program of GraphCallsFuzz.cpp.
// Each has some bytes of its own, so that whoever runs it, and whenever, it
// needs nobody else; and is counted until the runtime releases it.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_FUZZ_GRAPHBEHAVIORS_H
#define TANDEM_TESTS_FUZZ_GRAPHBEHAVIORS_H

#include "tests/fuzz/CalledApi.h"

#include <atomic>
#include <vector>

namespace tandem::fuzz {

/// A tensor of `size` numbers that requires no grad yet.
inline tdm_tensor *leafOf(int64_t size) {
  tdm_tensor *made = nullptr;
  require(tdm_tensor_zeros(TDM_F32, 1, &size, &made) == TDM_OK);
  std::vector<float> numbers(size_t(size), 0.75f);
  require(tdm_tensor_write(made, numbers.data(),
                           numbers.size() * sizeof(float)) == TDM_OK);
  return made;
}

class Behavior {
public:
  explicit Behavior(Decisions &next) {
    for (uint8_t &byte : bytes)
      byte = next.byte();
    ++alive;
  }
  ~Behavior() { --alive; }
  Behavior(const Behavior &) = delete;

  /// How many there are.
  static inline std::atomic<int> alive = 0;

  static void release(void *user) { delete static_cast<Behavior *>(user); }

  static tdm_status hook(void *user, tdm_tensor *gradient) {
    Decisions next = of(user);
    return change(next, gradient);
  }
  static tdm_status preHook(void *user, tdm_tensor *const *gradients,
                            size_t count) {
    Decisions next = of(user);
    return count ? change(next, gradients[next.below(count)]) : TDM_OK;
  }
  static tdm_status postHook(void *user, tdm_tensor *const *outputs,
                             size_t outputCount, tdm_tensor *const *inputs,
                             size_t inputCount) {
    Decisions next = of(user);
    if (inputCount && next.seldom(4))
      return change(next, inputs[0]);
    return outputCount ? change(next, outputs[next.below(outputCount)])
                       : TDM_OK;
  }

  /// A function that does what more bytes say, or one of a wrong size.
  static tdm_function function(Decisions &next) {
    tdm_function made = TDM_FUNCTION_INIT;
    made.flags = next.seldom(2) ? next.below(64) : 0;
    made.name = next.seldom(8) ? nullptr : "function";
    made.forward = forward;
    made.backward = next.seldom(16) ? nullptr : backward;
    // Without a size that it knows, the runtime does not know its `release`.
    if (next.seldom(16)) {
      made.struct_size = next.below(8);
      return made;
    }
    made.user = new Behavior(next);
    made.release = release;
    return made;
  }

  /// Saved values are copied, or refused.
  static tdm_saved_hooks savedHooks(Decisions &next) {
    static char refuses, copies;
    return {
        sizeof(tdm_saved_hooks), next.seldom(4) ? &refuses : &copies,
        [](void *user, const char *, const tdm_tensor *value, void **packed) {
          tdm_tensor *copy = nullptr;
          if (user == &refuses)
            return tdm_fail(TDM_FAILED, "a value that is not packed");
          tdm_status status = tdm_tensor_copy_to(value, "cpu", &copy);
          *packed = copy;
          return status;
        },
        [](void *, const char *, void *packed, tdm_tensor *value) {
          return tdm_tensor_assign(value, static_cast<tdm_tensor *>(packed));
        },
        [](void *, void *packed) {
          tdm_tensor_free(static_cast<tdm_tensor *>(packed));
        }};
  }

private:
  static Decisions of(void *user) {
    return Decisions(
        user ? std::span<const uint8_t>(static_cast<Behavior *>(user)->bytes)
             : std::span<const uint8_t>());
  }

  /// What a callback may do with a gradient. A call that fails in it is its
  /// error, or is nobody's.
  static tdm_status change(Decisions &next, tdm_tensor *gradient) {
    tdm_tensor *other = nullptr;
    tdm_status status = TDM_OK;
    switch (next.below(8)) {
    case 0:
      return TDM_OK;
    case 1:
      return tdm_op_scale(gradient, 2, gradient);
    case 2:
      return tdm_fail(TDM_UNSUPPORTED, "a callback that fails");
    case 3: // of another shape, mostly
      other = leafOf(int64_t(next.below(5)));
      status = tdm_tensor_assign(gradient, other);
      break;
    case 4:
      require(tdm_tensor_empty(&other) == TDM_OK);
      status = tdm_tensor_assign(gradient, other);
      break;
    case 5:
      status = ownBackward();
      break;
    case 6:
      return tdm_graph_when_done([](void *) { return TDM_OK; }, nullptr,
                                 nullptr);
    default:
      (void)tdm_tensor_resize_storage(gradient, int64_t(next.below(5)));
    }
    tdm_tensor_free(other);
    return status;
  }

  /// A backward inside of one, of a graph of its own.
  static tdm_status ownBackward() {
    tdm_tensor *x = leafOf(1), *y = nullptr;
    require(tdm_tensor_set_requires_grad(x, 1) == TDM_OK);
    require(tdm_tensor_empty(&y) == TDM_OK);
    int was = tdm_set_grad_mode(1);
    tdm_status status = tdm_op_mul(x, x, y);
    if (status == TDM_OK)
      status = tdm_graph_backward(&y, nullptr, 1, nullptr, 0, 0);
    tdm_set_grad_mode(was);
    tdm_tensor_free(x);
    tdm_tensor_free(y);
    return status;
  }

  static tdm_status forward(void *user, tdm_node *node,
                            tdm_tensor *const *inputs, size_t inputCount,
                            tdm_tensor *const *outputs, size_t outputCount) {
    Decisions next = of(user);
    for (size_t i = 0; i < inputCount; ++i) {
      if (next.seldom(2))
        (void)tdm_node_save(node, inputs[i]);
      if (next.seldom(8) && tdm_node_mutates(node, i) == TDM_OK)
        tdm_tensor_mark_written(inputs[i]);
    }
    for (size_t i = 0; i < outputCount; ++i) {
      tdm_status status = TDM_OK;
      tdm_tensor *input = inputCount ? inputs[next.below(inputCount)] : nullptr;
      switch (next.below(6)) {
      case 0:
      case 1:
        status = tdm_op_scale(input, 3, outputs[i]);
        break;
      case 2:
        status =
            tdm_op_mul(input, inputCount ? inputs[0] : nullptr, outputs[i]);
        break;
      case 3:
        status = tdm_tensor_assign(outputs[i], input);
        break;
      case 4:
        return tdm_fail(TDM_FAILED, "a forward that fails");
      default:
        break; // left as it is
      }
      if (status != TDM_OK && !next.seldom(4))
        return status;
      if (next.seldom(8))
        (void)tdm_node_not_differentiable(node, next.below(3));
      if (next.seldom(4))
        (void)tdm_node_save(node, outputs[i]);
    }
    return TDM_OK;
  }

  static tdm_status backward(void *user, tdm_node *node,
                             tdm_tensor *const *gradients, size_t gradientCount,
                             tdm_tensor *const *results, size_t resultCount) {
    Decisions next = of(user);
    tdm_tensor *saved = nullptr;
    require(tdm_tensor_empty(&saved) == TDM_OK);
    tdm_status status = tdm_node_saved(node, next.below(4), saved);
    bool isRead = status == TDM_OK;
    status = TDM_OK;
    for (size_t i = 0; i < resultCount && status == TDM_OK; ++i) {
      tdm_tensor *gradient =
          gradientCount ? gradients[next.below(gradientCount)] : nullptr;
      switch (next.below(5)) {
      case 0:
      case 1:
        status = isRead ? tdm_op_mul(gradient, saved, results[i])
                        : tdm_op_scale(gradient, 3, results[i]);
        break;
      case 2:
        break; // empty
      case 3:
        status = tdm_tensor_assign(results[i], gradient);
        break;
      default:
        status = change(next, results[i]);
      }
    }
    tdm_tensor_free(saved);
    return status;
  }

  uint8_t bytes[10];
};

} // namespace tandem::fuzz

#endif
