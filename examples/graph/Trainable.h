//===- Trainable.h - a compiled model whose params are leaves -------------===//
//
// What the examples share: a model, the leaves of its params, and an optimizer
// that goes down along their gradients.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_EXAMPLES_GRAPH_TRAINABLE_H
#define TANDEM_EXAMPLES_GRAPH_TRAINABLE_H

#if __has_include("runtime/graph.hpp") // in Tandem's own tree
#include "runtime/graph.hpp"
#else
#include <tandem/graph.hpp>
#endif

#include <random>

namespace example {

inline float *floats(const tdm::Tensor &tensor) {
  return static_cast<float *>(tdm_tensor_data(tensor.get()));
}

struct Trainable {
  Trainable(const char *path, uint64_t seed) : model(path, 1, seed) {
    for (const tdm_value &value : model.values())
      if (value.role == TDM_PARAM) {
        names.emplace_back(value.name);
        leaves.push_back(model.parameter(value.name).setRequiresGrad(true));
      }
  }

  /// Runs the model on its one input, as a node; with `isFrozen`, its params
  /// get no gradients.
  tdm::Tensor operator()(const char *input, const tdm::Tensor &value,
                         const char *output, bool isFrozen = false) {
    tdm_argument in = {input, value.get()};
    std::vector<tdm_argument> params;
    for (size_t i = 0; i < leaves.size() && !isFrozen; ++i)
      params.push_back({names[i].c_str(), leaves[i].get()});
    tdm::Tensor made;
    tdm_argument out = {output, made.get()};
    tdm::check(tdm_graph_forward(model.get(), &in, 1, params.data(),
                                 params.size(), &out, 1));
    return made;
  }

  /// Goes down along the gradients, and clears them.
  void update(float rate) {
    for (const tdm::Tensor &leaf : leaves) {
      tdm::Tensor gradient = tdm::gradientOf(leaf);
      for (int64_t i = 0; i < tdm_tensor_elements(gradient.get()); ++i)
        floats(leaf)[i] -= rate * floats(gradient)[i];
      tdm_tensor_mark_written(leaf.get());
      tdm::clearGradient(leaf);
    }
  }

  tdm::Model model;
  std::vector<std::string> names;
  tdm::TensorList leaves;
};

/// A tensor of normal numbers, or of one number everywhere.
inline tdm::Tensor normal(std::mt19937 &random, std::vector<int64_t> shape) {
  tdm::Tensor made = tdm::Tensor::zeros(TDM_F32, shape);
  std::normal_distribution<float> draw;
  for (int64_t i = 0; i < tdm_tensor_elements(made.get()); ++i)
    floats(made)[i] = draw(random);
  return made;
}
inline tdm::Tensor full(float value, std::vector<int64_t> shape) {
  tdm::Tensor made = tdm::Tensor::zeros(TDM_F32, shape);
  for (int64_t i = 0; i < tdm_tensor_elements(made.get()); ++i)
    floats(made)[i] = value;
  return made;
}

/// The mean of (x - target)².
inline tdm::Tensor meanSquare(const tdm::Tensor &x, float target) {
  tdm::Tensor off = tdm::add(x, full(-target, x.shape()));
  return tdm::scale(tdm::sum(tdm::mul(off, off)),
                    1.0 / static_cast<double>(tdm_tensor_elements(x.get())));
}

} // namespace example

#endif
