//===- MatmulPanelsTest.cpp - products of many panels on the cpu ----------===//
//
// Sizes that the host's blocking of panels and packed rows is for. The emulator
// of GPUs, which runs the other products, too, would take minutes for them.
//
//===----------------------------------------------------------------------===//
#include "tests/lower/anchor/KernelCheck.h"
#include "tests/lower/anchor/MatmulKernel.h"

using namespace tandem::test;

static void check(const Product &p, int vectorBits = 0) {
  checkKernel(productKernel(p), {static_cast<double>(p.K), vectorBits});
}

static constexpr bool kBoth[] = {false, true};

TEST(Matmul, PanelsAfterEachOther) {
  // Of which the next one is packed while this one is multiplied.
  for (bool tl : kBoth)
    for (bool tr : kBoth) {
      check({{}, 200, 330, 517, tl, tr});
      check({{2}, 131, 192, 300, tl, tr});
      check({{}, 64, 520, 90, tl, tr});
    }
  check({{}, 300, 200, 301, true, false, "bf16"});
  check({{}, 100, 130, 401, false, false, "f64"});
  check({{}, 400, 100, 4500, true});
  for (int bits : {128, 256})
    for (bool tl : kBoth)
      check({{}, 130, 100, 300, tl}, bits);
}

TEST(Matmul, RowsOfAPackedForManyPanels) {
  check({{}, 601, 700, 40, true});
  check({{}, 523, 330, 300, true, true});
  check({{}, 520, 140, 4400, true});
  // A k that is not short: panels are shared, and not.
  check({{}, 775, 140, 601, true});
  check({{}, 523, 400, 1100, true});
  // Of several items, which pack their rows a part at a time.
  check({{}, 1041, 200, 515, true});
  check({{2}, 544, 200, 70, true});
  check({{}, 1030, 200, 267, true, false, "bf16"});
  check({{}, 300, 130, 270, true, false, "f64"});
  for (int bits : {128, 256})
    check({{}, 517, 200, 270, true}, bits);
}

TEST(Matmul, PanelsWithEndsThatReadMuch) {
  struct Sizes {
    int64_t m, n, k;
  };
  for (Sizes p : {Sizes{700, 400, 60}, {523, 520, 530}, {530, 400, 1030}})
    checkKernel(productKernel({{}, p.m, p.n, p.k, true}, ProductEnd::Update),
                {static_cast<double>(p.k)});
}
