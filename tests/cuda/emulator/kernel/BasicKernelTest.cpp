//===- BasicKernelTest.cpp - elementwise kernels, barriers, shuffles ------===//
//
// Kernels as the NVPTX backend gets them, through the compiler's emulation
// image and the emulator: right numbers in every order, and each mistake that
// is planted is reported.
//
//===----------------------------------------------------------------------===//
#include "tests/cuda/emulator/kernel/EmulatedKernels.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::test;
using emulator::Order;

namespace {

// y[i] = x[i] + b[i % 256], four elements a thread.
const char *kAdd = R"(
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
define ptx_kernel void @add(ptr noalias readonly %x, ptr %b, ptr %y) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %t4 = mul i32 %t, 4
  %c4 = mul i32 %c, 256
  %i = add i32 %t4, %c4
  %xp = getelementptr float, ptr %x, i32 %i
  %bp = getelementptr float, ptr %b, i32 %t4
  %yp = getelementptr float, ptr %y, i32 %i
  %xv = load <4 x float>, ptr %xp, align 16
  %bv = load <4 x float>, ptr %bp, align 16
  %s = fadd <4 x float> %xv, %bv
  store <4 x float> %s, ptr %yp, align 16
  ret void
})";

bool mentions(const Status &status, const std::string &text) {
  return status.message().find(text) != std::string::npos;
}

TEST(EmulatedElementwise, RightNumbersInEveryOrder) {
  auto image = imageOf(kAdd);
  ASSERT_TRUE(image) << image.status().message();
  ASSERT_TRUE(image->find("add"));
  EXPECT_EQ(image->find("add")->parameterBytes,
            (std::vector<uint32_t>{8, 8, 8}));
  EXPECT_EQ(image->find("no such kernel"), nullptr);
  for (Order order : kOrders) {
    TestMemory memory;
    float *x = memory.buffer<float>(1024), *b = memory.buffer<float>(256),
          *y = memory.buffer<float>(1024);
    for (int i = 0; i < 1024; ++i)
      x[i] = i * 0.5f;
    for (int i = 0; i < 256; ++i)
      b[i] = 1000 - i;
    Status status = launch(*image, "add", {4}, {64}, memory, order, x, b, y);
    ASSERT_TRUE(status) << status.message();
    for (int i = 0; i < 1024; ++i)
      EXPECT_EQ(y[i], i * 0.5f + 1000 - i % 256);
  }
}

TEST(EmulatedElementwise, TouchingAccessesAreOneReport) {
  auto image = imageOf(kAdd);
  ASSERT_TRUE(image) << image.status().message();
  TestMemory memory;
  float *x = memory.buffer<float>(1024), *b = memory.buffer<float>(256),
        *y = memory.buffer<float>(1024);
  ASSERT_TRUE(
      launch(*image, "add", {4}, {64}, memory, Order::Ascending, x, b, y));
  ASSERT_EQ(memory.accesses(y).size(), 1u);
  EXPECT_EQ(memory.accesses(y)[0].offset, 0u);
  EXPECT_EQ(memory.accesses(y)[0].bytes, 4096u);
  EXPECT_TRUE(memory.accesses(y)[0].isWrite);
  ASSERT_EQ(memory.accesses(x).size(), 1u);
  EXPECT_EQ(memory.accesses(x)[0].bytes, 4096u);
  EXPECT_FALSE(memory.accesses(x)[0].isWrite);
}

TEST(EmulatedElementwise, OutOfBoundsIsNotMade) {
  auto image = imageOf(kAdd);
  ASSERT_TRUE(image) << image.status().message();
  TestMemory memory;
  float *x = memory.buffer<float>(1022), *b = memory.buffer<float>(256),
        *y = memory.buffer<float>(1024);
  Status status =
      launch(*image, "add", {4}, {64}, memory, Order::Ascending, x, b, y);
  ASSERT_FALSE(status);
  EXPECT_TRUE(mentions(status, "kernel 'add', block (3, 0, 0), thread (63, 0, "
                               "0): global memory: the access goes past the "
                               "end of its allocation"))
      << status.message();
  EXPECT_TRUE(mentions(status, "load of '<4 x float>'")) << status.message();
  EXPECT_TRUE(std::isnan(y[1020]));
}

TEST(EmulatedElementwise, WildAndMisalignedAddresses) {
  auto image = imageOf(kAdd);
  ASSERT_TRUE(image) << image.status().message();
  TestMemory memory;
  float *x = memory.buffer<float>(1024), *b = memory.buffer<float>(257),
        *y = memory.buffer<float>(1024);
  float *nowhere = nullptr;
  Status status =
      launch(*image, "add", {4}, {64}, memory, Order::Ascending, x, b, nowhere);
  EXPECT_TRUE(mentions(status, "the address is in no allocation"))
      << status.message();
  status =
      launch(*image, "add", {4}, {64}, memory, Order::Ascending, x, b + 1, y);
  EXPECT_TRUE(mentions(status, "misaligned access")) << status.message();
}

// One block sums its 128 elements: shuffles in a warp, then shared memory.
const char *kSum = R"(
@partial = internal addrspace(3) global [4 x float] undef, align 4
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.laneid()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare float @llvm.nvvm.shfl.sync.bfly.f32(i32, float, i32, i32)
define ptx_kernel void @sum(ptr %x, ptr %y) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %first = mul i32 %c, 128
  %i = add i32 %first, %t
  %xp = getelementptr float, ptr %x, i32 %i
  %v0 = load float, ptr %xp, align 4
  %s1 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v0, i32 16, i32 31)
  %v1 = fadd float %v0, %s1
  %s2 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v1, i32 8, i32 31)
  %v2 = fadd float %v1, %s2
  %s3 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v2, i32 4, i32 31)
  %v3 = fadd float %v2, %s3
  %s4 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v3, i32 2, i32 31)
  %v4 = fadd float %v3, %s4
  %s5 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v4, i32 1, i32 31)
  %v5 = fadd float %v4, %s5
  %warp = lshr i32 %t, 5
  %leads = icmp eq i32 %lane, 0
  br i1 %leads, label %put, label %wait
put:
  %pp = getelementptr float, ptr addrspace(3) @partial, i32 %warp
  store float %v5, ptr addrspace(3) %pp, align 4
  br label %wait
wait:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %p0 = load float, ptr addrspace(3) @partial, align 4
  %p1 = load float, ptr addrspace(3) getelementptr (float, ptr addrspace(3) @partial, i32 1), align 4
  %p2 = load float, ptr addrspace(3) getelementptr (float, ptr addrspace(3) @partial, i32 2), align 4
  %p3 = load float, ptr addrspace(3) getelementptr (float, ptr addrspace(3) @partial, i32 3), align 4
  %a = fadd float %p0, %p1
  %b = fadd float %p2, %p3
  %sum = fadd float %a, %b
  %yp = getelementptr float, ptr %y, i32 %i
  store float %sum, ptr %yp, align 4
  ret void
})";

TEST(EmulatedReduction, RightNumbersInEveryOrder) {
  auto image = imageOf(kSum);
  ASSERT_TRUE(image) << image.status().message();
  EXPECT_EQ(image->find("sum")->sharedBytes, 16u);
  for (Order order : kOrders) {
    TestMemory memory;
    float *x = memory.buffer<float>(384), *y = memory.buffer<float>(384);
    for (int i = 0; i < 384; ++i)
      x[i] = i;
    Status status = launch(*image, "sum", {3}, {128}, memory, order, x, y);
    ASSERT_TRUE(status) << status.message();
    for (int i = 0; i < 384; ++i)
      EXPECT_EQ(y[i], 127 * 64 + i / 128 * 128 * 128);
  }
}

TEST(EmulatedReduction, RemovedBarrierIsARaceInEveryOrder) {
  auto image = imageOf(without(kSum, "  call void @llvm.nvvm.barrier"));
  ASSERT_TRUE(image) << image.status().message();
  for (Order order : kOrders) {
    TestMemory memory;
    float *x = memory.buffer<float>(384), *y = memory.buffer<float>(384);
    Status status = launch(*image, "sum", {3}, {128}, memory, order, x, y);
    EXPECT_TRUE(mentions(status, "shared memory race")) << status.message();
  }
}

TEST(EmulatedReduction, SharedMemoryOutOfBounds) {
  auto image = imageOf(replaced(kSum, "lshr i32 %t, 5", "lshr i32 %t, 4"));
  ASSERT_TRUE(image) << image.status().message();
  TestMemory memory;
  float *x = memory.buffer<float>(384), *y = memory.buffer<float>(384);
  Status status =
      launch(*image, "sum", {3}, {128}, memory, Order::Ascending, x, y);
  EXPECT_TRUE(mentions(status, "shared memory out of bounds: 4 bytes at offset "
                               "16 of 16"))
      << status.message();
}

TEST(EmulatedReduction, DivergentBarrierIsADeadlock) {
  // Only lane 0 of each warp comes to the barrier; the others end.
  std::string text = replaced(kSum, "label %put, label %wait\n",
                              "label %put, label %end\nend:\n  ret void\n");
  auto image = imageOf(text);
  ASSERT_TRUE(image) << image.status().message();
  TestMemory memory;
  float *x = memory.buffer<float>(384), *y = memory.buffer<float>(384);
  Status status =
      launch(*image, "sum", {3}, {128}, memory, Order::Ascending, x, y);
  EXPECT_TRUE(mentions(status, "deadlock: 4 of 128 threads: wait at a barrier "
                               "0 to which 4 of 128 threads came; 124 threads "
                               "have ended"))
      << status.message();
}

TEST(EmulatedReduction, DivergentShuffleIsReported) {
  std::string text =
      replaced(kSum, "bfly.f32(i32 -1, float %v0", "bfly.f32(i32 1, float %v0");
  auto image = imageOf(text);
  ASSERT_TRUE(image) << image.status().message();
  TestMemory memory;
  float *x = memory.buffer<float>(384), *y = memory.buffer<float>(384);
  Status status =
      launch(*image, "sum", {3}, {128}, memory, Order::Ascending, x, y);
  EXPECT_TRUE(mentions(status, "a shuffle reads a lane outside of the member "
                               "mask"))
      << status.message();
  EXPECT_TRUE(mentions(status, "a lane outside of its own member mask"))
      << status.message();
}

// LLVM would round bfloat16 values by a function that is not there, wherever
// they were computed with, converted, or lived on in another block.
TEST(EmulationImage, BFloatsNeedNoLibrary) {
  auto image = imageOf(R"(
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare bfloat @llvm.fma.bf16(bfloat, bfloat, bfloat)
define ptx_kernel void @mixed(ptr %x, ptr %y) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %xp = getelementptr bfloat, ptr %x, i32 %t
  %v = load bfloat, ptr %xp, align 2
  %odd = trunc i32 %t to i1
  br i1 %odd, label %other, label %end
other:
  %n = fneg bfloat %v
  %f = call bfloat @llvm.fma.bf16(bfloat %n, bfloat 2.0, bfloat %v)
  %pair0 = insertelement <2 x bfloat> poison, bfloat %f, i32 0
  %pair = insertelement <2 x bfloat> %pair0, bfloat %v, i32 1
  %turned = shufflevector <2 x bfloat> %pair, <2 x bfloat> poison, <2 x i32> <i32 1, i32 0>
  %sum = fadd <2 x bfloat> %turned, %pair0
  %e = extractelement <2 x bfloat> %turned, i32 1
  br label %end
end:
  %r = phi bfloat [%v, %entry], [%e, %other]
  %wide = fpext bfloat %r to double
  %third = fdiv double %wide, 3.0
  %b = fptrunc double %third to bfloat
  %s = select i1 %odd, bfloat %b, bfloat %r
  %yp = getelementptr bfloat, ptr %y, i32 %t
  store bfloat %s, ptr %yp, align 2
  ret void
})");
  ASSERT_TRUE(image) << image.status().message();
  TestMemory memory;
  auto *x = memory.buffer<uint16_t>(64), *y = memory.buffer<uint16_t>(64);
  for (int i = 0; i < 64; ++i)
    x[i] = static_cast<uint16_t>(0x4040 + i); // 3 and up
  Status status =
      launch(*image, "mixed", {1}, {64}, memory, Order::Ascending, x, y);
  ASSERT_TRUE(status) << status.message();
  auto value = [](uint16_t bits) {
    uint32_t word = uint32_t(bits) << 16;
    float number;
    std::memcpy(&number, &word, 4);
    return number;
  };
  for (int i = 0; i < 64; ++i) {
    if (i % 2 == 0) {
      EXPECT_EQ(y[i], x[i]);
      continue;
    }
    double exact = -double(value(x[i])) / 3;
    EXPECT_LE(std::fabs(value(y[i]) - exact), std::fabs(exact) / 256) << i;
  }
}

TEST(EmulationImage, UnknownIntrinsicsAreErrorsThatNameThem) {
  auto image = imageOf(R"(
declare i32 @llvm.nvvm.fns(i32, i32, i32)
declare void @somewhere()
define ptx_kernel void @strange(ptr %y) {
  %a = call i32 @llvm.nvvm.fns(i32 1, i32 2, i32 3)
  call void @somewhere()
  store i32 %a, ptr %y
  ret void
})");
  ASSERT_FALSE(image);
  EXPECT_EQ(image.status().code(), Code::Unsupported);
  EXPECT_TRUE(mentions(image.status(), "'llvm.nvvm.fns'"))
      << image.status().message();
  EXPECT_TRUE(mentions(image.status(), "'somewhere'"));
}

TEST(EmulationImage, SameBytesTwice) {
  auto first = imageBytes(kSum), second = imageBytes(kSum);
  ASSERT_TRUE(first) << first.status().message();
  EXPECT_EQ(*first, *second);
}

TEST(EmulationImage, DamagedImagesAreRefused) {
  auto bytes = imageBytes(kSum);
  ASSERT_TRUE(bytes);
  std::string half = bytes->substr(0, 100);
  EXPECT_FALSE(emulator::Image::load(std::as_bytes(std::span(half))));
  EXPECT_FALSE(emulator::Image::load({}));
}

} // namespace
