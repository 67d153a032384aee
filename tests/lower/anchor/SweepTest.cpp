//===- SweepTest.cpp - kernels of random shapes against the reference -----===//
//
// What the tests by name do not think of: sizes around those of vectors, tiles
// and blocks, in any combination, with every element type, width of vectors,
// end and schedule. A run is 40 kernels of each kind (10 of attention), always
// the same ones. For others, one seed after the other:
//
//   lower-sweep --gtest_shuffle --gtest_random_seed=1 --gtest_repeat=100
//
//===----------------------------------------------------------------------===//
#include "tests/lower/anchor/AttentionKernel.h"
#include "tests/lower/anchor/ConvolutionKernel.h"
#include "tests/lower/anchor/KernelCheck.h"
#include "tests/lower/anchor/MatmulKernel.h"
#include "tests/lower/anchor/MethodRows.h"

#include <cmath>
#include <random>

using namespace tandem::test;

namespace {
constexpr int kKernels = 40;

/// What is drawn; the seed is the run's and the kernel's number.
class Draw {
public:
  explicit Draw(int number)
      : random(seedOfRun() * 1000u + static_cast<unsigned>(number)) {}

  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }
  bool chance(double share) {
    return std::uniform_real_distribution<double>(0, 1)(random) < share;
  }
  template <typename T> T oneOf(std::initializer_list<T> list) {
    return *(list.begin() + between(0, std::ssize(list) - 1));
  }
  /// Small ones as often as large ones; some next to a multiple of what
  /// schedules are made of.
  int64_t size(int64_t most) {
    double exponent = std::uniform_real_distribution<double>(
        0, std::log2(static_cast<double>(most) + 1))(random);
    auto drawn = static_cast<int64_t>(std::exp2(exponent));
    if (chance(0.4)) {
      int64_t unit = oneOf<int64_t>({8, 16, 48, 64, 256});
      drawn = (drawn + unit / 2) / unit * unit + between(-1, 1);
    }
    return std::clamp<int64_t>(drawn, 1, most);
  }
  std::string element() {
    return chance(0.7) ? "f32"
                       : oneOf<const char *>({"f64", "bf16", "f16", "f32"});
  }
  int vectorBits() { return chance(0.6) ? 0 : oneOf({128, 256}); }

  /// The kernel, which now and then says how it is cut: by any method that
  /// computes it, for vectors of so many bits.
  std::string scheduled(std::string text, int vectorBits, bool hasColumns) {
    if (!chance(0.35))
      return text;
    auto methods = possible(explained(text, cpuTarget(vectorBits)));
    std::string schedule;
    auto add = [&](const std::string &entry) {
      schedule += (schedule.empty() ? "" : ", ") + entry;
    };
    if (chance(0.6))
      add("method = " + methods[between(0, std::ssize(methods) - 1)]);
    if (chance(0.6)) {
      add("rows = " + std::to_string(between(1, 14)));
      add("vectors = " + std::to_string(between(1, 4)));
    }
    if (chance(0.5))
      add("block = " + std::to_string(size(600)));
    if (hasColumns && chance(0.5))
      add("columns = " + std::to_string(size(600)));
    if (!hasColumns && chance(0.3))
      add(std::string("packs = ") + (chance(0.5) ? "true" : "false"));
    if (schedule.empty())
      return text;
    return wished(text, "#tandem.schedule<" + schedule + ">",
                  cpuTarget(vectorBits));
  }

private:
  /// GoogleTest's own is the time's unless one is asked for.
  static unsigned seedOfRun() {
    if (!GTEST_FLAG_GET(shuffle))
      return 0;
    return static_cast<unsigned>(
        testing::UnitTest::GetInstance()->random_seed());
  }

  std::mt19937 random;
};
} // namespace

/// So that the reference takes less than a tenth of a second.
static constexpr int64_t kMostProducts = 4 << 20;

TEST(Sweep, Products) {
  for (int i = 0; i < kKernels; ++i) {
    Draw draw(i);
    Product p;
    do {
      p = {{}, draw.size(700), draw.size(1100), draw.size(5000)};
      for (int64_t d = draw.chance(0.7) ? 0 : draw.between(1, 2); d > 0; --d)
        p.batch.push_back(draw.between(1, 5));
      p.transposeLhs = draw.chance(0.5);
      p.transposeRhs = draw.chance(0.5);
      p.element = draw.element();
    } while (p.M * p.N * p.K * (p.batch.empty() ? 1 : 8) > kMostProducts);
    // Of millions of sums some have thrice the error that is assumed of one.
    Tolerance tolerance{3 * static_cast<double>(p.K), draw.vectorBits()};
    // Five times the deviation of a sum, and two numbers that are added.
    tolerance.between = 5 * std::sqrt(static_cast<double>(p.K)) / 3 + 2;
    if (p.batch.empty() && !p.transposeRhs && draw.chance(0.15))
      checkKernel(draw.scheduled(panelProductKernel(p, p.N % 2 ? 16 : 64),
                                 tolerance.vectorBits,
                                 /*hasColumns=*/false),
                  tolerance);
    else
      checkKernel(
          draw.scheduled(
              productKernel(p,
                            draw.oneOf({ProductEnd::None, ProductEnd::None,
                                        ProductEnd::Bias, ProductEnd::Update})),
              tolerance.vectorBits, /*hasColumns=*/false),
          tolerance);
  }
}

static Convolution drawConvolution(Draw &draw) {
  Convolution c;
  while (true) {
    c = {draw.size(40),
         draw.size(700),
         draw.size(70),
         draw.size(70),
         draw.size(300),
         1,
         1};
    if (draw.chance(0.35)) {
      c.kh = c.kw = 3;
      std::fill_n(c.padding, 4, draw.chance(0.8) ? 1 : draw.between(0, 2));
    } else if (draw.chance(0.5)) {
      c.kh = draw.between(1, 7);
      c.kw = draw.between(1, 7);
      for (int64_t &padding : c.padding)
        padding = draw.between(0, 3);
      for (int64_t &dilation : c.dilation)
        dilation = draw.chance(0.8) ? 1 : draw.between(2, 3);
    }
    if (draw.chance(0.4))
      std::fill_n(c.stride, 2, draw.chance(0.8) ? 2 : draw.between(1, 4));
    if (draw.chance(0.1))
      c.stride[1] = draw.between(1, 3);
    if (draw.chance(0.2)) {
      c.groups = draw.chance(0.4) ? c.channels : draw.between(2, 4);
      c.channels = (c.channels + c.groups - 1) / c.groups * c.groups;
      c.filters = (c.filters + c.groups - 1) / c.groups * c.groups;
    }
    c.element = draw.element();
    int64_t h = (c.kh - 1) * c.dilation[0] + 1,
            w = (c.kw - 1) * c.dilation[1] + 1;
    if (c.height + c.padding[0] + c.padding[1] < h ||
        c.width + c.padding[2] + c.padding[3] < w)
      continue;
    if (c.batch * c.filters * c.outHeight() * c.outWidth() * c.kh * c.kw *
            (c.channels / c.groups) <=
        kMostProducts)
      return c;
  }
}

TEST(Sweep, Convolutions) {
  for (int i = 0; i < kKernels; ++i) {
    Draw draw(1000000 + i);
    Convolution c = drawConvolution(draw);
    int bits = draw.vectorBits();
    for (ConvolutionPass pass : kConvolutionPasses) {
      // The errors of Winograd's method are about twice those of a sum.
      double terms = 3 * termsOf(c, pass);
      Tolerance tolerance{terms, bits};
      // Five times the deviation of a sum, and two numbers that are added.
      tolerance.between = 5 * std::sqrt(termsOf(c, pass)) / 3 + 2;
      checkKernel(draw.scheduled(convolutionKernel(c, pass, draw.chance(0.3)),
                                 bits, /*hasColumns=*/true),
                  tolerance);
    }
  }
}

TEST(Sweep, Attention) {
  for (int i = 0; i < kKernels / 4; ++i) {
    Draw draw(2000000 + i);
    Heads heads{"", draw.size(200), draw.size(200), draw.size(130),
                draw.size(130)};
    for (int64_t d = draw.between(0, 2); d > 0; --d)
      heads.leading += std::to_string(draw.between(1, 4)) + "x";
    heads.causal = draw.chance(0.5);
    if (heads.causal && draw.chance(0.7))
      heads.S = heads.T;
    heads.element = draw.element();
    // Wide values beside narrow keys: greater numbers than toleranceOf assumes.
    Tolerance tolerance = toleranceOf(heads);
    tolerance.terms *= 4;
    tolerance.vectorBits = draw.vectorBits();
    for (AttentionKernel kernel :
         {AttentionKernel::Forward, AttentionKernel::QueryGrad,
          AttentionKernel::KeyGrad, AttentionKernel::BothGrads})
      checkKernel(attentionKernel(heads, kernel), tolerance);
  }
}
