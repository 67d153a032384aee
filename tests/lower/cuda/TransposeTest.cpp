//===- TransposeTest.cpp - operands that a kernel turns -------------------===//
#include "tests/lower/cuda/CudaCheck.h"

using namespace tandem::test;

static std::string tensor(std::initializer_list<int64_t> shape,
                          const std::string &element) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element + ">";
}

static bool usesSharedMemory(const std::string &ptx) {
  return ptx.find("ld.shared") != std::string::npos;
}

/// Whole tiles, pieces of tiles, and all widths of elements.
TEST(CudaTranspose, OneOperand) {
  for (const char *element : {"f32", "bf16", "f64", "i1", "i32"})
    for (auto [n, m] : {std::pair{64, 96}, {33, 47}, {16, 1000}}) {
      std::string x = tensor({n, m}, element), y = tensor({m, n}, element);
      std::string ptx =
          checkCuda(kernelModule({x}, {y},
                                 "%y = tandem.permute %0 by [1, 0] : " + x +
                                     " -> " + y + "\ntandem.yield %y : " + y),
                    {1});
      EXPECT_TRUE(usesSharedMemory(ptx)) << element << " " << n << "x" << m;
    }
}

/// What is narrow is read as it lies.
TEST(CudaTranspose, Narrow) {
  std::string x = tensor({8, 64}, "f32"), y = tensor({64, 8}, "f32");
  std::string ptx =
      checkCuda(kernelModule({x}, {y},
                             "%y = tandem.permute %0 by [1, 0] : " + x +
                                 " -> " + y + "\ntandem.yield %y : " + y),
                {1});
  EXPECT_FALSE(usesSharedMemory(ptx));
}

/// Two operands are turned, a third lies as the result does, and there are
/// dimensions around the two.
TEST(CudaTranspose, AmongOthers) {
  std::string x = tensor({3, 40, 5, 36}, "f32"),
              y = tensor({3, 36, 5, 40}, "f32");
  std::string ptx = checkCuda(
      kernelModule({x, x, y}, {y, y},
                   "%a = tandem.add %0, %1 : " + x +
                       "\n%t = tandem.permute %a by [0, 3, 2, 1] : " + x +
                       " -> " + y + "\n%b = tandem.mul %t, %2 : " + y +
                       "\n%c = tandem.sub %2, %b : " + y +
                       "\ntandem.yield %b, %c : " + y + ", " + y),
      {1});
  EXPECT_TRUE(usesSharedMemory(ptx));
}

/// An operand that is read both ways.
TEST(CudaTranspose, BothWays) {
  std::string x = tensor({70, 70}, "f32");
  std::string ptx = checkCuda(
      kernelModule({x}, {x},
                   "%t = tandem.permute %0 by [1, 0] : " + x + " -> " + x +
                       "\n%y = tandem.sub %0, %t : " + x +
                       "\ntandem.yield %y : " + x),
      {1});
  EXPECT_TRUE(usesSharedMemory(ptx));
}

/// Bytes are turned as pieces of 16, whatever they are of: whole tiles, parts
/// of them, batches. The same bytes come out, NaN and infinities too.
TEST(CudaTranspose, Bytes) {
  for (const char *element : {"f8E4M3FN", "f8E5M2", "i8", "ui8"})
    for (auto [n, m] : {std::pair{64, 128}, {48, 80}, {16, 16}, {208, 32}}) {
      std::string x = tensor({3, n, m}, element),
                  y = tensor({3, m, n}, element);
      std::string ptx =
          checkCuda(kernelModule({x}, {y},
                                 "%y = tandem.permute %0 by [0, 2, 1] : " + x +
                                     " -> " + y + "\ntandem.yield %y : " + y),
                    {1}, 100);
      EXPECT_NE(ptx.find("st.global.v4"), std::string::npos) << ptx;
      EXPECT_EQ(ptx.find("cvt.rn"), std::string::npos) << element;
    }
}
