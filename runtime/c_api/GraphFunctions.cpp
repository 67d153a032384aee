//===- GraphFunctions.cpp - the C API: functions of the caller ------------===//
#include "runtime/c_api/GraphCApi.h"
#include "runtime/graph/Function.h"

#include <cstddef>

using namespace tandem;
using namespace tandem::capi;
using namespace tandem::graph;

static_assert(sizeof(tdm_function) ==
              offsetof(tdm_function, flags) + sizeof(size_t));

namespace {

/// `user` is released from now on, whatever comes.
Status takeFunction(const tdm_function *given, bool hasForward,
                    bool hasBackward, tdm_function &known,
                    std::shared_ptr<void> &user) {
  if (!given)
    return null("function");
  known = TDM_FUNCTION_INIT;
  if (Status status = takeStruct("tdm_function", *given, known); !status)
    return status;
  user = ownedUser(known.user, known.release);
  if (!known.name)
    return null("name");
  if (hasForward && !known.forward)
    return null("forward");
  if (hasBackward && !known.backward)
    return null("backward");
  constexpr size_t flags = TDM_ONCE_DIFFERENTIABLE | TDM_MATERIALIZE |
                           TDM_NOT_DETERMINISTIC | TDM_TRACEABLE |
                           TDM_STATE_TRANSPARENT;
  if (known.flags & ~flags)
    return Status::usage("'tdm_function': expected flags among " +
                         std::to_string(flags) + " but got " +
                         std::to_string(known.flags));
  return Status::success();
}

/// The function in the runtime's form. `user` gets its release with the last
/// copy.
FunctionSpec specOf(const tdm_function &known,
                    const std::shared_ptr<void> &user) {
  FunctionSpec spec;
  spec.name = known.name;
  spec.isOnceDifferentiable = known.flags & TDM_ONCE_DIFFERENTIABLE;
  spec.materializes = known.flags & TDM_MATERIALIZE;
  spec.isDeterministic = !(known.flags & TDM_NOT_DETERMINISTIC);
  spec.traits = {(known.flags & TDM_TRACEABLE) != 0,
                 (known.flags & TDM_STATE_TRANSPARENT) != 0};
  if (known.forward)
    spec.forward = [forward = known.forward,
                    user](Function &node, std::vector<Value> &inputs,
                          std::vector<Value> &outputs) {
      tdm_node handle{node.shared_from_this()};
      Handles in(inputs), out(outputs);
      return callUser("the forward", &node, [&] {
        return forward(user.get(), &handle, in.pointers(), in.size(),
                       out.pointers(), out.size());
      });
    };
  if (known.backward)
    spec.backward = [backward = known.backward, user](
                        Function &node, Gradients &inputs, Gradients &outputs) {
      tdm_node handle{node.shared_from_this()};
      Handles in(inputs), out(outputs);
      return callUser("the backward", &node, [&] {
        return backward(user.get(), &handle, in.pointers(), in.size(),
                        out.pointers(), out.size());
      });
    };
  if (known.announce)
    spec.announce = [announce = known.announce, user](Function &node) {
      tdm_node handle{node.shared_from_this()};
      announce(user.get(), &handle);
    };
  return spec;
}

Result<Function *> functionOf(const tdm_node *node) {
  if (!node)
    return null("node");
  auto *function = dynamic_cast<Function *>(node->node.get());
  if (!function)
    return Status::usage("expected the node of a function but got " +
                         describe(*node->node));
  return function;
}

/// Calls `apply(inputs, outputs)` with values of handles, and shows what came
/// of them.
template <typename Apply>
Status applyTo(tdm_tensor *const *inputs, size_t inputCount,
               tdm_tensor *const *outputs, size_t outputCount, Apply apply) {
  auto given = valuesOf("input", inputs, inputCount);
  if (!given)
    return std::move(given).status();
  if (Status status = checkHandles("output", outputs, outputCount); !status)
    return status;
  std::vector<Value> made;
  for (size_t i = 0; i < outputCount; ++i)
    made.emplace_back(outputs[i]->tensor.detach());
  if (Status status = apply(*given, made); !status)
    return status;
  for (size_t i = 0; i < inputCount; ++i) {
    inputs[i]->tensor = (*given)[i].tensor;
    inputs[i]->edge = (*given)[i].edge;
  }
  for (size_t i = 0; i < outputCount; ++i)
    show(*outputs[i], std::move(made[i]));
  return Status::success();
}

} // namespace

tdm_status tdm_function_apply(const tdm_function *function,
                              tdm_tensor *const *inputs, size_t input_count,
                              tdm_tensor *const *outputs, size_t output_count) {
  return call([&]() -> Status {
    tdm_function known;
    std::shared_ptr<void> user;
    if (Status status = takeFunction(function, true, true, known, user);
        !status)
      return status;
    FunctionSpec spec = specOf(known, user);
    user = nullptr; // it ends with the node
    return applyTo(inputs, input_count, outputs, output_count,
                   [&](std::vector<Value> &in, std::vector<Value> &out) {
                     return Function::apply(std::move(spec), in, out);
                   });
  });
}

tdm_status tdm_node_make(const tdm_function *function, tdm_node **node) {
  return call([&]() -> Status {
    tdm_function known;
    std::shared_ptr<void> user;
    if (Status status = takeFunction(function, false, true, known, user);
        !status)
      return status;
    if (!node)
      return null("place for the node");
    *node = new tdm_node{std::make_shared<Function>(specOf(known, user))};
    return Status::success();
  });
}

tdm_status tdm_node_save(tdm_node *node, const tdm_tensor *value) {
  return call([&]() -> Status {
    if (!value)
      return null("value");
    Result<Function *> function = functionOf(node);
    if (!function)
      return std::move(function).status();
    Result<Value> kept = valueOf(const_cast<tdm_tensor &>(*value));
    if (!kept)
      return std::move(kept).status();
    return (*function)->save(std::move(*kept));
  });
}

tdm_status tdm_node_mutates(tdm_node *node, size_t index) {
  return call([&]() -> Status {
    Result<Function *> function = functionOf(node);
    return function ? (*function)->declareWrite(index)
                    : std::move(function).status();
  });
}

tdm_status tdm_node_not_differentiable(tdm_node *node, size_t index) {
  return call([&]() -> Status {
    Result<Function *> function = functionOf(node);
    return function ? (*function)->declareNotDifferentiable(index)
                    : std::move(function).status();
  });
}

tdm_status tdm_node_saved(const tdm_node *node, size_t index,
                          tdm_tensor *value) {
  return call([&]() -> Status {
    if (!value)
      return null("place for the value");
    Result<Function *> function = functionOf(node);
    if (!function)
      return std::move(function).status();
    Result<Value> saved = (*function)->saved(index);
    if (!saved)
      return std::move(saved).status();
    show(*value, std::move(*saved));
    return Status::success();
  });
}

tdm_status tdm_graph_checkpoint(const tdm_function *function,
                                tdm_tensor *const *inputs, size_t input_count,
                                tdm_tensor *const *outputs,
                                size_t output_count) {
  return call([&]() -> Status {
    tdm_function known;
    std::shared_ptr<void> user;
    if (Status status = takeFunction(function, true, false, known, user);
        !status)
      return status;
    if (known.backward)
      return Status::usage("expected no backward of a checkpoint");
    auto forward = [forward = known.forward, user = std::move(user)](
                       std::vector<Value> &in, std::vector<Value> &out) {
      Handles given(in), made(out);
      return callUser("the forward of a checkpoint", nullptr, [&] {
        return forward(user.get(), nullptr, given.pointers(), given.size(),
                       made.pointers(), made.size());
      });
    };
    return applyTo(inputs, input_count, outputs, output_count,
                   [&](std::vector<Value> &in, std::vector<Value> &out) {
                     return checkpoint(known.name, forward, in, out);
                   });
  });
}
