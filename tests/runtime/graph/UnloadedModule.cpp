// What UnloadTest.c loads: a backward over two devices, whose threads then
// sleep.
#include "runtime/graph.hpp"

extern "C" TDM_EXPORT int runBackward();

extern "C" int runBackward() {
  using namespace tdm;
  const char *devices[] = {"cuda-emu:0", "cuda-emu:1"};
  TensorList leaves, roots, ones;
  for (const char *device : devices) {
    leaves.push_back(Tensor::zeros(device, TDM_F32, {}).setRequiresGrad(true));
    roots.push_back(add(leaves.back(), leaves.back()));
    ones.push_back(scale(Tensor::zeros(device, TDM_F32, {}), 1));
  }
  int calls = 0;
  addHook(leaves[0], [&](Tensor &) { ++calls; });
  backward(roots, ones);
  return calls == 1 && gradientOf(leaves[1]).defined() ? 0 : 1;
}
