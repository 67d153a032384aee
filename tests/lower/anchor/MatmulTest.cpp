//===- MatmulTest.cpp - matrix products on the cpu ------------------------===//
#include "tests/lower/anchor/KernelCheck.h"
#include "tests/lower/anchor/MatmulKernel.h"

using namespace tandem::test;

static void check(const Product &p, int vectorBits = 0) {
  checkKernel(productKernel(p), {static_cast<double>(p.K), vectorBits});
}

static constexpr bool kBoth[] = {false, true};

TEST(Matmul, Shapes) {
  const int64_t shapes[][3] = {
      {1, 1, 1},    {1, 17, 3},    {2, 5, 1},    {3, 33, 2},   {4, 16, 4},
      {7, 7, 7},    {13, 1, 5},    {5, 130, 9},  {64, 64, 64}, {31, 100, 19},
      {1, 300, 70}, {130, 10, 33}, {97, 65, 50}, {2, 200, 65}};
  for (auto [M, N, K] : shapes)
    for (bool tl : kBoth)
      for (bool tr : kBoth)
        check({{}, M, N, K, tl, tr});
}

TEST(Matmul, ManyBlocksOfK) {
  for (bool tl : kBoth)
    for (bool tr : kBoth)
      check({{}, 20, 70, 2051, tl, tr});
  check({{}, 3, 3, 5000});
}

TEST(Matmul, ManyBlocksOfRows) {
  check({{}, 1001, 40, 8});
  check({{}, 500, 130, 1100, true, true});
}

TEST(Matmul, RightFactorsInPanels) {
  const int64_t shapes[][3] = {{16, 128, 256}, {9, 65, 7},     {33, 333, 300},
                               {127, 200, 31}, {12, 64, 1030}, {200, 130, 9},
                               {8, 1000, 100}, {1, 70, 20}};
  for (auto [M, N, K] : shapes)
    for (bool tl : kBoth) {
      std::string wide = panelProductKernel({{}, M, N, K, tl}, 64);
      checkKernel(wide, {static_cast<double>(K)});
      for (int bits : {128, 256})
        checkKernel(wide, {static_cast<double>(K), bits});
      checkKernel(panelProductKernel({{}, M, N, K, tl}, 16),
                  {static_cast<double>(K), 256});
    }
  for (int64_t columns : {64, 16})
    for (const char *element : {"f64", "bf16"})
      checkKernel(
          panelProductKernel({{}, 20, 130, 70, false, false, element}, columns),
          {70.0});
}

TEST(Matmul, EndsThatReadMuch) {
  // An optimizer's update behind a weight gradient.
  struct Sizes {
    int64_t m, n, k;
  };
  for (Sizes p : {Sizes{83, 200, 64}, {83, 77, 300}, {83, 130, 520}})
    checkKernel(productKernel({{}, p.m, p.n, p.k, true}, ProductEnd::Update),
                {static_cast<double>(p.k)});
}

TEST(Matmul, Batches) {
  for (bool tl : kBoth)
    for (bool tr : kBoth) {
      check({{3}, 12, 12, 16, tl, tr});
      check({{2, 3}, 33, 40, 24, tl, tr});
      // Several items, tiles that are not whole, several short sums.
      check({{2, 2}, 131, 141, 67, tl, tr});
      check({{3}, 50, 200, 300, tl, tr});
    }
  check({{5, 1, 2}, 1, 1, 7});
}

TEST(Matmul, Elements) {
  for (const char *element : {"f64", "bf16", "f16"})
    for (bool tl : kBoth)
      for (bool tr : kBoth)
        check({{2}, 21, 39, 35, tl, tr, element});
  check({{}, 50, 70, 1300, false, true, "bf16"});
}

TEST(Matmul, NarrowVectors) {
  for (int bits : {128, 256})
    for (bool tr : kBoth) {
      check({{}, 37, 45, 29, false, tr}, bits);
      check({{}, 9, 11, 13, true, tr, "f64"}, bits);
    }
}

TEST(Matmul, FewRowsAlongK) {
  // Dot products: blocks of columns, of k, and what is left over of each.
  for (int64_t rows : {1, 2, 3, 4, 7, 8})
    for (auto [columns, inner] : {std::pair<int64_t, int64_t>{1, 128},
                                  {13, 131},
                                  {150, 300},
                                  {64, 1024}})
      check({{}, rows, columns, inner, false, true});
  check({{}, 2, 21, 9001, false, true});
  check({{2, 3}, 4, 67, 260, false, true});
  check({{}, 1, 40, 500, true, true});
  for (const char *element : {"f64", "bf16", "f16"})
    check({{}, 5, 70, 401, false, true, element});
  for (int bits : {128, 256}) {
    check({{}, 3, 35, 300, false, true}, bits);
    check({{}, 4, 35, 300, false, true, "f64"}, bits);
    check({{}, 5, 35, 300, false, true}, bits);
  }
  checkKernel(kernelModule({"tensor<3x200xf32>", "tensor<70x200xf32>",
                            "tensor<70xf32>", "tensor<3x70xf32>"},
                           {"tensor<3x70xbf16>", "tensor<3x70xf32>"}, R"(
    %y = tandem.matmul %0, %1 {transpose_rhs} : tensor<3x200xf32>, tensor<70x200xf32> -> tensor<3x70xf32>
    %b = tandem.broadcast %2 to [3, 70] along [1] : tensor<70xf32> -> tensor<3x70xf32>
    %s = tandem.add %y, %b : tensor<3x70xf32>
    %z = tandem.mul %s, %3 : tensor<3x70xf32>
    %c = tandem.cast %z : tensor<3x70xf32> to tensor<3x70xbf16>
    tandem.yield %c, %s : tensor<3x70xbf16>, tensor<3x70xf32>)"),
              {200});
}

TEST(Matmul, Epilogue) {
  checkKernel(kernelModule({"tensor<45x20xf32>", "tensor<20x70xf32>",
                            "tensor<70xf32>", "tensor<45x70xf32>"},
                           {"tensor<45x70xf32>", "tensor<45x70xf32>"}, R"(
    %y = tandem.matmul %0, %1 : tensor<45x20xf32>, tensor<20x70xf32> -> tensor<45x70xf32>
    %b = tandem.broadcast %2 to [45, 70] along [1] : tensor<70xf32> -> tensor<45x70xf32>
    %s = tandem.add %y, %b : tensor<45x70xf32>
    %t = tandem.tanh %s : tensor<45x70xf32>
    %z = tandem.mul %t, %3 : tensor<45x70xf32>
    tandem.yield %z, %s : tensor<45x70xf32>, tensor<45x70xf32>)"),
              {40});
}

TEST(Matmul, EpilogueWithAResultOfItsOwn) {
  checkKernel(kernelModule({"tensor<10x20xf32>", "tensor<20x30xf32>",
                            "tensor<2x5x30xf32>"},
                           {"tensor<2x5x30xf32>", "tensor<2x5x30xf32>"}, R"(
    %e = tandem.exp %2 : tensor<2x5x30xf32>
    %y = tandem.matmul %0, %1 : tensor<10x20xf32>, tensor<20x30xf32> -> tensor<10x30xf32>
    %r = tandem.reshape %y to [2, 5, 30] : tensor<10x30xf32> -> tensor<2x5x30xf32>
    %z = tandem.mul %r, %e : tensor<2x5x30xf32>
    tandem.yield %z, %e : tensor<2x5x30xf32>, tensor<2x5x30xf32>)"),
              {40});
}

TEST(Matmul, EpilogueThroughReshapeAndCast) {
  checkKernel(kernelModule({"tensor<6x1200xf32>", "tensor<1200x40xf32>",
                            "tensor<40xf32>", "tensor<2x3x40xf32>"},
                           {"tensor<2x3x40xbf16>"}, R"(
    %y = tandem.matmul %0, %1 : tensor<6x1200xf32>, tensor<1200x40xf32> -> tensor<6x40xf32>
    %r = tandem.reshape %y to [2, 3, 40] : tensor<6x40xf32> -> tensor<2x3x40xf32>
    %b = tandem.broadcast %2 to [2, 3, 40] along [2] : tensor<40xf32> -> tensor<2x3x40xf32>
    %s = tandem.add %r, %b : tensor<2x3x40xf32>
    %z = tandem.add %s, %3 : tensor<2x3x40xf32>
    %c = tandem.cast %z : tensor<2x3x40xf32> to tensor<2x3x40xbf16>
    tandem.yield %c : tensor<2x3x40xbf16>)"),
              {1200});
}

TEST(Matmul, ViewsAround) {
  // Heads out of and back into rows, as attention does.
  checkKernel(kernelModule({"tensor<2x10x3x8xf32>", "tensor<2x10x24xf32>"},
                           {"tensor<2x10x3x10xf32>"}, R"(
    %q = tandem.permute %0 by [0, 2, 1, 3] : tensor<2x10x3x8xf32> -> tensor<2x3x10x8xf32>
    %h = tandem.reshape %1 to [2, 10, 3, 8] : tensor<2x10x24xf32> -> tensor<2x10x3x8xf32>
    %k = tandem.permute %h by [0, 2, 1, 3] : tensor<2x10x3x8xf32> -> tensor<2x3x10x8xf32>
    %y = tandem.matmul %q, %k {transpose_rhs} : tensor<2x3x10x8xf32>, tensor<2x3x10x8xf32> -> tensor<2x3x10x10xf32>
    %z = tandem.permute %y by [0, 2, 1, 3] : tensor<2x3x10x10xf32> -> tensor<2x10x3x10xf32>
    tandem.yield %z : tensor<2x10x3x10xf32>)"),
              {8});
}

TEST(Matmul, LastPieceOfPieces) {
  // The last state of a loop that was written out: the product's elements in
  // their order, though not by views that only reorder.
  checkKernel(kernelModule({"tensor<4x16xf32>", "tensor<16x16xf32>",
                            "tensor<3x4x16xf32>", "tensor<4x16xf32>"},
                           {"tensor<4x1x16xf32>", "tensor<4x16xi1>"}, R"(
    %y = tandem.matmul %0, %1 : tensor<4x16xf32>, tensor<16x16xf32> -> tensor<4x16xf32>
    %r = tandem.relu %y : tensor<4x16xf32>
    %s = tandem.reshape %r to [1, 4, 16] : tensor<4x16xf32> -> tensor<1x4x16xf32>
    %f = tandem.pad %2 low [0, 0, 0] high [1, 0, 0] interior [0, 0, 0] with 0.000000e+00 : f32 : tensor<3x4x16xf32> -> tensor<4x4x16xf32>
    %l = tandem.pad %s low [3, 0, 0] high [0, 0, 0] interior [0, 0, 0] with 0.000000e+00 : f32 : tensor<1x4x16xf32> -> tensor<4x4x16xf32>
    %i = tandem.iota dim 0 : tensor<4x4x16xi32>
    %c = tandem.constant dense<3> : tensor<4x4x16xi32>
    %b = tandem.compare lt %i, %c : tensor<4x4x16xi32>
    %a = tandem.select %b, %f, %l : tensor<4x4x16xi1>, tensor<4x4x16xf32>
    %p = tandem.permute %a by [1, 0, 2] : tensor<4x4x16xf32> -> tensor<4x4x16xf32>
    %z = tandem.slice %p from [0, 3, 0] to [4, 4, 16] step [1, 1, 1] : tensor<4x4x16xf32> -> tensor<4x1x16xf32>
    %g = tandem.compare gt %r, %3 : tensor<4x16xf32>
    tandem.yield %z, %g : tensor<4x1x16xf32>, tensor<4x16xi1>)"),
              {16});
}

TEST(Matmul, ReshapesThatDoNotFollowEachOther) {
  // What a group norm does with an image of [2, 4, 3, 4]: elements of the
  // result were read at places that were written otherwise than its own.
  checkKernel(kernelModule({"tensor<24x13xf32>", "tensor<4x13xf32>",
                            "tensor<2x4x3x4xf32>", "tensor<2x1x48xf32>"},
                           {"tensor<24x4xf32>", "tensor<2x4x3x4xf32>",
                            "tensor<2x1x48xf32>"},
                           R"(
    %y = tandem.matmul %0, %1 {transpose_rhs} : tensor<24x13xf32>, tensor<4x13xf32> -> tensor<24x4xf32>
    %g = tandem.reshape %y to [2, 1, 48] : tensor<24x4xf32> -> tensor<2x1x48xf32>
    %d = tandem.sub %g, %3 : tensor<2x1x48xf32>
    %i = tandem.reshape %d to [2, 4, 3, 4] : tensor<2x1x48xf32> -> tensor<2x4x3x4xf32>
    %m = tandem.mul %2, %i : tensor<2x4x3x4xf32>
    %o = tandem.reshape %2 to [2, 1, 48] : tensor<2x4x3x4xf32> -> tensor<2x1x48xf32>
    %n = tandem.mul %o, %d : tensor<2x1x48xf32>
    tandem.yield %y, %m, %n : tensor<24x4xf32>, tensor<2x4x3x4xf32>, tensor<2x1x48xf32>)"),
              {13});
}

TEST(Matmul, ViewsWithoutStrides) {
  // A pad and a slice before, a transpose after the product.
  checkKernel(kernelModule({"tensor<9x5xf32>", "tensor<16x30xf32>"},
                           {"tensor<30x9xf32>"}, R"(
    %p = tandem.pad %0 low [0, 1] high [0, 2] interior [0, 0] with 1.0 : f32 : tensor<9x5xf32> -> tensor<9x8xf32>
    %s = tandem.slice %1 from [0, 0] to [16, 30] step [2, 1] : tensor<16x30xf32> -> tensor<8x30xf32>
    %y = tandem.matmul %p, %s : tensor<9x8xf32>, tensor<8x30xf32> -> tensor<9x30xf32>
    %z = tandem.permute %y by [1, 0] : tensor<9x30xf32> -> tensor<30x9xf32>
    tandem.yield %z : tensor<30x9xf32>)"),
              {8});
  checkKernel(kernelModule({"tensor<9x5xf32>", "tensor<20x8xf32>"},
                           {"tensor<20x9xf32>"}, R"(
    %p = tandem.pad %0 low [0, 1] high [0, 2] interior [0, 0] with 0.5 : f32 : tensor<9x5xf32> -> tensor<9x8xf32>
    %y = tandem.matmul %1, %p {transpose_rhs} : tensor<20x8xf32>, tensor<9x8xf32> -> tensor<20x9xf32>
    tandem.yield %y : tensor<20x9xf32>)"),
              {8});
}
