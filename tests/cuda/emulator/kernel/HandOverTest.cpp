//===- HandOverTest.cpp - memory between the blocks of a kernel -----------===//
//
// Blocks store parts, the last of them to come adds up. Whatever of the fences
// is missing is an error, and the sum is wrong: a block that ran before in the
// emulator has not been seen by the others for that.
//
//===----------------------------------------------------------------------===//
#include "tests/cuda/emulator/kernel/EmulatedKernels.h"

#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::test;
using emulator::Consistency;
using emulator::Order;

namespace {

constexpr int kBlocks = 5, kThreads = 64;

// parts[block][thread] = x[block][thread] + 1; y[thread] = their sum.
const char *kSum = R"(
@before = internal addrspace(3) global i32 undef, align 4
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
define ptx_kernel void @sum(ptr %x, ptr %parts, ptr %counter, ptr %y) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %n = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %mostly = mul i32 %c, 64
  %i = add i32 %mostly, %t
  %xp = getelementptr float, ptr %x, i32 %i
  %pp = getelementptr float, ptr %parts, i32 %i
  %xv = load float, ptr %xp
  %part = fadd float %xv, 1.0
  store float %part, ptr %pp
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %isFirst = icmp eq i32 %t, 0
  br i1 %isFirst, label %count, label %counted
count:
  %last = sub i32 %n, 1
  fence syncscope("device") acq_rel ; releases
  %old = atomicrmw uinc_wrap ptr %counter, i32 %last syncscope("device") monotonic
  fence syncscope("device") acq_rel ; acquires
  store i32 %old, ptr addrspace(3) @before
  br label %counted
counted:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0) ; second
  %seen = load i32, ptr addrspace(3) @before
  %lastOne = sub i32 %n, 1
  %isLast = icmp eq i32 %seen, %lastOne
  br i1 %isLast, label %add, label %end
add:
  %b = phi i32 [ 0, %counted ], [ %next, %add ]
  %total = phi float [ 0.0, %counted ], [ %more, %add ]
  %row = mul i32 %b, 64
  %at = add i32 %row, %t
  %ap = getelementptr float, ptr %parts, i32 %at
  %av = load float, ptr %ap
  %more = fadd float %total, %av
  %next = add i32 %b, 1
  %isMore = icmp ult i32 %next, %n
  br i1 %isMore, label %add, label %store
store:
  %yp = getelementptr float, ptr %y, i32 %t
  store float %more, ptr %yp
  br label %end
end:
  ret void
})";

/// A launch, twice in a row, and what came of it.
struct Outcome {
  Status status;
  bool isRight = true;
  uint32_t counter = 0;
};

Outcome run(const std::string &ir, Order order,
            Consistency consistency = Consistency::Weak) {
  Outcome outcome;
  auto image = imageOf(ir);
  if (!image) {
    ADD_FAILURE() << image.status().message();
    return outcome;
  }
  TestMemory memory;
  float *x = memory.buffer<float>(kBlocks * kThreads),
        *parts = memory.buffer<float>(kBlocks * kThreads),
        *y = memory.buffer<float>(kThreads);
  auto *counter = memory.buffer<uint32_t>(1);
  *counter = 0;
  for (int repeat = 0; repeat < 2 && outcome.status.ok(); ++repeat) {
    for (int i = 0; i < kBlocks * kThreads; ++i)
      x[i] = static_cast<float>(i + repeat);
    void *params[] = {&x, &parts, &counter, &y};
    emulator::LaunchRequest request;
    request.kernel = image->find("sum");
    request.grid = {kBlocks};
    request.block = {kThreads};
    request.params = params;
    request.order = order;
    request.consistency = consistency;
    outcome.status = emulator::launch(request, &memory);
    for (int t = 0; t < kThreads; ++t) {
      float expected = 0;
      for (int b = 0; b < kBlocks; ++b)
        expected += static_cast<float>(b * kThreads + t + repeat + 1);
      outcome.isRight &= y[t] == expected;
    }
  }
  outcome.counter = *counter;
  return outcome;
}

bool mentions(const Status &status, const std::string &text) {
  return status.message().find(text) != std::string::npos;
}

void expectRace(const std::string &ir, const std::string &what) {
  for (Order order : kOrders) {
    Outcome outcome = run(ir, order);
    EXPECT_TRUE(mentions(outcome.status, "race between blocks: " + what))
        << outcome.status.message();
    EXPECT_FALSE(outcome.isRight);
    // As the emulator was before: nothing is seen.
    outcome = run(ir, order, Consistency::Strong);
    EXPECT_TRUE(outcome.status) << outcome.status.message();
    EXPECT_TRUE(outcome.isRight);
  }
}

constexpr const char *kRead = "read of what another block wrote";

} // namespace

TEST(HandOver, FencesAroundTheCounter) {
  for (Order order : kOrders)
    for (Consistency consistency :
         {Consistency::Weak, Consistency::Every, Consistency::Strong}) {
      Outcome outcome = run(kSum, order, consistency);
      EXPECT_TRUE(outcome.status) << outcome.status.message();
      EXPECT_TRUE(outcome.isRight);
      EXPECT_EQ(outcome.counter, 0u);
    }
}

TEST(HandOver, FencesOfTheSystemAndOlderOnes) {
  for (const char *fence :
       {"fence seq_cst ;", "call void @llvm.nvvm.membar.gl() ;",
        "call void @llvm.nvvm.membar.sys() ;"}) {
    std::string text =
        replaced(replaced(kSum, "fence syncscope(\"device\") acq_rel", fence),
                 "fence syncscope(\"device\") acq_rel", fence);
    text += "\ndeclare void @llvm.nvvm.membar.gl()"
            "\ndeclare void @llvm.nvvm.membar.sys()";
    Outcome outcome = run(text, Order::Random);
    EXPECT_TRUE(outcome.status) << fence << outcome.status.message();
    EXPECT_TRUE(outcome.isRight) << fence;
  }
}

TEST(HandOver, NoFenceBeforeTheCounter) {
  expectRace(without(kSum, "; releases"), kRead);
}

TEST(HandOver, NoFenceBehindTheCounter) {
  expectRace(without(kSum, "; acquires"), kRead);
}

TEST(HandOver, NoFenceAtAll) {
  expectRace(without(without(kSum, "; releases"), "; acquires"), kRead);
}

/// A fence passes on what its own thread knows: before the barrier that is not
/// what the others stored.
TEST(HandOver, FenceBeforeTheBarrier) {
  std::string text = without(kSum, "; releases");
  expectRace(replaced(text,
                      "  call void @llvm.nvvm.barrier.cta.sync.aligned.all",
                      "  fence syncscope(\"device\") acq_rel\n"
                      "  call void @llvm.nvvm.barrier.cta.sync.aligned.all"),
             kRead);
}

/// The block's own fence orders nothing for others.
TEST(HandOver, FenceOfTheBlockOnly) {
  std::string text = kSum;
  for (int i = 0; i < 2; ++i)
    text = replaced(text, "fence syncscope(\"device\")",
                    "fence syncscope(\"block\")");
  expectRace(text, kRead);
}

TEST(HandOver, HalfFences) {
  std::string right =
      replaced(replaced(kSum, "acq_rel ; releases", "release ; releases"),
               "acq_rel ; acquires", "acquire ; acquires");
  EXPECT_TRUE(run(right, Order::Ascending).isRight);
  expectRace(replaced(kSum, "acq_rel ; releases", "acquire"), kRead);
  expectRace(replaced(kSum, "acq_rel ; acquires", "release"), kRead);
}

/// Threads that do not come to the barrier behind the counter know nothing of
/// what thread 0 acquired.
TEST(HandOver, NoBarrierBehindTheCounter) {
  std::string text = without(kSum, "; second");
  bool isFound = false;
  for (Order order : kOrders)
    isFound |= mentions(run(text, order).status, kRead);
  EXPECT_TRUE(isFound);
}

/// What several blocks write is said in every kernel, if every kernel is asked.
TEST(HandOver, EveryKernel) {
  std::string text = without(without(without(kSum, "; releases"), "; acquires"),
                             "%old = atomicrmw");
  text = replaced(text, "store i32 %old", "store i32 %last");
  Outcome weak = run(text, Order::Ascending);
  EXPECT_TRUE(weak.status) << weak.status.message();
  Outcome every = run(text, Order::Ascending, Consistency::Every);
  EXPECT_TRUE(mentions(every.status, kRead)) << every.status.message();
  EXPECT_TRUE(mentions(every.status, "write over what another block wrote"));
}

/// What blocks wrote stands in memory when the launch has ended, after an error
/// too.
TEST(HandOver, AllIsWrittenInTheEnd) {
  for (const std::string &text :
       {std::string(kSum), without(kSum, "; acquires")}) {
    auto image = imageOf(text);
    ASSERT_TRUE(image) << image.status().message();
    TestMemory memory;
    float *x = memory.buffer<float>(kBlocks * kThreads),
          *parts = memory.buffer<float>(kBlocks * kThreads),
          *y = memory.buffer<float>(kThreads);
    auto *counter = memory.buffer<uint32_t>(1);
    *counter = 0;
    std::fill_n(x, kBlocks * kThreads, 2.0f);
    (void)launch(*image, "sum", {kBlocks}, {kThreads}, memory, Order::Random, x,
                 parts, counter, y)
        .ok();
    for (int i = 0; i < kBlocks * kThreads; ++i)
      ASSERT_EQ(parts[i], 3.0f) << i;
  }
}
