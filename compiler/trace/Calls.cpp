//===- Calls.cpp - functions of traced programs that are calls ------------===//
#include "compiler/trace/Call.h"
#include "compiler/trace/Functions.h"

using namespace tandem;

/// The first result.
static Tensor one(const char *function, const std::vector<Tensor> &operands,
                  const std::vector<NamedValue> &attributes, Where where) {
  return call(function, operands, attributes, where)[0];
}

Tensor tandem::clamp(const Tensor &x, std::optional<double> low,
                     std::optional<double> high, Where where) {
  std::vector<NamedValue> bounds;
  if (low)
    bounds.push_back({"min", *low});
  if (high)
    bounds.push_back({"max", *high});
  return one("clamp", {x}, bounds, where);
}

Tensor tandem::var(const Tensor &x, Shape dims, double correction, bool keep,
                   Where where) {
  return one("var", {x},
             {{"dim", dims}, {"correction", correction}, {"keepdim", keep}},
             where);
}

Tensor tandem::norm(const Tensor &x, double p, Shape dims, bool keep,
                    Where where) {
  return one("norm", {x}, {{"p", p}, {"dim", dims}, {"keepdim", keep}}, where);
}

Tensor tandem::logSumExp(const Tensor &x, Shape dims, bool keep, Where where) {
  return one("logsumexp", {x}, {{"dim", dims}, {"keepdim", keep}}, where);
}

std::pair<Tensor, Tensor> tandem::topk(const Tensor &x, int64_t k, int64_t dim,
                                       bool largest, Where where) {
  std::vector<Tensor> made =
      call("topk", {x}, {{"k", k}, {"dim", dim}, {"largest", largest}}, where);
  return {made[0], made[1]};
}

std::pair<Tensor, Tensor> tandem::sort(const Tensor &x, int64_t dim,
                                       bool descending, Where where) {
  int64_t rank = x.valid() ? x.shape().size() : 0;
  bool isDim = dim >= -rank && dim < rank;
  int64_t size = isDim ? x.shape()[dim < 0 ? dim + rank : dim] : 0;
  return topk(x, size, dim, descending, where);
}

Tensor tandem::flip(const Tensor &x, Shape dims, Where where) {
  return one("flip", {x}, {{"dim", dims}}, where);
}

Tensor tandem::stack(const std::vector<Tensor> &tensors, int64_t dim,
                     Where where) {
  return one("stack", tensors, {{"dim", dim}}, where);
}

Tensor tandem::einsum(const std::string &equation,
                      const std::vector<Tensor> &tensors, Where where) {
  return one("einsum", tensors, {{"equation", equation}}, where);
}

Tensor tandem::gather(const Tensor &x, int64_t dim, const Tensor &index,
                      Where where) {
  return one("gather", {x, index}, {{"dim", dim}}, where);
}

Tensor tandem::indexSelect(const Tensor &x, int64_t dim, const Tensor &index,
                           Where where) {
  return one("index_select", {x, index}, {{"dim", dim}}, where);
}

Tensor tandem::scatter(const Tensor &x, int64_t dim, const Tensor &index,
                       const Tensor &source, Where where) {
  return one("scatter_elements", {x, index, source}, {{"dim", dim}}, where);
}

Tensor tandem::scatterAdd(const Tensor &x, int64_t dim, const Tensor &index,
                          const Tensor &source, Where where) {
  return one("scatter_add", {x, index, source}, {{"dim", dim}}, where);
}

Tensor tandem::oneHot(const Tensor &index, int64_t classes, Where where) {
  return one("one_hot", {index}, {{"num_classes", classes}}, where);
}

Tensor tandem::interpolate(const Tensor &x, Shape size, const std::string &mode,
                           bool alignCorners, Where where) {
  return one("interpolate", {x},
             {{"size", size}, {"mode", mode}, {"align_corners", alignCorners}},
             where);
}
