//===- ThreadCode.cpp - the code of one CUDA thread as formulas -----------===//
#include "passes/lower/cuda/ThreadCode.h"
#include "passes/target/CudaModel.h"
#include "passes/target/Target.h"

#include "ir/Dialect.h"
#include "ir/ops/Scalar.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

CudaTarget CudaTarget::of(Operation *op) {
  auto [sm, isExact] = cudaArchOf(op);
  TargetAttr target = TargetAttr::of(op);
  return {sm, isExact, target ? target.getProducts().str() : ""};
}

int64_t CudaTarget::sharedBytes() const {
  return CudaModel::of(sm).sharedBytes;
}

ThreadCode::Value ThreadCode::atEntry(llvm::function_ref<Value()> make) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&function().getBody().front());
  return make();
}

ThreadCode::Value ThreadCode::thread() {
  if (!ids[3])
    ids[3] = atEntry([&]() -> Value {
      return gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
    });
  return ids[3];
}

ThreadCode::Value ThreadCode::block(int dim) {
  constexpr gpu::Dimension dims[] = {gpu::Dimension::x, gpu::Dimension::y,
                                     gpu::Dimension::z};
  if (!ids[dim])
    ids[dim] = atEntry(
        [&]() -> Value { return gpu::BlockIdOp::create(b, loc, dims[dim]); });
  return ids[dim];
}

ThreadCode::Value ThreadCode::warp() { return div(thread(), warpSize); }
ThreadCode::Value ThreadCode::lane() { return rem(thread(), warpSize); }

ThreadCode::Value ThreadCode::narrow(Value x) {
  return b.createOrFold<arith::IndexCastUIOp>(loc, b.getI32Type(), x);
}
ThreadCode::Value ThreadCode::widenIndex(Value x) {
  return b.createOrFold<arith::IndexCastOp>(loc, b.getIndexType(), x);
}

std::pair<ThreadCode::Value, ThreadCode::Value> ThreadCode::split(Value x,
                                                                  int64_t y) {
  if (y == 1)
    return {x, like(x, 0)};
  if (!x.getType().isIndex())
    return {div(x, y), rem(x, y)};
  Value word = narrow(x);
  auto wide = [&](Value part) -> Value {
    return b.createOrFold<arith::IndexCastUIOp>(loc, b.getIndexType(), part);
  };
  return {wide(div(word, y)), wide(rem(word, y))};
}

void ThreadCode::barrier() {
  if (first == 0) {
    gpu::BarrierOp::create(b, loc);
    return;
  }
  // Number 0 is of all. Not nvvm.barrier: what it prints with its operands and
  // a location is not what it parses.
  Type i32 = b.getI32Type();
  LLVM::CallIntrinsicOp::create(
      b, loc, b.getStringAttr("llvm.nvvm.barrier.cta.sync.aligned.count"),
      ValueRange{number(i32, 1), number(i32, static_cast<double>(first))});
}

void ThreadCode::forFirst(int64_t threads, llvm::function_ref<void()> body) {
  first = threads;
  body();
  first = 0;
}

ThreadCode::Value ThreadCode::shuffleXor(Value x, int64_t mask) {
  return shuffle(x, number(b.getI32Type(), static_cast<double>(mask)),
                 gpu::ShuffleMode::XOR);
}

ThreadCode::Value ThreadCode::shuffleFrom(Value x, Value lane) {
  lane = arith::IndexCastOp::create(b, loc, b.getI32Type(), lane);
  return shuffle(x, lane, gpu::ShuffleMode::IDX);
}

ThreadCode::Value ThreadCode::shuffle(Value x, Value lane,
                                      gpu::ShuffleMode mode) {
  Type type = x.getType(), i32 = b.getI32Type();
  if (type.isUnsignedInteger())
    return scalar::withSign(
        b, loc, shuffle(scalar::signless(b, loc, x), lane, mode), type);
  Value width = number(i32, warpSize);
  auto exchange = [&](Value word) -> Value {
    return gpu::ShuffleOp::create(b, loc, word, lane, width, mode)
        .getShuffleResult();
  };
  unsigned bits = type.getIntOrFloatBitWidth();
  if (type.isF32() || type.isInteger(32))
    return exchange(x);
  if (bits == 64) {
    // Its two words.
    Type words = VectorType::get({2}, i32), one = VectorType::get({1}, type);
    Value pair = vector::BitCastOp::create(
        b, loc, words, vector::BroadcastOp::create(b, loc, one, x));
    Value low = exchange(vector::ExtractOp::create(b, loc, pair, int64_t(0)));
    Value high = exchange(vector::ExtractOp::create(b, loc, pair, int64_t(1)));
    pair = vector::FromElementsOp::create(b, loc, cast<VectorType>(words),
                                          ValueRange{low, high});
    return vector::ExtractOp::create(
        b, loc, vector::BitCastOp::create(b, loc, one, pair), int64_t(0));
  }
  Value integer = x;
  Type narrow = b.getIntegerType(bits);
  if (type != narrow)
    integer = arith::BitcastOp::create(b, loc, narrow, x);
  integer = exchange(arith::ExtUIOp::create(b, loc, i32, integer));
  integer = arith::TruncIOp::create(b, loc, narrow, integer);
  if (type != narrow)
    integer = arith::BitcastOp::create(b, loc, type, integer);
  return integer;
}

ThreadCode::Value ThreadCode::reduceLanes(Value x, int64_t lanes,
                                          Combine combine) {
  for (int64_t mask = lanes / 2; mask > 0; mask /= 2)
    x = combine(x, shuffleXor(x, mask));
  return x;
}

ThreadCode::Values ThreadCode::reduceBlock(
    ValueRange x, int64_t threads,
    llvm::function_ref<Value(size_t, Value, Value)> combine) {
  Values results;
  for (auto [i, value] : llvm::enumerate(x))
    results.push_back(
        reduceLanes(value, warpSize,
                    [&, i = i](Value x, Value y) { return combine(i, x, y); }));
  int64_t warps = threads / warpSize;
  if (warps == 1)
    return results;
  Values parts;
  for (Value value : results)
    parts.push_back(shared({warps}, value.getType()));
  when(equal(lane(), index(0)), [&] {
    for (auto [value, part] : llvm::zip_equal(results, parts)) {
      Value x = value;
      if (x.getType().isInteger(1))
        x = arith::ExtUIOp::create(b, loc, b.getI8Type(), x);
      memref::StoreOp::create(b, loc, x, part, warp());
    }
  });
  barrier();
  for (auto [i, part] : llvm::enumerate(parts)) {
    Value total;
    for (int64_t w = 0; w < warps; ++w) {
      Value x = memref::LoadOp::create(b, loc, part, index(w));
      if (results[i].getType().isInteger(1))
        x = arith::TruncIOp::create(b, loc, b.getI1Type(), x);
      total = total ? combine(i, total, x) : x;
    }
    results[i] = total;
  }
  return results;
}

ThreadCode::Value ThreadCode::shared(ArrayRef<int64_t> shape, Type element) {
  if (element.isInteger(1))
    element = b.getI8Type();
  // The number of the space, which conversions of vectors to LLVM know without
  // knowing gpu's name of it. Both become the same pointer.
  Attribute space = b.getI64IntegerAttr(3);
  if (!memory)
    memory = atEntry([&]() -> Value {
      auto named = gpu::AddressSpaceAttr::get(b.getContext(),
                                              gpu::AddressSpace::Workgroup);
      auto bytesIn = [&](Attribute space) {
        return MemRefType::get({ShapedType::kDynamic}, b.getI8Type(),
                               MemRefLayoutAttrInterface(), space);
      };
      Value all = gpu::DynamicSharedMemoryOp::create(b, loc, bytesIn(named));
      return UnrealizedConversionCastOp::create(b, loc, bytesIn(space), all)
          .getResult(0);
    });
  auto type =
      MemRefType::get(shape, element, MemRefLayoutAttrInterface(), space);
  int64_t at = used;
  int64_t bytes = type.getNumElements() * elementBytes(element);
  used += (bytes + 127) / 128 * 128;
  most = std::max(most, used);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(memory);
  return memref::ViewOp::create(b, loc, type, memory, index(at), ValueRange{});
}

void ThreadCode::alternative(llvm::function_ref<void()> body) {
  int64_t before = used;
  body();
  used = before;
}

gpu::GPUFuncOp ThreadCode::function() {
  Operation *at = b.getInsertionBlock()->getParentOp();
  while (!isa<gpu::GPUFuncOp>(at))
    at = at->getParentOp();
  return cast<gpu::GPUFuncOp>(at);
}

TensorMapAttr TensorMap::describe(Builder &b) const {
  std::string name;
  llvm::raw_string_ostream(name) << element;
  auto list = [&](ArrayRef<int64_t> values) {
    return b.getDenseI64ArrayAttr(values);
  };
  return TensorMapAttr::get(b.getContext(), buffer, offset,
                            b.getStringAttr(roundsToTf32 ? "tf32" : name),
                            list(sizes), list(strides), list(box), swizzle);
}

ThreadCode::Value ThreadCode::tensorMap(const TensorMap &map) {
  gpu::GPUFuncOp func = function();
  unsigned at = func.getNumArguments() - (hasScratch ? 1 : 0);
  auto attributes = DictionaryAttr::get(
      b.getContext(), b.getNamedAttr("llvm.align", b.getI64IntegerAttr(64)));
  (void)func.insertArgument(at, LLVM::LLVMPointerType::get(b.getContext()),
                            attributes, loc);
  maps.push_back(map);
  return func.getArgument(at);
}

ThreadCode::Value ThreadCode::scratch(int64_t bytes) {
  gpu::GPUFuncOp func = function();
  hasScratch = true;
  unsigned last = func.getNumArguments();
  auto attributes = DictionaryAttr::get(
      b.getContext(), b.getNamedAttr("llvm.align", b.getI64IntegerAttr(64)));
  (void)func.insertArgument(last, MemRefType::get({bytes}, b.getI8Type()),
                            attributes, loc);
  return func.getArgument(last);
}

ThreadCode::Value ThreadCode::countBlock(Value counters, Value at,
                                         int64_t blocks) {
  // PTX ISA, "Release and Acquire Patterns": a fence and then a relaxed write
  // release what this thread did and, by the barrier before, what its block
  // did; a relaxed read and then a fence acquire it, by the barrier behind for
  // the whole block. NVPTX prints atomics as relaxed whatever their order says.
  auto fence = [&] {
    LLVM::FenceOp::create(b, loc, LLVM::AtomicOrdering::acq_rel, "device");
  };
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, counters);
  Value address = arith::IndexCastOp::create(b, loc, b.getI64Type(),
                                             add(base, mul(at, counterBytes)));
  constexpr unsigned global = 1;
  Value counter = LLVM::IntToPtrOp::create(
      b, loc, LLVM::LLVMPointerType::get(b.getContext(), global), address);
  Value last = arith::ConstantOp::create(
      b, loc, b.getI32IntegerAttr(static_cast<int32_t>(blocks - 1)));
  fence();
  Value before = LLVM::AtomicRMWOp::create(
      b, loc, LLVM::AtomicBinOp::uinc_wrap, counter, last,
      LLVM::AtomicOrdering::monotonic, "device");
  fence();
  return before;
}

ThreadCode::Value ThreadCode::view(Value bytes, int64_t at, int64_t size,
                                   Type element) {
  auto type =
      MemRefType::get({size}, element, MemRefLayoutAttrInterface(),
                      cast<MemRefType>(bytes.getType()).getMemorySpace());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(bytes);
  return memref::ViewOp::create(b, loc, type, bytes, index(at), ValueRange{});
}
