//===- WarpgroupTest.cpp - TMA, mbarriers and wgmma -----------------------===//
#include "cuda/emulator/TensorMap.h"
#include "cuda/emulator/kernel/SmallFloats.h"
#include "tests/cuda/emulator/kernel/EmulatedKernels.h"

#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::test;
using emulator::Order;
using emulator::TensorMap;

namespace {

bool mentions(const Status &status, const std::string &text) {
  return status.message().find(text) != std::string::npos;
}

std::string number(int64_t value) { return std::to_string(value); }

/// D (64 x 64, f32) = A (64 x 64) B (64 x 64), f16, both tiles brought by TMA
/// with a swizzle of 128 bytes. B is [k][n], or [n][k] if `transposed` is 0.
/// `between` stands where both tiles have come, `addsOne` adds 1 to the sums in
/// the middle. `ofRegisters`: A is read from another argument and multiplied
/// from registers, and the sums pass through the last wait.
std::string productText(int transposed, const std::string &between = "",
                        bool addsOne = false, bool ofRegisters = false) {
  std::string text = R"(
@a = internal addrspace(3) global [8192 x i8] undef, align 1024
@b = internal addrspace(3) global [8192 x i8] undef, align 1024
@bar = internal addrspace(3) global i64 undef, align 8
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3), i32)
declare void @llvm.nvvm.fence.proxy.async.shared_cta()
declare void @llvm.nvvm.fence.mbarrier_init.release.cluster()
declare i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3), i32)
declare i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3), i32)
declare void @llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d(ptr addrspace(7), ptr addrspace(3), ptr, i32, i32, i16, i64, i1, i1, i32)
declare void @llvm.nvvm.wgmma.fence.sync.aligned()
declare void @llvm.nvvm.wgmma.commit_group.sync.aligned()
declare void @llvm.nvvm.wgmma.wait_group.sync.aligned(i64)
define ptx_kernel void @tile(ptr byval([128 x i8]) align 64 %ma, ptr byval([128 x i8]) align 64 %mb, ptr %D)" +
                     std::string(ofRegisters ? ", ptr %A" : "") + R"() {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %w = lshr i32 %t, 5
  %w16 = mul i32 %w, 16
  %lane = and i32 %t, 31
  %g = lshr i32 %lane, 2
  %q = and i32 %lane, 3
  %row = add i32 %w16, %g
  %r64 = mul i32 %row, 64
  %q2 = mul i32 %q, 2
  %at = add i32 %r64, %q2
  %leads = icmp eq i32 %t, 0
  br i1 %leads, label %prepare, label %start
prepare:
  call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @bar, i32 1)
  call void @llvm.nvvm.fence.mbarrier_init.release.cluster()
  br label %start
start:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br i1 %leads, label %fetch, label %wait
fetch:
  %s = call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3) @bar, i32 16384)
  %a7 = addrspacecast ptr addrspace(3) @a to ptr
  %a77 = addrspacecast ptr %a7 to ptr addrspace(7)
  call void @llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d(ptr addrspace(7) %a77, ptr addrspace(3) @bar, ptr %ma, i32 0, i32 0, i16 0, i64 0, i1 false, i1 false, i32 0)
  %b7 = addrspacecast ptr addrspace(3) @b to ptr
  %b77 = addrspacecast ptr %b7 to ptr addrspace(7)
  call void @llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d(ptr addrspace(7) %b77, ptr addrspace(3) @bar, ptr %mb, i32 0, i32 0, i16 0, i64 0, i1 false, i1 false, i32 0)
  br label %wait
wait:
  %done = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3) @bar, i32 0)
)" + between + R"(
  call void @llvm.nvvm.wgmma.fence.sync.aligned()
  %ai = ptrtoint ptr addrspace(3) @a to i64
  %bi = ptrtoint ptr addrspace(3) @b to i64
)";
  std::string structure = "{", constraints, outputs, types;
  for (int i = 0; i < 32; ++i) {
    structure += i ? ", float" : "float";
    constraints += "=f,";
    outputs += (i ? ", $" : "$") + number(i);
  }
  structure += "}";
  for (int i = 0; i < 32; ++i)
    constraints += number(i) + ",";
  for (int step = 0; step < 4; ++step) {
    std::string n = number(step);
    auto descriptor = [&](const char *matrix, int advance) {
      std::string m = std::string(matrix) + n;
      // Offset, leading 8192 bytes, stride 1024 bytes, swizzle of 128 bytes.
      uint64_t fields = uint64_t(8192 >> 4) << 16 | uint64_t(1024 >> 4) << 32 |
                        uint64_t(1) << 62;
      text += "  %" + m + ".at = add i64 %" + matrix + "i, " + number(advance) +
              "\n  %" + m + ".low = and i64 %" + m + ".at, 262143\n  %" + m +
              ".unit = lshr i64 %" + m + ".low, 4\n  %" + m + " = or i64 %" +
              m + ".unit, " + number(static_cast<int64_t>(fields)) + "\n";
    };
    descriptor("a", step * 32);
    descriptor("b", step * (transposed ? 2048 : 32));
    bool isMiddle = addsOne && step == 2;
    if (isMiddle)
      text += "  call void @llvm.nvvm.wgmma.commit_group.sync.aligned()\n"
              "  call void @llvm.nvvm.wgmma.wait_group.sync.aligned(i64 0)\n";
    std::string olds;
    for (int i = 0; i < 32; ++i) {
      std::string old = "%d" + number(step - 1) + "." + number(i);
      if (isMiddle) {
        text += "  %m." + number(i) + " = fadd float " + old + ", 1.0\n";
        old = "%m." + number(i);
      }
      olds += "float " + (step ? old : std::string("0.0")) + ", ";
    }
    if (isMiddle)
      text += "  call void @llvm.nvvm.wgmma.fence.sync.aligned() ; again\n";
    std::string factors = "$64", rest = "$65, p, $67,  $68, $69,  $70",
                scale = "$66", more = "l,l,n,n,n,n,n",
                arguments = "i64 %a" + n + ", i64 %b" + n +
                            ", i32 1, i32 1, i32 1, i32 0, i32 ";
    if (ofRegisters) {
      factors = "{$64, $65, $66, $67}";
      rest = "$68, p, $70, $71, $72";
      scale = "$69";
      more = "r,r,r,r,l,n,n,n,n";
      arguments = "";
      for (int r = 0; r < 4; ++r) {
        std::string x = "%x" + n + "." + number(r);
        text += "  " + x + ".at = add i32 %at, " +
                number(r % 2 * 8 * 64 + step * 16 + r / 2 * 8) + "\n  " + x +
                ".from = getelementptr half, ptr %A, i32 " + x + ".at\n  " + x +
                " = load i32, ptr " + x + ".from, align 4\n";
        arguments += "i32 " + x + ", ";
      }
      arguments += "i64 %b" + n + ", i32 1, i32 1, i32 1, i32 ";
    }
    text += "  %p" + n + " = call " + structure +
            " asm sideeffect \"{\\0A.reg .pred p;\\0Asetp.ne.b32 p, " + scale +
            ", 0;\\0Awgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" +
            outputs + "}, " + factors + ", " + rest + ";\\0A}\\0A\", \"" +
            constraints + more + "\"(" + olds + arguments + number(transposed) +
            ")\n";
    for (int i = 0; i < 32; ++i)
      text += "  %d" + n + "." + number(i) + " = extractvalue " + structure +
              " %p" + n + ", " + number(i) + "\n";
  }
  text += "  call void @llvm.nvvm.wgmma.commit_group.sync.aligned()\n";
  std::string sums = "%d3.";
  if (ofRegisters) {
    std::string tied;
    for (int i = 0; i < 32; ++i)
      tied += (i ? ", float %d3." : "float %d3.") + number(i);
    text += "  %waited = call " + structure +
            " asm sideeffect \"wgmma.wait_group.sync.aligned 0;\", \"" +
            constraints.substr(0, constraints.size() - 1) + "\"(" + tied +
            ")\n";
    for (int i = 0; i < 32; ++i)
      text += "  %e." + number(i) + " = extractvalue " + structure +
              " %waited, " + number(i) + "\n";
    sums = "%e.";
  } else {
    text += "  call void @llvm.nvvm.wgmma.wait_group.sync.aligned(i64 0)\n";
  }
  text += R"(
  %mine = getelementptr i32, ptr addrspace(3) @a, i32 %t
  store i32 0, ptr addrspace(3) %mine, align 4
  %to = getelementptr float, ptr %D, i32 %at
)";
  for (int i = 0; i < 32; ++i)
    text += "  %to" + number(i) + " = getelementptr float, ptr %to, i32 " +
            number(i % 2 + i / 2 % 2 * 8 * 64 + i / 4 * 8) +
            "\n  store float " + sums + number(i) + ", ptr %to" + number(i) +
            ", align 4\n";
  return text + "  ret void\n}\n";
}

int element(int i, int j, int salt) { return (i * 7 + j * 3 + salt) % 9 - 4; }

struct Tile {
  TestMemory memory;
  _Float16 *a = memory.buffer<_Float16>(4096),
           *b = memory.buffer<_Float16>(4096);
  float *d = memory.buffer<float>(4096);
  TensorMap ma, mb;

  explicit Tile(bool transposed, int rows = 64) {
    for (int i = 0; i < 64; ++i)
      for (int k = 0; k < 64; ++k) {
        a[i * 64 + k] = static_cast<_Float16>(element(i, k, 1));
        b[transposed ? k * 64 + i : i * 64 + k] =
            static_cast<_Float16>(element(k, i, 2));
      }
    ma = map(a, rows);
    mb = map(b, 64);
  }
  static TensorMap map(const void *data, int rows) {
    TensorMap map;
    map.elementBytes = 2;
    map.rank = 2;
    map.swizzle = 3;
    map.address = reinterpret_cast<uintptr_t>(data);
    map.sizes[0] = 64;
    map.sizes[1] = rows;
    map.boxes[0] = map.boxes[1] = 64;
    map.strides[0] = 128;
    map.elementStrides[0] = map.elementStrides[1] = 1;
    return map;
  }
  Status run(const emulator::Image &image, Order order) {
    return launch(image, "tile", {1}, {128}, memory, order, ma, mb, d);
  }
};

TEST(EmulatedWarpgroup, RightNumbersInEveryOrder) {
  for (int transposed : {0, 1}) {
    auto image = imageOf(productText(transposed));
    ASSERT_TRUE(image) << image.status().message();
    EXPECT_EQ(image->find("tile")->parameterBytes,
              (std::vector<uint32_t>{128, 128, 8}));
    for (Order order : kOrders)
      for (int rows : {64, 50}) { // those beyond are filled with zeros
        Tile tile(transposed, rows);
        Status status = tile.run(*image, order);
        ASSERT_TRUE(status) << status.message();
        for (int i = 0; i < 64; ++i)
          for (int j = 0; j < 64; ++j) {
            int sum = 0;
            for (int k = 0; k < 64 && i < rows; ++k)
              sum += element(i, k, 1) * element(k, j, 2);
            ASSERT_EQ(tile.d[i * 64 + j], sum) << i << ", " << j;
          }
      }
  }
}

/// A of registers, which each thread has as those of mma.sync, and a B of both
/// orders; without the last wait what wgmma still reads is written.
TEST(EmulatedWarpgroup, FactorInRegisters) {
  for (int transposed : {0, 1}) {
    std::string text = productText(transposed, "", false, true);
    auto image = imageOf(text);
    ASSERT_TRUE(image) << image.status().message();
    auto run = [](const emulator::Image &image, Tile &tile, Order order) {
      return launch(image, "tile", {1}, {128}, tile.memory, order, tile.ma,
                    tile.mb, tile.d, tile.a);
    };
    for (Order order : kOrders) {
      Tile tile(transposed);
      Status status = run(*image, tile, order);
      ASSERT_TRUE(status) << status.message();
      for (int i = 0; i < 64; ++i)
        for (int j = 0; j < 64; ++j) {
          int sum = 0;
          for (int k = 0; k < 64; ++k)
            sum += element(i, k, 1) * element(k, j, 2);
          ASSERT_EQ(tile.d[i * 64 + j], sum) << i << ", " << j;
        }
    }
    image = imageOf(replaced(replaced(text, "wgmma.wait_group.sync.aligned 0;",
                                      "wgmma.wait_group.sync.aligned 1;"),
                             "ptr addrspace(3) @a, i32 %t",
                             "ptr addrspace(3) @b, i32 %t"));
    ASSERT_TRUE(image) << image.status().message();
    Tile tile(transposed);
    Status status = run(*image, tile, Order::Ascending);
    EXPECT_TRUE(
        mentions(status, "an asynchronous operation still reads these bytes"))
        << status.message();
  }
}

/// The text with every `what` replaced.
std::string allReplaced(std::string text, const std::string &what,
                        const std::string &with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos;
       at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

/// The same product of 128 k of 8 bits, which are along k.
std::string byteText(const std::string &types) {
  std::string text = allReplaced(productText(0), "m64n64k16.f32.f16.f16",
                                 "m64n64k32." + types);
  if (types[0] == 'f')
    return allReplaced(text, ", $69,  $70", "");
  text = allReplaced(text, ", $67,  $68, $69,  $70", "");
  text = allReplaced(text, "float 0.0", "i32 0");
  return allReplaced(allReplaced(text, "=f,", "=r,"), "float", "i32");
}

/// 64 rows of 128 bytes each, and 64 x 64 sums of 4 bytes.
struct ByteTile {
  TestMemory memory;
  uint8_t *a = memory.buffer<uint8_t>(64 * 128),
          *b = memory.buffer<uint8_t>(64 * 128);
  uint32_t *d = memory.buffer<uint32_t>(4096);
  TensorMap ma = map(a), mb = map(b);

  static TensorMap map(const void *data) {
    TensorMap map = Tile::map(data, 64);
    map.elementBytes = 1;
    map.sizes[0] = map.boxes[0] = 128;
    return map;
  }
  template <typename Encode> void fill(Encode ofA, Encode ofB) {
    for (int i = 0; i < 64; ++i)
      for (int k = 0; k < 128; ++k) {
        a[i * 128 + k] = static_cast<uint8_t>(ofA(element(i, k, 1)));
        b[i * 128 + k] = static_cast<uint8_t>(ofB(element(k, i, 2)));
      }
  }
  Status run(const emulator::Image &image, Order order) {
    return launch(image, "tile", {1}, {128}, memory, order, ma, mb, d);
  }
};

TEST(EmulatedWarpgroup, Bytes) {
  using emulator::kernel::toE4M3, emulator::kernel::toE5M2;
  using Encode = uint32_t (*)(float);
  const Encode ofS8 = [](float x) {
    return static_cast<uint32_t>(static_cast<int32_t>(30 * x));
  };
  const Encode ofU8 = [](float x) {
    return static_cast<uint32_t>(30 * x + 125);
  };
  struct Case {
    const char *types;
    Encode ofA, ofB;
    int scaleA, plusA, scaleB, plusB;
  };
  for (const Case &one : {Case{"f32.e4m3.e4m3", toE4M3, toE4M3, 1, 0, 1, 0},
                          {"f32.e5m2.e4m3", toE5M2, toE4M3, 1, 0, 1, 0},
                          {"f32.e4m3.e5m2", toE4M3, toE5M2, 1, 0, 1, 0},
                          {"s32.s8.s8", ofS8, ofS8, 30, 0, 30, 0},
                          {"s32.u8.s8", ofU8, ofS8, 30, 125, 30, 0},
                          {"s32.u8.u8", ofU8, ofU8, 30, 125, 30, 125}}) {
    SCOPED_TRACE(one.types);
    std::string text = byteText(one.types);
    auto image = imageOf(text);
    ASSERT_TRUE(image) << image.status().message();
    bool isFloat = one.types[0] == 'f';
    for (Order order : kOrders) {
      ByteTile tile;
      tile.fill(one.ofA, one.ofB);
      Status status = tile.run(*image, order);
      ASSERT_TRUE(status) << status.message();
      for (int i = 0; i < 64; ++i)
        for (int j = 0; j < 64; ++j) {
          int sum = 0;
          for (int k = 0; k < 128; ++k)
            sum += (one.scaleA * element(i, k, 1) + one.plusA) *
                   (one.scaleB * element(k, j, 2) + one.plusB);
          uint32_t bits = tile.d[i * 64 + j];
          double got =
              isFloat ? std::bit_cast<float>(bits) : static_cast<int32_t>(bits);
          ASSERT_EQ(got, sum) << i << ", " << j;
        }
    }
    // What is missing is found as of other types.
    for (auto [removed, message] :
         {std::pair{"call void @llvm.nvvm.wgmma.fence",
                    "there is no wgmma.fence before it"},
          {"  call void @llvm.nvvm.wgmma.wait_group",
           "an asynchronous operation still reads these bytes"},
          {"  %done = call",
           "an asynchronous copy into these bytes was not waited for"}}) {
      image = imageOf(without(text, removed));
      ASSERT_TRUE(image) << image.status().message();
      ByteTile tile;
      tile.fill(one.ofA, one.ofB);
      Status status = tile.run(*image, Order::Random);
      EXPECT_TRUE(mentions(status, message)) << status.message();
    }
  }
}

/// Of f8 values what is added is cut off 13 bits below the largest of 32
/// products and the sum.
TEST(EmulatedWarpgroup, SumsOfFloat8AreShort) {
  auto image = imageOf(byteText("f32.e4m3.e4m3"));
  ASSERT_TRUE(image) << image.status().message();
  ByteTile tile;
  std::fill(tile.a, tile.a + 64 * 128, uint8_t(0x38)); // 1
  std::fill(tile.b, tile.b + 64 * 128, uint8_t(0x38));
  for (int i = 0; i < 64; ++i)
    tile.a[i * 128] = tile.b[i * 128] = 0x78; // 256
  Status status = tile.run(*image, Order::Random);
  ASSERT_TRUE(status) << status.message();
  EXPECT_EQ(std::bit_cast<float>(tile.d[0]), 65536);
  // Ones are seen beside 128 * 64 = 2^13.
  for (int i = 0; i < 64; ++i) {
    tile.a[i * 128] = 0x70;
    tile.b[i * 128] = 0x68;
  }
  status = tile.run(*image, Order::Random);
  ASSERT_TRUE(status) << status.message();
  EXPECT_EQ(std::bit_cast<float>(tile.d[0]), 8192 + 127);
}

TEST(EmulatedWarpgroup, MissingWaitsAreReported) {
  for (auto [removed, message] :
       {std::pair{"  %done = call",
                  "an asynchronous copy into these bytes was not waited for"},
        std::pair{"  call void @llvm.nvvm.wgmma.wait_group",
                  "an asynchronous operation still reads these bytes"},
        std::pair{"  call void @llvm.nvvm.barrier.cta.sync", "mbarrier"}}) {
    auto image = imageOf(without(productText(1), removed));
    ASSERT_TRUE(image) << image.status().message();
    for (Order order : {Order::Descending, Order::Random}) {
      Tile tile(true);
      Status status = tile.run(*image, order);
      EXPECT_TRUE(mentions(status, message)) << removed << status.message();
    }
  }
}

/// Fences that order registers and mbarriers.
TEST(EmulatedWarpgroup, MissingFencesAreReported) {
  for (auto [text, message] :
       {std::pair{without(productText(1), "call void @llvm.nvvm.wgmma.fence"),
                  "there is no wgmma.fence before it"},
        std::pair{without(productText(1, "", true), "; again"),
                  "the sums were changed without a wgmma.fence"},
        std::pair{
            without(productText(1), "call void @llvm.nvvm.fence.mbarrier"),
            "without fence.mbarrier_init"}}) {
    auto image = imageOf(text);
    ASSERT_TRUE(image) << image.status().message();
    for (Order order : kOrders) {
      Tile tile(true);
      Status status = tile.run(*image, order);
      EXPECT_TRUE(mentions(status, message)) << message << status.message();
    }
  }
  auto image = imageOf(productText(1, "", true));
  ASSERT_TRUE(image) << image.status().message();
  Tile tile(true);
  Status status = tile.run(*image, Order::Random);
  EXPECT_TRUE(status) << status.message();
}

/// The parity of the phase before: who comes first goes on at once, and who
/// comes when the copies have landed waits for a phase that does not end.
TEST(EmulatedWarpgroup, ParityOffByOne) {
  auto image = imageOf(
      replaced(productText(1),
               "parity.scope.cta.space.cta(ptr addrspace(3) "
               "@bar, i32 0)",
               "parity.scope.cta.space.cta(ptr addrspace(3) @bar, i32 1)"));
  ASSERT_TRUE(image) << image.status().message();
  for (Order order : kOrders) {
    Tile tile(true);
    Status status = tile.run(*image, order);
    EXPECT_TRUE(mentions(status, "deadlock")) << status.message();
  }
}

/// What threads wrote to a tile, wgmma sees behind a fence of the proxy.
TEST(EmulatedWarpgroup, ProductsOfStoredData) {
  const std::string stored = R"(
  %word = getelementptr i32, ptr addrspace(3) @a, i32 %t
  %same = load i32, ptr addrspace(3) %word, align 4
  store i32 %same, ptr addrspace(3) %word, align 4
  call void @llvm.nvvm.fence.proxy.async.shared_cta()
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0) ; of stores
)";
  const std::string fence = "  call void @llvm.nvvm.fence.proxy.async";
  std::string right = productText(1, stored), none = without(right, fence);
  for (Order order : kOrders) {
    auto image = imageOf(right);
    ASSERT_TRUE(image) << image.status().message();
    Status status = Tile(true).run(*image, order);
    EXPECT_TRUE(status) << status.message();
    image = imageOf(none);
    ASSERT_TRUE(image) << image.status().message();
    status = Tile(true).run(*image, order);
    EXPECT_TRUE(mentions(status, "without fence.proxy.async"))
        << status.message();
    // Behind the barrier, by all: each thread knows of all stores.
    image = imageOf(
        replaced(none, "; of stores",
                 "\n  call void @llvm.nvvm.fence.proxy.async.shared_cta()"));
    ASSERT_TRUE(image) << image.status().message();
    status = Tile(true).run(*image, order);
    EXPECT_TRUE(status) << status.message();
  }
}

/// Stores, a fence of the proxy, a barrier, and one thread copies to global
/// memory.
TEST(EmulatedBulkStore, FenceOfTheProxy) {
  const std::string right = R"(
@tile = internal addrspace(3) global [128 x i32] undef, align 128
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.fence.proxy.async.shared_cta()
declare void @llvm.nvvm.cp.async.bulk.shared.cta.to.global(ptr addrspace(1), ptr addrspace(3), i32, i64, i1)
declare void @llvm.nvvm.cp.async.bulk.commit.group()
declare void @llvm.nvvm.cp.async.bulk.wait.group(i32)
define ptx_kernel void @put(ptr addrspace(1) %y) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %to = getelementptr i32, ptr addrspace(3) @tile, i32 %t
  store i32 %t, ptr addrspace(3) %to, align 4
  call void @llvm.nvvm.fence.proxy.async.shared_cta() ; passes
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0) ; stored
  %leads = icmp eq i32 %t, 0
  br i1 %leads, label %copy, label %end
copy:
  call void @llvm.nvvm.cp.async.bulk.shared.cta.to.global(ptr addrspace(1) %y, ptr addrspace(3) @tile, i32 512, i64 0, i1 false)
  call void @llvm.nvvm.cp.async.bulk.commit.group()
  call void @llvm.nvvm.cp.async.bulk.wait.group(i32 0)
  br label %end
end:
  ret void
})";
  auto run = [](const std::string &text, Order order) {
    auto image = imageOf(text);
    if (!image)
      return image.status();
    TestMemory memory;
    auto *y = memory.buffer<uint32_t>(128);
    Status status = launch(*image, "put", {1}, {128}, memory, order, y);
    for (uint32_t i = 0; status.ok() && i < 128; ++i)
      EXPECT_EQ(y[i], i);
    return status;
  };
  const std::string none = without(right, "; passes");
  for (Order order : kOrders) {
    Status status = run(right, order);
    EXPECT_TRUE(status) << status.message();
    status = run(replaced(none, "copy:\n",
                          "copy:\n  call void "
                          "@llvm.nvvm.fence.proxy.async.shared_cta()\n"),
                 order);
    EXPECT_TRUE(status) << status.message();
    status = run(none, order);
    EXPECT_TRUE(mentions(status, "without fence.proxy.async"))
        << status.message();
  }
  // Without the barrier nobody knows that the others' stores were made.
  EXPECT_TRUE(mentions(run(without(right, "; stored"), Order::Descending),
                       "shared memory race"));
}

TEST(EmulatedWarpgroup, BytesThatDoNotComeAreADeadlock) {
  auto image = imageOf(replaced(productText(1), "i32 16384)", "i32 16400)"));
  ASSERT_TRUE(image) << image.status().message();
  Tile tile(true);
  Status status = tile.run(*image, Order::Ascending);
  EXPECT_TRUE(mentions(status, "deadlock: 128 of 128 threads: wait at an "
                               "mbarrier"))
      << status.message();
}

TEST(EmulatedWarpgroup, TensorsAreBoundsChecked) {
  auto image = imageOf(productText(1));
  ASSERT_TRUE(image) << image.status().message();
  Tile tile(true);
  tile.ma.strides[0] = 136;
  Status status = tile.run(*image, Order::Ascending);
  EXPECT_TRUE(mentions(status, "global memory: ")) << status.message();
  tile.ma.magic = 0;
  status = tile.run(*image, Order::Ascending);
  EXPECT_TRUE(mentions(status, "the tensor map is not one"))
      << status.message();
}

} // namespace
