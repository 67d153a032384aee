// penalty.cpp - a gradient penalty: the gradient of a gradient.
//
//   penalty CRITIC.tdm      (compiled with --order=2)
//
// The critic is trained until the gradient of its scores by the points has
// length 1 everywhere: its loss is made of a gradient that has a gradient.
#include "Trainable.h"

#include <cmath>
#include <cstdio>

using namespace example;

int main(int argc, char **argv) try {
  if (argc != 2)
    return std::fprintf(stderr, "usage: penalty CRITIC.tdm\n"), 2;
  Trainable critic(argv[1], 2);
  std::mt19937 random(3);
  float first = 0, last = 0;
  for (int step = 0; step < 400; ++step) {
    tdm::Tensor points = normal(random, {16, 2}).setRequiresGrad(true);
    tdm::Tensor scores = tdm::sum(critic("points", points, "scores"));
    // The gradient has history, as it was asked for with TDM_CREATE_GRAPH.
    tdm::Tensor slope = tdm::grad({scores}, {points}, {}, TDM_CREATE_GRAPH)[0];
    tdm::Tensor lengths = tdm::mul(slope, slope);
    tdm::Tensor loss = meanSquare(lengths, 0.5f); // two of them make 1
    tdm::backward({loss});
    critic.update(0.2f);
    last = floats(loss)[0];
    if (step == 0)
      first = last;
  }
  std::printf("penalty %.4f, then %.4f\n", first, last);
  return last < 0.25f * first ? 0 : 1;
} catch (const tdm::Error &error) {
  return std::fprintf(stderr, "penalty: %s\n", error.what()), error.status;
}
