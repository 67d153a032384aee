//===- WrapperTest.cpp - the C++ wrapper over the C API -------------------===//
//
// runtime-wrapper ARTIFACT: trains the regression through tandem.hpp, linking
// libtandem.so only.
//
//===----------------------------------------------------------------------===//
#include "runtime/tandem.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  std::vector<float> xs(24), ys(8);
  for (int i = 0; i < 24; ++i)
    xs[i] = static_cast<float>(std::sin(1.7 * i));
  for (int i = 0; i < 8; ++i)
    ys[i] = xs[3 * i] - 2 * xs[3 * i + 1] + 3 * xs[3 * i + 2] + 0.5f;
  try {
    tdm::Model model(argv[1], 2, 7);
    tdm::Tensor x = tdm::Tensor::wrap(xs.data(), TDM_F32, {8, 3});
    tdm::Tensor y = tdm::Tensor::wrap(ys.data(), TDM_F32, {8});
    tdm::Tensor one = tdm::Tensor::zeros(TDM_F32, {});
    *one.data<float>() = 1;
    tdm::Tensor loss, gw, gb;
    tdm::Context context;
    for (int i = 0; i < 300; ++i) {
      model.forward(context, {{"x", x}, {"y", y}}, {{"loss", loss}});
      model.backward(context, {{"loss", one}}, {{"w", gw}, {"b", gb}});
      model.update({{"w", gw}, {"b", gb}});
    }
    float bias = *model.parameter("b").data<float>();
    if (*loss.data<float>() > 1e-3f || std::fabs(bias - 0.5f) > 0.05f ||
        gw.shape() != std::vector<int64_t>{3}) {
      std::fprintf(stderr, "loss %g, bias %g\n", *loss.data<float>(), bias);
      return 1;
    }
    // Three rows, without the y of the loss.
    tdm::Tensor few = tdm::Tensor::wrap(xs.data(), TDM_F32, {3, 3}), pred;
    model.predict({{"x", few}}, {{"pred", pred}});
    if (pred.shape() != std::vector<int64_t>{3})
      return 1;
    tdm::Tensor view = x.view({3, 8}, {1, 3}), copy = x.detach();
    uint64_t version = x.version();
    view.markWritten();
    if (copy.version() != version + 1 || view.strides()[1] != 3 ||
        !copy.setRequiresGrad().requiresGrad() || !copy.isLeaf() ||
        !loss.requiresGrad() || loss.isLeaf())
      return 1;
    // Two steps on what a callback gives.
    tdm_feed feed = TDM_FEED_INIT;
    feed.user = xs.data();
    feed.steps = 2;
    feed.next = [](void *user, int64_t, const tdm_argument *inputs,
                   size_t count, int *) -> tdm_status {
      const auto *numbers = static_cast<const float *>(user);
      for (size_t i = 0; i < count; ++i) {
        auto *to = static_cast<float *>(tdm_tensor_data(inputs[i].tensor));
        for (int64_t k = tdm_tensor_elements(inputs[i].tensor); k-- > 0;)
          to[k] = numbers[k];
      }
      return TDM_OK;
    };
    if (model.train(feed, {{"loss", loss}}) != 2 ||
        !(*loss.data<float>() > 1e-3f))
      return 1;
    model.step({{"x", y}}, {});
  } catch (const tdm::Error &error) {
    // The last step is wrong in three ways, and says so.
    return error.status == TDM_USAGE ? 0 : 1;
  }
  return 1;
}
