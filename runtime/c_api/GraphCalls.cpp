//===- GraphCalls.cpp - the C API: calls of a graph, and its backward -----===//
#include "runtime/artifact/AtomicFile.h"
#include "runtime/artifact/Text.h"
#include "runtime/c_api/GraphCApi.h"
#include "runtime/graph/CallNode.h"
#include "runtime/graph/Ops.h"
#include "runtime/graph/Write.h"
#include "runtime/io/FileKind.h"

using namespace tandem;
using namespace tandem::capi;
using namespace tandem::graph;

namespace {

Result<std::vector<NamedValue>> namedValues(const tdm_argument *list,
                                            size_t count, const char *what) {
  if (count && !list)
    return null(what);
  std::vector<NamedValue> values;
  for (size_t i = 0; i < count; ++i) {
    if (!list[i].name || !list[i].tensor)
      return Status::usage(std::string(what) + " number " + std::to_string(i) +
                           ": expected a name and a tensor but got null");
    Result<Value> value = valueOf(*list[i].tensor);
    if (!value)
      return std::move(value).status().in(std::string(what) + " '" +
                                          list[i].name + "'");
    values.push_back({list[i].name, std::move(*value)});
  }
  return values;
}

/// A leaf that stands for a param must be that param.
Status checkParam(const runtime::Model &model, const NamedValue &param) {
  Result<Tensor> own = model.get(param.name);
  if (!own)
    return std::move(own).status();
  if (own->storage() == param.value.tensor.storage() &&
      own->data() == param.value.tensor.data())
    return Status::success();
  return Status::usage("param '" + param.name +
                       "': expected the handle that tdm_get gives, but it "
                       "shows other memory");
}

/// The gradient of a param goes to one leaf.
Status checkOnce(std::span<const NamedValue> params) {
  std::vector<std::string_view> names;
  for (const NamedValue &param : params)
    names.push_back(param.name);
  std::ranges::sort(names);
  auto twice = std::ranges::adjacent_find(names);
  return twice == names.end()
             ? Status::success()
             : Status::usage("param '" + std::string(*twice) +
                             "': expected it once but got it twice");
}

Status forward(tdm_model &model, const tdm_argument *inputs, size_t inputCount,
               const tdm_argument *params, size_t paramCount,
               const tdm_argument *outputs, size_t outputCount) {
  auto given = namedValues(inputs, inputCount, "input");
  if (!given)
    return std::move(given).status();
  auto leaves = namedValues(params, paramCount, "param");
  if (!leaves)
    return std::move(leaves).status();
  for (const NamedValue &param : *leaves)
    if (Status status = checkParam(model.model, param); !status)
      return status;
  if (Status status = checkOnce(*leaves); !status)
    return status;
  if (outputCount && !outputs)
    return null("output");
  std::vector<std::string> names;
  std::vector<Value> places;
  for (size_t i = 0; i < outputCount; ++i) {
    if (!outputs[i].name || !outputs[i].tensor)
      return Status::usage("output number " + std::to_string(i) +
                           ": expected a name and a tensor but got null");
    names.emplace_back(outputs[i].name);
    places.emplace_back(outputs[i].tensor->tensor);
  }
  Result<std::vector<Value>> made =
      graph::call(model.model, *given, *leaves, names, std::move(places));
  if (!made)
    return std::move(made).status();
  for (size_t i = 0; i < inputCount; ++i) {
    // A program may change what the handle shows.
    inputs[i].tensor->tensor = (*given)[i].value.tensor;
    inputs[i].tensor->edge = (*given)[i].value.edge;
  }
  for (size_t i = 0; i < outputCount; ++i)
    show(*outputs[i].tensor, std::move((*made)[i]));
  return Status::success();
}

Result<std::vector<Root>> rootsOf(tdm_tensor *const *roots,
                                  tdm_tensor *const *gradients, size_t count) {
  auto values = valuesOf("root", roots, count);
  if (!values)
    return std::move(values).status();
  std::vector<Root> made;
  for (size_t i = 0; i < count; ++i) {
    Value gradient;
    if (gradients && gradients[i]) {
      Result<Value> given = valueOf(*gradients[i]);
      if (!given)
        return std::move(given).status();
      gradient = std::move(*given);
    }
    made.push_back({(*values)[i].edge, std::move(gradient)});
  }
  return made;
}

Result<std::vector<Edge>> placesOf(tdm_tensor *const *inputs, size_t count) {
  auto values = valuesOf("input", inputs, count);
  if (!values)
    return std::move(values).status();
  return edgesOf(*values);
}

Status checkFlags(unsigned flags, unsigned known) {
  if (!(flags & ~known))
    return Status::success();
  return Status::usage("expected flags among " + std::to_string(known) +
                       " but got " + std::to_string(flags));
}

BackwardOptions optionsOf(unsigned flags) {
  return {(flags & TDM_RETAIN_GRAPH) != 0, (flags & TDM_CREATE_GRAPH) != 0};
}

/// Calls an op, and shows what it made.
template <typename Fn>
tdm_status op(const tdm_tensor *x, tdm_tensor *result, Fn fn) {
  return call([&]() -> Status {
    if (!x || !result)
      return null(x ? "result" : "operand");
    Result<Value> value = valueOf(const_cast<tdm_tensor &>(*x));
    if (!value)
      return std::move(value).status();
    Result<Value> made = fn(*value);
    if (!made)
      return std::move(made).status();
    show(*result, std::move(*made));
    return Status::success();
  });
}

Status writeText(const char *path, const std::string &text) {
  tandem::io::FileKind kind = tandem::io::fileKind(path);
  if (kind != tandem::io::FileKind::Missing &&
      kind != tandem::io::FileKind::Empty &&
      kind != tandem::io::FileKind::Special &&
      kind != tandem::io::FileKind::Other)
    return Status::usage("would replace " + tandem::artifact::inQuotes(path) +
                         ": expected the picture of a graph but got " +
                         std::string(tandem::io::describe(kind)));
  Result<artifact::AtomicFile> file = artifact::AtomicFile::create(path);
  if (!file)
    return std::move(file).status();
  if (Status status = file->write(text.data(), text.size()); !status)
    return status;
  return file->commit();
}

tdm_status writeGraph(tdm_tensor *const *roots, size_t count, const char *path,
                      std::string (*text)(std::span<const Edge>)) {
  return call([&]() -> Status {
    if (!path)
      return null("path");
    Result<std::vector<Edge>> edges = placesOf(roots, count);
    return edges ? writeText(path, text(*edges)) : std::move(edges).status();
  });
}

} // namespace

tdm_status tdm_graph_forward(tdm_model *model, const tdm_argument *inputs,
                             size_t input_count, const tdm_argument *params,
                             size_t param_count, const tdm_argument *outputs,
                             size_t output_count) {
  return call([&]() -> Status {
    return model ? forward(*model, inputs, input_count, params, param_count,
                           outputs, output_count)
                 : null("model");
  });
}

tdm_status tdm_graph_backward(tdm_tensor *const *roots,
                              tdm_tensor *const *gradients, size_t root_count,
                              tdm_tensor *const *inputs, size_t input_count,
                              unsigned flags) {
  return call([&]() -> Status {
    if (Status status = checkFlags(flags, TDM_RETAIN_GRAPH | TDM_CREATE_GRAPH);
        !status)
      return status;
    Result<std::vector<Root>> from = rootsOf(roots, gradients, root_count);
    if (!from)
      return std::move(from).status();
    if (!inputs && !input_count)
      return backward(*from, optionsOf(flags));
    Result<std::vector<Edge>> places = placesOf(inputs, input_count);
    if (!places)
      return std::move(places).status();
    for (size_t i = 0; i < input_count; ++i)
      if ((*places)[i] && !(*places)[i].node->isLeaf())
        inputs[i]->retained = retain((*places)[i]);
    return backwardTo(*from, *places, optionsOf(flags));
  });
}

tdm_status tdm_graph_grad(tdm_tensor *const *roots,
                          tdm_tensor *const *gradients, size_t root_count,
                          tdm_tensor *const *inputs, size_t input_count,
                          tdm_tensor *const *results, unsigned flags) {
  return call([&]() -> Status {
    if (Status status =
            checkFlags(flags, TDM_RETAIN_GRAPH | TDM_CREATE_GRAPH |
                                  TDM_UNUSED_EMPTY | TDM_UNUSED_ZEROS);
        !status)
      return status;
    if (flags & TDM_UNUSED_EMPTY && flags & TDM_UNUSED_ZEROS)
      return Status::usage("expected TDM_UNUSED_EMPTY or TDM_UNUSED_ZEROS, but "
                           "got both");
    if (Status status = checkHandles("result", results, input_count); !status)
      return status;
    Result<std::vector<Root>> from = rootsOf(roots, gradients, root_count);
    if (!from)
      return std::move(from).status();
    Result<std::vector<Edge>> places = placesOf(inputs, input_count);
    if (!places)
      return std::move(places).status();
    Unreached unreached = flags & TDM_UNUSED_ZEROS   ? Unreached::Zeros
                          : flags & TDM_UNUSED_EMPTY ? Unreached::Undefined
                                                     : Unreached::Error;
    Result<Gradients> made = grad(*from, *places, optionsOf(flags), unreached);
    if (!made)
      return std::move(made).status();
    for (size_t i = 0; i < input_count; ++i)
      show(*results[i], std::move((*made)[i]));
    return Status::success();
  });
}

tdm_status tdm_graph_when_done(tdm_status (*callback)(void *user), void *user,
                               void (*release)(void *user)) {
  auto kept = ownedUser(user, release);
  return call([&]() -> Status {
    if (!callback)
      return null("callback");
    return queueCallback([callback, kept] {
      return callUser("a callback after the backward", nullptr,
                      [&] { return callback(kept.get()); });
    });
  });
}

tdm_status tdm_op_add(const tdm_tensor *x, const tdm_tensor *y,
                      tdm_tensor *result) {
  return op(x, result, [&](const Value &value) -> Result<Value> {
    if (!y)
      return null("operand");
    Result<Value> other = valueOf(const_cast<tdm_tensor &>(*y));
    return other ? ops::add(value, *other) : std::move(other);
  });
}

tdm_status tdm_op_mul(const tdm_tensor *x, const tdm_tensor *y,
                      tdm_tensor *result) {
  return op(x, result, [&](const Value &value) -> Result<Value> {
    if (!y)
      return null("operand");
    Result<Value> other = valueOf(const_cast<tdm_tensor &>(*y));
    return other ? ops::mul(value, *other) : std::move(other);
  });
}

tdm_status tdm_op_scale(const tdm_tensor *x, double factor,
                        tdm_tensor *result) {
  return op(x, result,
            [&](const Value &value) { return ops::scale(value, factor); });
}

tdm_status tdm_op_sum(const tdm_tensor *x, tdm_tensor *result) {
  return op(x, result, [](const Value &value) { return ops::sum(value); });
}

/// The op with a shape, which is checked.
template <typename Fn>
static tdm_status opWithShape(const tdm_tensor *x, int rank,
                              const int64_t *shape, tdm_tensor *result, Fn fn) {
  return op(x, result, [&](const Value &value) -> Result<Value> {
    if (rank < 0 || rank > runtime::maxRank)
      return Status::usage("expected a rank of 0 to " +
                           std::to_string(runtime::maxRank) + " but got " +
                           std::to_string(rank));
    if (rank && !shape)
      return null("shape");
    return fn(value, std::span<const int64_t>(shape, size_t(rank)));
  });
}

tdm_status tdm_op_expand(const tdm_tensor *x, int rank, const int64_t *shape,
                         tdm_tensor *result) {
  return opWithShape(x, rank, shape, result, ops::expand);
}

tdm_status tdm_op_reshape(const tdm_tensor *x, int rank, const int64_t *shape,
                          tdm_tensor *result) {
  return opWithShape(x, rank, shape, result, ops::reshape);
}

tdm_status tdm_op_cast(const tdm_tensor *x, tdm_dtype dtype,
                       tdm_tensor *result) {
  return op(x, result, [&](const Value &value) -> Result<Value> {
    if (dtype < TDM_BOOL || dtype > TDM_F8E5M2)
      return Status::usage("expected a tdm_dtype but got " +
                           std::to_string(static_cast<int>(dtype)));
    return ops::cast(value, static_cast<artifact::DType>(dtype));
  });
}

tdm_status tdm_graph_write_dot(tdm_tensor *const *roots, size_t root_count,
                               const char *path) {
  return writeGraph(roots, root_count, path, asDot);
}

tdm_status tdm_graph_write_json(tdm_tensor *const *roots, size_t root_count,
                                const char *path) {
  return writeGraph(roots, root_count, path, asJson);
}
