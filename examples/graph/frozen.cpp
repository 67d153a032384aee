// frozen.cpp - a frozen backbone, a head that is trained, clipped gradients.
//
//   frozen BACKBONE.tdm HEAD.tdm
//
// The backbone's params are no leaves here, so its calls make no node and keep
// nothing. A hook on each leaf of the head bounds its gradient's norm.
#include "Trainable.h"

#include <cmath>
#include <cstdio>

using namespace example;

int main(int argc, char **argv) try {
  if (argc != 3)
    return std::fprintf(stderr, "usage: frozen BACKBONE.tdm HEAD.tdm\n"), 2;
  Trainable backbone(argv[1], 1), head(argv[2], 2);
  constexpr float kNorm = 0.5f;
  int clipped = 0;
  for (const tdm::Tensor &leaf : head.leaves)
    tdm::addHook(leaf, [&](tdm::Tensor &gradient) {
      double squares = 0;
      for (int64_t i = 0; i < tdm_tensor_elements(gradient.get()); ++i)
        squares += double(floats(gradient)[i]) * floats(gradient)[i];
      if (double norm = std::sqrt(squares); norm > kNorm) {
        gradient = tdm::scale(gradient, kNorm / norm);
        ++clipped;
      }
    });
  std::mt19937 random(3);
  tdm::Tensor noise = normal(random, {16, 4});
  float first = 0, last = 0;
  for (int step = 0; step < 300; ++step) {
    tdm::Tensor features = backbone("noise", noise, "points", true);
    if (features.requiresGrad())
      return std::fprintf(stderr, "frozen: the backbone has a node\n"), 1;
    tdm::Tensor loss = meanSquare(head("points", features, "scores"), 3);
    tdm::backward({loss});
    head.update(0.05f);
    last = floats(loss)[0];
    if (step == 0)
      first = last;
  }
  std::printf("loss %.3f, then %.5f; %d gradients were clipped\n", first, last,
              clipped);
  return clipped > 0 && last < 0.01f * first ? 0 : 1;
} catch (const tdm::Error &error) {
  return std::fprintf(stderr, "frozen: %s\n", error.what()), error.status;
}
