//===- MatrixTest.cpp - tensor cores and asynchronous copies --------------===//
#include "tests/cuda/emulator/kernel/EmulatedKernels.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::test;
using emulator::Order;

namespace {

bool mentions(const Status &status, const std::string &text) {
  return status.message().find(text) != std::string::npos;
}

// C (16 x 16, f32) = A (16 x 64) B (64 x 16), f16, one warp: tiles of 16 in two
// buffers, each thread copies 16 bytes of A and B a tile. Rows of A from %valid
// on are zeros.
const char *kProduct = R"(
@a = internal addrspace(3) global [512 x half] undef, align 128
@b = internal addrspace(3) global [512 x half] undef, align 128
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.cp.async.cg.shared.global.16.s(ptr addrspace(3), ptr addrspace(1), i32)
declare void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3), ptr addrspace(1))
declare void @llvm.nvvm.cp.async.commit.group()
declare void @llvm.nvvm.cp.async.wait.group(i32)
declare {i32, i32, i32, i32} @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3(ptr addrspace(3))
declare {i32, i32, i32, i32} @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3(ptr addrspace(3))
declare {float, float, float, float} @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half>, <2 x half>, <2 x half>, <2 x half>, <2 x half>, <2 x half>, float, float, float, float)
define ptx_kernel void @product(ptr %A, ptr %B, ptr %C, i32 %valid) {
entry:
  %ga = addrspacecast ptr %A to ptr addrspace(1)
  %gb = addrspacecast ptr %B to ptr addrspace(1)
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %row = lshr i32 %t, 1
  %odd = and i32 %t, 1
  %col = mul i32 %odd, 8
  %inside = icmp ult i32 %row, %valid
  %bytes = select i1 %inside, i32 16, i32 0
  %arow = mul i32 %row, 64
  %afirst = add i32 %arow, %col
  %brow = mul i32 %row, 16
  %bfirst = add i32 %brow, %col
  %here = add i32 %brow, %col
  %lrow = and i32 %t, 15
  %lhalf = lshr i32 %t, 4
  %lcol = mul i32 %lhalf, 8
  %lr = mul i32 %lrow, 16
  %laddr = add i32 %lr, %lcol
  %as = getelementptr half, ptr addrspace(3) @a, i32 %here
  %ag = getelementptr half, ptr addrspace(1) %ga, i32 %afirst
  call void @llvm.nvvm.cp.async.cg.shared.global.16.s(ptr addrspace(3) %as, ptr addrspace(1) %ag, i32 %bytes)
  %bs = getelementptr half, ptr addrspace(3) @b, i32 %here
  %bg = getelementptr half, ptr addrspace(1) %gb, i32 %bfirst
  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %bs, ptr addrspace(1) %bg)
  call void @llvm.nvvm.cp.async.commit.group()
  br label %loop
loop:
  %i = phi i32 [0, %entry], [%next, %compute]
  %c0 = phi float [0.0, %entry], [%d0, %compute]
  %c1 = phi float [0.0, %entry], [%d1, %compute]
  %c2 = phi float [0.0, %entry], [%d2, %compute]
  %c3 = phi float [0.0, %entry], [%d3, %compute]
  %c4 = phi float [0.0, %entry], [%d4, %compute]
  %c5 = phi float [0.0, %entry], [%d5, %compute]
  %c6 = phi float [0.0, %entry], [%d6, %compute]
  %c7 = phi float [0.0, %entry], [%d7, %compute]
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, 4
  br i1 %more, label %fetch, label %compute.0
fetch:
  %buffer = and i32 %next, 1
  %boff = mul i32 %buffer, 256
  %there = add i32 %here, %boff
  %k = mul i32 %next, 16
  %aat = add i32 %afirst, %k
  %k16 = mul i32 %k, 16
  %bat = add i32 %bfirst, %k16
  %as2 = getelementptr half, ptr addrspace(3) @a, i32 %there
  %ag2 = getelementptr half, ptr addrspace(1) %ga, i32 %aat
  call void @llvm.nvvm.cp.async.cg.shared.global.16.s(ptr addrspace(3) %as2, ptr addrspace(1) %ag2, i32 %bytes)
  %bs2 = getelementptr half, ptr addrspace(3) @b, i32 %there
  %bg2 = getelementptr half, ptr addrspace(1) %gb, i32 %bat
  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %bs2, ptr addrspace(1) %bg2)
  br label %compute.0
compute.0:
  call void @llvm.nvvm.cp.async.commit.group()
  call void @llvm.nvvm.cp.async.wait.group(i32 1)
  br label %compute
compute:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %mine = and i32 %i, 1
  %moff = mul i32 %mine, 256
  %lat = add i32 %laddr, %moff
  %la = getelementptr half, ptr addrspace(3) @a, i32 %lat
  %lb = getelementptr half, ptr addrspace(3) @b, i32 %lat
  %fa = call {i32, i32, i32, i32} @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3(ptr addrspace(3) %la)
  %fb = call {i32, i32, i32, i32} @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3(ptr addrspace(3) %lb)
  %a0i = extractvalue {i32, i32, i32, i32} %fa, 0
  %a1i = extractvalue {i32, i32, i32, i32} %fa, 1
  %a2i = extractvalue {i32, i32, i32, i32} %fa, 2
  %a3i = extractvalue {i32, i32, i32, i32} %fa, 3
  %b0i = extractvalue {i32, i32, i32, i32} %fb, 0
  %b1i = extractvalue {i32, i32, i32, i32} %fb, 1
  %b2i = extractvalue {i32, i32, i32, i32} %fb, 2
  %b3i = extractvalue {i32, i32, i32, i32} %fb, 3
  %a0 = bitcast i32 %a0i to <2 x half>
  %a1 = bitcast i32 %a1i to <2 x half>
  %a2 = bitcast i32 %a2i to <2 x half>
  %a3 = bitcast i32 %a3i to <2 x half>
  %b0 = bitcast i32 %b0i to <2 x half>
  %b1 = bitcast i32 %b1i to <2 x half>
  %b2 = bitcast i32 %b2i to <2 x half>
  %b3 = bitcast i32 %b3i to <2 x half>
  %p = call {float, float, float, float} @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %a0, <2 x half> %a1, <2 x half> %a2, <2 x half> %a3, <2 x half> %b0, <2 x half> %b1, float %c0, float %c1, float %c2, float %c3)
  %d0 = extractvalue {float, float, float, float} %p, 0
  %d1 = extractvalue {float, float, float, float} %p, 1
  %d2 = extractvalue {float, float, float, float} %p, 2
  %d3 = extractvalue {float, float, float, float} %p, 3
  %q = call {float, float, float, float} @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %a0, <2 x half> %a1, <2 x half> %a2, <2 x half> %a3, <2 x half> %b2, <2 x half> %b3, float %c4, float %c5, float %c6, float %c7)
  %d4 = extractvalue {float, float, float, float} %q, 0
  %d5 = extractvalue {float, float, float, float} %q, 1
  %d6 = extractvalue {float, float, float, float} %q, 2
  %d7 = extractvalue {float, float, float, float} %q, 3
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br i1 %more, label %loop, label %end
end:
  %g = lshr i32 %t, 2
  %q4 = and i32 %t, 3
  %n = mul i32 %q4, 2
  %m = mul i32 %g, 16
  %at = add i32 %m, %n
  %r0 = getelementptr float, ptr %C, i32 %at
  %r1 = getelementptr float, ptr %r0, i32 128
  %r2 = getelementptr float, ptr %r0, i32 8
  %r3 = getelementptr float, ptr %r0, i32 136
  %v0 = insertelement <2 x float> undef, float %d0, i32 0
  %w0 = insertelement <2 x float> %v0, float %d1, i32 1
  store <2 x float> %w0, ptr %r0, align 8
  %v1 = insertelement <2 x float> undef, float %d2, i32 0
  %w1 = insertelement <2 x float> %v1, float %d3, i32 1
  store <2 x float> %w1, ptr %r1, align 8
  %v2 = insertelement <2 x float> undef, float %d4, i32 0
  %w2 = insertelement <2 x float> %v2, float %d5, i32 1
  store <2 x float> %w2, ptr %r2, align 8
  %v3 = insertelement <2 x float> undef, float %d6, i32 0
  %w3 = insertelement <2 x float> %v3, float %d7, i32 1
  store <2 x float> %w3, ptr %r3, align 8
  ret void
})";

/// Small integers, which every type here holds exactly.
int element(int i, int j, int salt) { return (i * 7 + j * 3 + salt) % 9 - 4; }

struct Product {
  TestMemory memory;
  _Float16 *a, *b;
  float *c;
  Product() {
    a = memory.buffer<_Float16>(16 * 64);
    b = memory.buffer<_Float16>(64 * 16);
    c = memory.buffer<float>(16 * 16);
    for (int i = 0; i < 16; ++i)
      for (int k = 0; k < 64; ++k) {
        a[i * 64 + k] = static_cast<_Float16>(element(i, k, 1));
        b[k * 16 + i] = static_cast<_Float16>(element(k, i, 2));
      }
  }
  Status run(const emulator::Image &image, Order order, int valid = 16) {
    return launch(image, "product", {1}, {32}, memory, order, a, b, c, valid);
  }
};

TEST(EmulatedProduct, RightNumbersInEveryOrder) {
  auto image = imageOf(kProduct);
  ASSERT_TRUE(image) << image.status().message();
  EXPECT_EQ(image->find("product")->sharedBytes, 2048u);
  for (Order order : kOrders)
    for (int valid : {16, 11}) {
      Product product;
      Status status = product.run(*image, order, valid);
      ASSERT_TRUE(status) << status.message();
      for (int i = 0; i < 16; ++i)
        for (int j = 0; j < 16; ++j) {
          int sum = 0;
          for (int k = 0; k < 64 && i < valid; ++k)
            sum += element(i, k, 1) * element(k, j, 2);
          ASSERT_EQ(product.c[i * 16 + j], sum) << i << ", " << j;
        }
    }
}

TEST(EmulatedProduct, EveryRemovedBarrierIsReported) {
  for (int barrier : {1, 2}) { // 0 is the declaration
    auto image =
        imageOf(without(kProduct, "void @llvm.nvvm.barrier.cta.sync", barrier));
    ASSERT_TRUE(image) << image.status().message();
    for (Order order : kOrders) {
      Product product;
      Status status = product.run(*image, order);
      EXPECT_TRUE(mentions(status, "shared memory race"))
          << barrier << status.message();
    }
  }
}

TEST(EmulatedProduct, AShortWaitIsReported) {
  auto image =
      imageOf(replaced(kProduct, "wait.group(i32 1)", "wait.group(i32 2)"));
  ASSERT_TRUE(image) << image.status().message();
  for (Order order : kOrders) {
    Product product;
    Status status = product.run(*image, order);
    EXPECT_TRUE(mentions(status, "an asynchronous copy into these bytes was "
                                 "not waited for"))
        << status.message();
  }
}

TEST(EmulatedProduct, WrongFragmentsGiveWrongNumbers) {
  for (auto [from, to] : {std::pair{"x4.trans.b16.p3(ptr addrspace(3) %lb",
                                    "x4.b16.p3(ptr addrspace(3) %lb"},
                          std::pair{"%fa, 1\n", "%fa, 2\n"}}) {
    auto image = imageOf(replaced(kProduct, from, to));
    ASSERT_TRUE(image) << image.status().message();
    Product product;
    ASSERT_TRUE(product.run(*image, Order::Ascending));
    bool differs = false;
    for (int i = 0; i < 256; ++i) {
      int sum = 0;
      for (int k = 0; k < 64; ++k)
        sum += element(i / 16, k, 1) * element(k, i % 16, 2);
      differs |= product.c[i] != sum;
    }
    EXPECT_TRUE(differs) << from;
  }
}

TEST(EmulatedProduct, CopiesAreBoundsChecked) {
  auto image = imageOf(kProduct);
  ASSERT_TRUE(image) << image.status().message();
  Product product;
  product.b = product.memory.buffer<_Float16>(60 * 16);
  Status status = product.run(*image, Order::Ascending);
  EXPECT_TRUE(mentions(status, "global memory: ")) << status.message();
  EXPECT_TRUE(mentions(status, "cp.async.cg.shared.global.16"))
      << status.message();
}

TEST(EmulatedProduct, AnIncompleteWarpIsReported) {
  auto image = imageOf(kProduct);
  ASSERT_TRUE(image) << image.status().message();
  Product product;
  Status status = launch(*image, "product", {1}, {16}, product.memory,
                         Order::Ascending, product.a, product.b, product.c, 16);
  EXPECT_TRUE(mentions(status, "an incomplete warp")) << status.message();
}

//===----------------------------------------------------------------------===//
// One product of each type, fragments from global memory
//===----------------------------------------------------------------------===//

struct Case {
  const char *name;    ///< after "mma."
  const char *operand; ///< type of a register of A and B
  const char *result;  ///< type of a register of C and D
  int a, b, c;         ///< how many registers
  int m, k;
  int bits, resultBits;                ///< of an element
  std::function<uint64_t(int)> encode; ///< a small integer's bits
  std::function<uint64_t(int)> encodeResult;
};

/// The kernel reads the lane's registers from arrays [32][registers].
std::string kernelOf(const Case &one) {
  std::string structure = "{", operands, text, list;
  for (int i = 0; i < one.c; ++i)
    structure += std::string(i ? ", " : "") + one.result;
  structure += "}";
  auto load = [&](const char *from, const char *type, int count) {
    for (int i = 0; i < count; ++i) {
      std::string v = std::string(from) + std::to_string(i);
      text += "  %" + v + ".i = add i32 %" + from + ".first, " +
              std::to_string(i) + "\n  %" + v + ".p = getelementptr " + type +
              ", ptr %" + from + ", i32 %" + v + ".i\n  %" + v + " = load " +
              type + ", ptr %" + v + ".p\n";
      operands += std::string(operands.empty() ? "" : ", ") + type + " %" + v;
      list += std::string(list.empty() ? "" : ", ") + type;
    }
  };
  for (auto [name, count] :
       {std::pair{"a", one.a}, std::pair{"b", one.b}, std::pair{"c", one.c}})
    text += std::string("  %") + name + ".first = mul i32 %t, " +
            std::to_string(count) + "\n";
  load("a", one.operand, one.a);
  load("b", one.operand, one.b);
  load("c", one.result, one.c);
  std::string callee = std::string("@llvm.nvvm.mma.") + one.name;
  text += "  %d = call " + structure + " " + callee + "(" + operands + ")\n";
  for (int i = 0; i < one.c; ++i) {
    std::string n = std::to_string(i);
    text += "  %d" + n + " = extractvalue " + structure + " %d, " + n +
            "\n  store " + one.result + " %d" + n + ", ptr %c" + n + ".p\n";
  }
  return "declare i32 @llvm.nvvm.read.ptx.sreg.laneid()\ndeclare " + structure +
         " " + callee + "(" + list +
         ")\ndefine ptx_kernel void @one(ptr %a, ptr %b, ptr %c) {\n"
         "  %t = call i32 @llvm.nvvm.read.ptx.sreg.laneid()\n" +
         text + "  ret void\n}\n";
}

template <typename To> uint64_t bitsOf(int value) {
  To converted = static_cast<To>(value);
  uint64_t bits = 0;
  std::memcpy(&bits, &converted, sizeof(converted));
  return bits;
}
uint64_t bfloatBits(int value) { return bitsOf<float>(value) >> 16; }
uint64_t int8Bits(int value) { return static_cast<uint8_t>(value); }
uint64_t int32Bits(int value) { return static_cast<uint32_t>(value); }
/// e4m3 and e5m2 of integers from -8 to 8.
uint64_t smallBits(int value, int fraction, int bias) {
  if (value == 0)
    return 0;
  int magnitude = std::abs(value), exponent = 0;
  while (magnitude >> (exponent + 1))
    ++exponent;
  int bits = ((exponent + bias) << fraction) |
             ((magnitude << fraction >> exponent) & ((1 << fraction) - 1));
  return static_cast<uint64_t>(bits | (value < 0 ? 0x80 : 0));
}
uint64_t e4m3Bits(int value) { return smallBits(value, 3, 7); }
uint64_t e5m2Bits(int value) { return smallBits(value, 2, 15); }

const Case kCases[] = {
    {"m16n8k16.row.col.f32.f32", "<2 x half>", "float", 4, 2, 4, 16, 16, 16, 32,
     bitsOf<_Float16>, bitsOf<float>},
    {"m16n8k16.row.col.f16.f16", "<2 x half>", "<2 x half>", 4, 2, 2, 16, 16,
     16, 16, bitsOf<_Float16>, bitsOf<_Float16>},
    {"m16n8k8.row.col.f32.f32", "<2 x half>", "float", 2, 1, 4, 16, 8, 16, 32,
     bitsOf<_Float16>, bitsOf<float>},
    {"m16n8k16.row.col.bf16", "i32", "float", 4, 2, 4, 16, 16, 16, 32,
     bfloatBits, bitsOf<float>},
    {"m16n8k8.row.col.bf16", "i32", "float", 2, 1, 4, 16, 8, 16, 32, bfloatBits,
     bitsOf<float>},
    {"m16n8k8.row.col.tf32", "i32", "float", 4, 2, 4, 16, 8, 32, 32,
     bitsOf<float>, bitsOf<float>},
    {"m16n8k4.row.col.tf32", "i32", "float", 2, 1, 4, 16, 4, 32, 32,
     bitsOf<float>, bitsOf<float>},
    {"m8n8k4.row.col.f64", "double", "double", 1, 1, 2, 8, 4, 64, 64,
     bitsOf<double>, bitsOf<double>},
    {"m16n8k8.row.col.f64", "double", "double", 4, 2, 4, 16, 8, 64, 64,
     bitsOf<double>, bitsOf<double>},
    {"m16n8k32.row.col.s8", "i32", "i32", 4, 2, 4, 16, 32, 8, 32, int8Bits,
     int32Bits},
    {"m16n8k16.row.col.s8", "i32", "i32", 2, 1, 4, 16, 16, 8, 32, int8Bits,
     int32Bits},
    {"m8n8k16.row.col.s8", "i32", "i32", 1, 1, 2, 8, 16, 8, 32, int8Bits,
     int32Bits},
    {"m16n8k32.row.col.f32.e4m3.e4m3.f32", "i32", "float", 4, 2, 4, 16, 32, 8,
     32, e4m3Bits, bitsOf<float>},
    {"m16n8k32.row.col.f32.e5m2.e5m2.f32", "i32", "float", 4, 2, 4, 16, 32, 8,
     32, e5m2Bits, bitsOf<float>},
};

void setBits(std::vector<uint8_t> &bytes, size_t register_, int part,
             int registerBits, int bits, uint64_t value) {
  size_t at = register_ * registerBits / 8 + part * bits / 8;
  std::memcpy(&bytes[at], &value, bits / 8);
}

TEST(EmulatedMma, EveryTypeMultiplies) {
  for (const Case &one : kCases) {
    auto image = imageOf(kernelOf(one));
    ASSERT_TRUE(image) << one.name << image.status().message();
    int registerBits = std::max(32, one.bits), e = registerBits / one.bits;
    int resultRegister = std::max(32, one.resultBits);
    int perResult = resultRegister / one.resultBits;
    std::vector<uint8_t> a(32 * one.a * registerBits / 8),
        b(32 * one.b * registerBits / 8), c(32 * one.c * resultRegister / 8);
    // PTX ISA, "Matrix Fragments for mma.mNnNkN", by the element's position.
    for (int i = 0; i < one.m; ++i)
      for (int p = 0; p < one.k; ++p) {
        int lane = i % 8 * 4 + p / e % 4;
        int index = i / 8 + p / (4 * e) * (one.m / 8);
        setBits(a, lane * one.a + index, p % e, registerBits, one.bits,
                one.encode(element(i, p, 3)));
      }
    for (int p = 0; p < one.k; ++p)
      for (int j = 0; j < 8; ++j)
        setBits(b, (j * 4 + p / e % 4) * one.b + p / (4 * e), p % e,
                registerBits, one.bits, one.encode(element(p, j, 4)));
    auto resultAt = [&](int i, int j, size_t &register_, int &part) {
      int index = i / 8 * 2 + j % 2;
      register_ = (i % 8 * 4 + j / 2) * one.c + index / perResult;
      part = index % perResult;
    };
    for (int i = 0; i < one.m; ++i)
      for (int j = 0; j < 8; ++j) {
        size_t r;
        int part;
        resultAt(i, j, r, part);
        setBits(c, r, part, resultRegister, one.resultBits,
                one.encodeResult(element(i, j, 5)));
      }
    TestMemory memory;
    auto *pa = memory.buffer<uint8_t>(a.size()),
         *pb = memory.buffer<uint8_t>(b.size()),
         *pc = memory.buffer<uint8_t>(c.size());
    std::copy(a.begin(), a.end(), pa);
    std::copy(b.begin(), b.end(), pb);
    std::copy(c.begin(), c.end(), pc);
    Status status =
        launch(*image, "one", {1}, {32}, memory, Order::Random, pa, pb, pc);
    ASSERT_TRUE(status) << one.name << status.message();
    for (int i = 0; i < one.m; ++i)
      for (int j = 0; j < 8; ++j) {
        int sum = element(i, j, 5);
        for (int p = 0; p < one.k; ++p)
          sum += element(i, p, 3) * element(p, j, 4);
        size_t r;
        int part;
        resultAt(i, j, r, part);
        uint64_t got = 0;
        std::memcpy(&got,
                    pc + r * resultRegister / 8 + part * one.resultBits / 8,
                    one.resultBits / 8);
        ASSERT_EQ(got, one.encodeResult(sum))
            << one.name << " at " << i << ", " << j;
      }
  }
}

TEST(EmulatedMma, UnknownShapesAreErrors) {
  Case one = kCases[0];
  one.name = "m8n8k4.row.col.f32.f32";
  one.a = one.b = 2;
  one.c = 8;
  auto image = imageOf(kernelOf(one));
  ASSERT_FALSE(image);
  EXPECT_TRUE(
      mentions(image.status(), "'llvm.nvvm.mma.m8n8k4.row.col.f32.f32'"))
      << image.status().message();
}

} // namespace
