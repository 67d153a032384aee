//===- Ops.cpp - ops on tensors with history ------------------------------===//
#include "runtime/graph/Ops.h"
#include "runtime/graph/Modes.h"
#include "runtime/graph/Saved.h"
#include "runtime/graph/Sum.h"
#include "runtime/tensor/Strides.h"

#include <algorithm>

namespace tandem::graph::ops {

using artifact::DType;

namespace {

/// The gradient of each edge of an op, given that of its result.
class OpNode : public Node {
public:
  using Backward = std::function<Status(OpNode &node, const Value &gradient,
                                        Gradients &outputs)>;
  OpNode(const char *op, Backward backward, std::optional<double> factor)
      : op(op), backward(std::move(backward)), factor(factor) {}

  std::string name() const override { return op; }
  Status run(Gradients &inputs, Gradients &outputs,
             const RunMode &mode) override {
    if (!inputs[0].defined())
      return Status::success();
    return saved.lend(*this, mode.retain,
                      [&] { return backward(*this, inputs[0], outputs); });
  }
  void release() override { saved.release(); }
  int64_t savedBytes() const override { return saved.bytes(); }
  Result<std::vector<Value>> savedValues() override {
    return saved.useAll(*this);
  }
  Status swapSaved(std::vector<Value> &values) override {
    return saved.swap(*this, values);
  }
  Traits traits() const override { return {true, true}; }
  Described described() const override {
    Described made("op");
    made.factor = factor;
    return made;
  }

  Result<Value> use(size_t index) { return saved.use(*this, index); }
  Status save(const char *name, const Value &value) {
    Result<SavedValue> made = SavedValue::make(name, value);
    if (!made)
      return std::move(made).status();
    saved.add(std::move(*made));
    return Status::success();
  }

private:
  const char *op;
  Backward backward;
  std::optional<double> factor;
  SavedValues saved;
};

/// Gives `result` its history, if there is any to have.
Result<Value> record(const char *op, const Tensor &result,
                     std::initializer_list<const Value *> operands,
                     OpNode::Backward backward,
                     std::initializer_list<const Value *> saved = {},
                     std::optional<double> factor = {}) {
  Value value(result.detach());
  bool hasHistory = std::any_of(operands.begin(), operands.end(),
                                [](const Value *v) { return bool(v->edge); });
  if (!modes().grad || !hasHistory)
    return value;
  auto node = std::make_shared<OpNode>(op, std::move(backward), factor);
  for (const Value *operand : operands)
    if (Status status = node->addEdge(operand->edge); !status)
      return status;
  for (const Value *one : saved)
    if (Status status = node->save(op, *one); !status)
      return status;
  if (Status status = makeEdge(value, node); !status)
    return status;
  value.tensor.setMade(true);
  return value;
}

Status assign(Result<Value> made, Value &to) {
  if (made)
    to = std::move(*made);
  return std::move(made).status();
}

Result<Value> expectDefined(const char *op, const Value &x) {
  if (!x.defined())
    return Status::usage(std::string("'") + op +
                         "': expected a tensor but got an undefined one");
  return x;
}

/// Ops that compute do so in f64, which has not all integers, and an integer
/// has no gradient.
Status expectFloats(const char *op, const Tensor &x) {
  if (!artifact::isInteger(x.dtype()))
    return Status::success();
  return Status::usage(std::string("'") + op + "': expected floats but got " +
                       describe(x.dtype(), x.shape()) +
                       ", which 'cast' makes floats of");
}

/// Calls `fn(x, y)` for each element; in f64.
template <typename Fn>
Result<Tensor> elementwise(const Tensor &x, const Tensor &y, Fn fn) {
  Result<Tensor> a = x.onHost(), b = y.onHost();
  if (a)
    a = a->to(DType::F64);
  if (b)
    b = b->to(DType::F64);
  if (!a || !b)
    return a ? std::move(b).status() : std::move(a).status();
  Result<Tensor> made = Tensor::empty(DType::F64, x.shape());
  if (!made)
    return made;
  auto *to = made->mutableData<double>();
  for (int64_t i = 0; i < x.elements(); ++i)
    to[i] = fn(a->data<double>()[i], b->data<double>()[i]);
  made = made->to(x.dtype());
  return made && !x.device().isHost() ? made->copyTo(x.device()) : made;
}

std::vector<int64_t> shapeOf(const Value &x) {
  return {x.tensor.shape().begin(), x.tensor.shape().end()};
}

Status checkSame(const char *op, const Value &x, const Value &y) {
  if (!x.defined() || !y.defined())
    return Status::usage(std::string("'") + op +
                         "': expected tensors but got an undefined one");
  if (x.tensor.dtype() != y.tensor.dtype() ||
      x.tensor.device() != y.tensor.device() ||
      !std::ranges::equal(x.tensor.shape(), y.tensor.shape()))
    return Status::usage(std::string("'") + op + "': expected " +
                         describe(x.tensor.dtype(), x.tensor.shape()) +
                         " on '" + runtime::toString(x.tensor.device()) +
                         "' but got " +
                         describe(y.tensor.dtype(), y.tensor.shape()) +
                         " on '" + runtime::toString(y.tensor.device()) + "'");
  return expectFloats(op, x.tensor);
}

/// A view that repeats elements: stride 0 where `x` has none or one.
Result<Tensor> expanded(const Tensor &x, std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 0);
  size_t skip = shape.size() - x.shape().size();
  for (size_t i = 0; i < x.shape().size(); ++i)
    strides[skip + i] = x.shape()[i] == 1 ? 0 : x.strides()[i];
  return x.view(shape, strides);
}

} // namespace

bool isExpandable(std::span<const int64_t> shape, std::span<const int64_t> to) {
  if (shape.size() > to.size())
    return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t size = shape[shape.size() - 1 - i];
    if (size != 1 && size != to[to.size() - 1 - i])
      return false;
  }
  return true;
}

Result<Value> add(const Value &x, const Value &y) {
  if (Status status = checkSame("add", x, y); !status)
    return status;
  Tensor sum;
  if (Status status = addTensors(sum, x.tensor, y.tensor); !status)
    return status;
  return record("add", std::move(sum), {&x, &y},
                [](OpNode &, const Value &gradient, Gradients &outputs) {
                  outputs[0] = outputs[1] = gradient;
                  return Status::success();
                });
}

Result<Value> mul(const Value &x, const Value &y) {
  if (Status status = checkSame("mul", x, y); !status)
    return status;
  Result<Tensor> product =
      elementwise(x.tensor, y.tensor, [](double a, double b) { return a * b; });
  if (!product)
    return std::move(product).status();
  return record("mul", std::move(*product), {&x, &y},
                [](OpNode &node, const Value &gradient, Gradients &outputs) {
                  for (size_t i : {0, 1}) {
                    if (!node.edges()[i])
                      continue;
                    Result<Value> other = node.use(1 - i);
                    if (!other)
                      return std::move(other).status();
                    if (Status status =
                            assign(mul(gradient, *other), outputs[i]);
                        !status)
                      return status;
                  }
                  return Status::success();
                },
                {&x, &y});
}

Result<Value> scale(const Value &x, double factor) {
  if (Result<Value> given = expectDefined("scale", x); !given)
    return given;
  if (Status status = expectFloats("scale", x.tensor); !status)
    return status;
  Result<Tensor> product = elementwise(
      x.tensor, x.tensor, [factor](double a, double) { return a * factor; });
  if (!product)
    return std::move(product).status();
  return record(
      "scale", std::move(*product), {&x},
      [factor](OpNode &, const Value &gradient, Gradients &outputs) {
        return assign(scale(gradient, factor), outputs[0]);
      },
      {}, factor);
}

Result<Value> sum(const Value &x) {
  Result<Value> made = sumTo(x, {});
  return made;
}

Result<Value> sumTo(const Value &x, std::span<const int64_t> shape) {
  if (Result<Value> given = expectDefined("sum", x); !given)
    return given;
  if (Status status = expectFloats("sum", x.tensor); !status)
    return status;
  if (!isExpandable(shape, x.tensor.shape()))
    return Status::usage("'sum': expected a shape that expands to " +
                         runtime::toString(x.tensor.shape()) + " but got " +
                         runtime::toString(shape));
  Result<Tensor> from = x.tensor.onHost();
  if (from)
    from = from->to(DType::F64);
  Result<Tensor> made = Tensor::zeros(DType::F64, shape);
  if (!from || !made)
    return from ? std::move(made).status() : std::move(from).status();
  Result<Tensor> view = expanded(*made, x.tensor.shape());
  if (!view)
    return std::move(view).status();
  auto *to = made->mutableData<double>();
  std::span<const int64_t> sizes = from->shape(), strides = view->strides();
  std::vector<int64_t> index(sizes.size(), 0);
  int64_t at = 0;
  for (int64_t i = 0; i < from->elements(); ++i) {
    to[at] += from->data<double>()[i];
    for (size_t d = sizes.size(); d-- > 0;) {
      at += strides[d];
      if (++index[d] < sizes[d])
        break;
      at -= strides[d] * sizes[d];
      index[d] = 0;
    }
  }
  made = made->to(x.tensor.dtype());
  if (made && !x.tensor.device().isHost())
    made = made->copyTo(x.tensor.device());
  if (!made)
    return std::move(made).status();
  return record("sum", std::move(*made), {&x},
                [sizes = shapeOf(x)](OpNode &, const Value &gradient,
                                     Gradients &outputs) {
                  return assign(expand(gradient, sizes), outputs[0]);
                });
}

Result<Value> expand(const Value &x, std::span<const int64_t> shape) {
  if (Result<Value> given = expectDefined("expand", x); !given)
    return given;
  if (!isExpandable(x.tensor.shape(), shape))
    return Status::usage("'expand': expected a shape that " +
                         runtime::toString(x.tensor.shape()) +
                         " expands to but got " + runtime::toString(shape));
  Result<Tensor> view = expanded(x.tensor, shape);
  if (view)
    view = runtime::copyWithStrides(*view, runtime::rowMajorStrides(shape));
  if (!view)
    return std::move(view).status();
  return record("expand", std::move(*view), {&x},
                [sizes = shapeOf(x)](OpNode &, const Value &gradient,
                                     Gradients &outputs) {
                  return assign(sumTo(gradient, sizes), outputs[0]);
                });
}

Result<Value> reshape(const Value &x, std::span<const int64_t> shape) {
  if (Result<Value> given = expectDefined("reshape", x); !given)
    return given;
  Result<int64_t> count = runtime::elementCount(x.tensor.dtype(), shape);
  if (!count)
    return std::move(count).status();
  if (*count != x.tensor.elements())
    return Status::usage("'reshape': expected a shape of " +
                         std::to_string(x.tensor.elements()) +
                         " elements but got " + runtime::toString(shape));
  Result<Tensor> made = x.tensor.dense();
  if (made)
    made = made->view(shape, runtime::rowMajorStrides(shape));
  if (!made)
    return std::move(made).status();
  return record("reshape", std::move(*made), {&x},
                [sizes = shapeOf(x)](OpNode &, const Value &gradient,
                                     Gradients &outputs) {
                  return assign(reshape(gradient, sizes), outputs[0]);
                });
}

Result<Value> cast(const Value &x, DType dtype) {
  if (Result<Value> given = expectDefined("cast", x); !given)
    return given;
  // Of the same type elements of its own, too: a write to one would change
  // both.
  Result<Tensor> made = dtype == x.tensor.dtype()
                            ? x.tensor.copyTo(x.tensor.device())
                            : x.tensor.to(dtype);
  if (!made)
    return std::move(made).status();
  if (artifact::isInteger(dtype))
    return Value(std::move(*made));
  return record("cast", std::move(*made), {&x},
                [from = x.tensor.dtype()](OpNode &, const Value &gradient,
                                          Gradients &outputs) {
                  return assign(cast(gradient, from), outputs[0]);
                });
}

Result<Value> copyTo(const Value &x, Device device) {
  if (Result<Value> given = expectDefined("copy", x); !given)
    return given;
  Result<Tensor> made = x.tensor.copyTo(device);
  if (!made)
    return std::move(made).status();
  return record("copy", std::move(*made), {&x},
                [from = x.tensor.device()](OpNode &, const Value &gradient,
                                           Gradients &outputs) {
                  return assign(copyTo(gradient, from), outputs[0]);
                });
}

} // namespace tandem::graph::ops
