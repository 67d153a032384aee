// gan.cpp - two artifacts, two optimizers, one backward through both.
//
//   gan GENERATOR.tdm CRITIC.tdm
//
// The generator learns to make points around (2, -1). Its gradients come
// through the critic's program, which was compiled by itself.
#include "Trainable.h"

#include <cmath>
#include <cstdio>

using namespace example;

int main(int argc, char **argv) try {
  if (argc != 3)
    return std::fprintf(stderr, "usage: gan GENERATOR.tdm CRITIC.tdm\n"), 2;
  Trainable generator(argv[1], 1), critic(argv[2], 2);
  std::mt19937 random(3);
  float x = 0, y = 0;
  for (int step = 0; step < 1500; ++step) {
    tdm::Tensor real = normal(random, {16, 2});
    for (int i = 0; i < 16; ++i) {
      floats(real)[2 * i] = 2 + 0.1f * floats(real)[2 * i];
      floats(real)[2 * i + 1] = -1 + 0.1f * floats(real)[2 * i + 1];
    }
    tdm::Tensor fake = generator("noise", normal(random, {16, 4}), "points");

    // The critic: 1 for real points, 0 for made ones. `detach`: the generator
    // gets no gradient of this.
    tdm_tensor *detached = nullptr;
    tdm::check(tdm_tensor_detach(fake.get(), &detached));
    tdm::backward(
        {meanSquare(critic("points", real, "scores"), 1),
         meanSquare(critic("points", tdm::Tensor(detached), "scores"), 0)});
    critic.update(0.1f);

    // The generator: the critic takes its points for real ones. Only the
    // generator's params collect.
    tdm::backwardTo(generator.leaves,
                    {meanSquare(critic("points", fake, "scores"), 1)});
    generator.update(0.05f);

    x = y = 0;
    for (int i = 0; i < 16; ++i) {
      x += floats(fake)[2 * i] / 16;
      y += floats(fake)[2 * i + 1] / 16;
    }
    if (step % 500 == 0)
      std::printf("step %4d: points around (%.2f, %.2f)\n", step, x, y);
  }
  std::printf("in the end: points around (%.2f, %.2f)\n", x, y);
  return std::fabs(x - 2) < 0.6f && std::fabs(y + 1) < 0.6f ? 0 : 1;
} catch (const tdm::Error &error) {
  return std::fprintf(stderr, "gan: %s\n", error.what()), error.status;
}
