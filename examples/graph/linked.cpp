// linked.cpp - pieces that were composed while experimenting become one
// program.
//
//   linked GENERATOR.tdm CRITIC.tdm GRAPH.json              writes the graph
//   tandem link GENERATOR.tdm CRITIC.tdm --graph=GRAPH.json -o LINKED.tdm
//   linked GENERATOR.tdm CRITIC.tdm GRAPH.json LINKED.tdm   compares
//
// The loss is the mean square of what the critic says of the generator's
// points. The linked program has the same loss and gradients, in one call.
#include "Trainable.h"

#include <cmath>
#include <cstdio>
#include <map>

using namespace example;

namespace {

float largest = 0; ///< difference of what should be the same

void compare(const char *what, const tdm::Tensor &x, const tdm::Tensor &y) {
  float far = 0;
  for (int64_t i = 0; i < x.elements(); ++i)
    far = std::max(far, std::fabs(floats(x)[i] - floats(y)[i]) /
                            (1e-3f + std::fabs(floats(x)[i])));
  std::printf("%-14s differs by %.1e\n", what, static_cast<double>(far));
  largest = std::max(largest, far);
}

/// Runs the linked program with the params of the pieces.
void runLinked(const char *path, const tdm::Tensor &noise,
               const tdm::Tensor &loss,
               const std::map<std::string, tdm::Tensor> &leaves) {
  tdm::Model linked(path);
  std::vector<tdm_argument> grads;
  std::map<std::string, tdm::Tensor> gradients;
  for (const auto &[name, leaf] : leaves) {
    tdm::check(tdm_set(linked.get(), name.c_str(), leaf.get()));
    grads.push_back({name.c_str(), gradients[name].get()});
  }
  tdm::Tensor made;
  tdm_argument in = {"noise", noise.get()}, out = {"loss", made.get()};
  tdm_context *context = nullptr;
  tdm::check(tdm_forward(linked.get(), &in, 1, &out, 1, &context));
  tdm::Tensor one = full(1, {});
  tdm_argument cotangent = {"loss", one.get()};
  tdm::check(tdm_backward(linked.get(), context, &cotangent, 1, grads.data(),
                          grads.size(), 0));
  tdm_context_free(context);
  compare("loss", loss, made);
  for (const auto &[name, leaf] : leaves)
    compare(name.c_str(), tdm::gradientOf(leaf), gradients[name]);
}

} // namespace

int main(int argc, char **argv) try {
  if (argc != 4 && argc != 5)
    return std::fprintf(stderr, "usage: linked GENERATOR.tdm CRITIC.tdm "
                                "GRAPH.json [LINKED.tdm]\n"),
           2;
  Trainable generator(argv[1], 1), critic(argv[2], 2);
  std::mt19937 random(3);
  tdm::Tensor noise = normal(random, {16, 4});
  tdm::Tensor points = generator("noise", noise, "points");
  tdm::Tensor scores = critic("points", points, "scores");
  tdm::Tensor loss = tdm::scale(tdm::sum(tdm::mul(scores, scores)), 1.0 / 16);
  if (argc == 4) {
    tdm_tensor *root = loss.get();
    tdm::check(tdm_graph_write_json(&root, 1, argv[3]));
    std::printf("wrote the graph to %s\n", argv[3]);
    return 0;
  }
  tdm::backward({loss});
  std::map<std::string, tdm::Tensor> leaves;
  for (size_t i = 0; i < generator.leaves.size(); ++i)
    leaves["generator." + generator.names[i]] = generator.leaves[i];
  for (size_t i = 0; i < critic.leaves.size(); ++i)
    leaves["critic." + critic.names[i]] = critic.leaves[i];
  runLinked(argv[4], noise, loss, leaves);
  return largest < 1e-5f ? 0 : 1;
} catch (const tdm::Error &error) {
  return std::fprintf(stderr, "linked: %s\n", error.what()), error.status;
}
