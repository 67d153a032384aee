// RUN: tandem-opt %s --tandem-plan-programs --tandem-lower-to-cuda --split-input-file | FileCheck %s

// Factors of bf16 whose rows are aligned: asynchronous copies of 16 bytes into
// four stages, three of which are on their way; fragments by ldmatrix,
// transposed where k runs down the rows; sums in f32.
// CHECK-LABEL: module @half
// CHECK: tandem.launch @cuda::@matmul_0{{.*}}grid = array<i64: [[BLOCKS:[0-9]+]], 1, 1>
// CHECK: llvm.func @matmul_0
// CHECK-SAME: nvvm.kernel
// CHECK-COUNT-2: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.cp.async.wait.group 2
// CHECK: nvvm.barrier
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>{{.*}}num = 4
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>{{.*}}num = 4
// CHECK: nvvm.mma.sync {{.*}}multiplicandAPtxType = #nvvm.mma_type<bf16>{{.*}}#nvvm.shape<m = 16, n = 8, k = 16>
module @half attributes {tandem.phase = "partition", tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @evaluate(%x: tensor<256x256xbf16> {tandem.role = #tandem.role<input "x">}, %w: tensor<256x256xbf16> {tandem.role = #tandem.role<input "w">}) -> (tensor<256x256xbf16> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.matmul %x, %w : tensor<256x256xbf16>, tensor<256x256xbf16> -> tensor<256x256xbf16>
    return %y : tensor<256x256xbf16>
  }
}

// -----

// Rows of odd length: elements pass through registers, and what is outside is
// zero.
// CHECK-LABEL: module @odd
// CHECK-NOT: nvvm.cp.async
// CHECK: nvvm.mma.sync {{.*}}m = 16, n = 8, k = 16{{.*}}vector<2xf16>
module @odd attributes {tandem.phase = "partition", tandem.target = #tandem.target<cuda {arch = "sm_80"}>} {
  func.func @evaluate(%x: tensor<33x35xf16> {tandem.role = #tandem.role<input "x">}, %w: tensor<35x37xf16> {tandem.role = #tandem.role<input "w">}) -> (tensor<33x37xf16> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.matmul %x, %w : tensor<33x35xf16>, tensor<35x37xf16> -> tensor<33x37xf16>
    return %y : tensor<33x37xf16>
  }
}

// -----

// f32 stays f32, multiplied and added in one rounding.
// CHECK-LABEL: module @single
// CHECK-NOT: nvvm.mma.sync
// CHECK: llvm.fmul {{.*}}contract
module @single attributes {tandem.phase = "partition", tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @evaluate(%x: tensor<256x256xf32> {tandem.role = #tandem.role<input "x">}, %w: tensor<256x256xf32> {tandem.role = #tandem.role<input "w">}) -> (tensor<256x256xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.matmul %x, %w : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
    return %y : tensor<256x256xf32>
  }
}

// -----

// Unless asked to be tf32.
// CHECK-LABEL: module @tf32
// CHECK: nvvm.convert.float.to.tf32
// CHECK: nvvm.mma.sync {{.*}}multiplicandAPtxType = #nvvm.mma_type<tf32>{{.*}}#nvvm.shape<m = 16, n = 8, k = 8>
module @tf32 attributes {tandem.phase = "partition", tandem.target = #tandem.target<cuda {arch = "sm_90", matmul_precision = "tf32"}>} {
  func.func @evaluate(%x: tensor<256x256xf32> {tandem.role = #tandem.role<input "x">}, %w: tensor<256x256xf32> {tandem.role = #tandem.role<input "w">}) -> (tensor<256x256xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.matmul %x, %w : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
    return %y : tensor<256x256xf32>
  }
}

// -----

// Few tiles and many k: blocks share a tile, count themselves, and the last one
// adds; the parts are in scratch memory, one more parameter.
// CHECK-LABEL: module @split
// CHECK: llvm.func @matmul_0(%arg0: {{.*}}, %arg3: !llvm.ptr {llvm.align = 64 : i64})
// CHECK-SAME: scratch_bytes = {{[1-9][0-9]*}}
// Counting is a release before and an acquisition behind, which the atomic is not.
// CHECK: llvm.fence syncscope("device") acq_rel
// CHECK-NEXT: llvm.atomicrmw uinc_wrap {{.*}} syncscope("device") monotonic
// CHECK-NEXT: llvm.fence syncscope("device") acq_rel
module @split attributes {tandem.phase = "partition", tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @evaluate(%x: tensor<64x16384xf32> {tandem.role = #tandem.role<input "x">}, %w: tensor<16384x64xf32> {tandem.role = #tandem.role<input "w">}) -> (tensor<64x64xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.matmul %x, %w : tensor<64x16384xf32>, tensor<16384x64xf32> -> tensor<64x64xf32>
    return %y : tensor<64x64xf32>
  }
}

// -----

// A convolution multiplies what its windows see; padding is zero.
// CHECK-LABEL: module @convolution
// CHECK: llvm.func @conv2d_0
// CHECK: nvvm.mma.sync
module @convolution attributes {tandem.phase = "partition", tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @evaluate(%x: tensor<2x16x14x14xbf16> {tandem.role = #tandem.role<input "x">}, %w: tensor<32x16x3x3xbf16> {tandem.role = #tandem.role<input "w">}) -> (tensor<2x32x14x14xbf16> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.conv2d %x, %w strides [1, 1] padding [1, 1, 1, 1] : tensor<2x16x14x14xbf16>, tensor<32x16x3x3xbf16> -> tensor<2x32x14x14xbf16>
    return %y : tensor<2x32x14x14xbf16>
  }
}

// -----

// sm_90a: bulk copies of boxes of both tensors into six stages by one thread,
// two barriers for each; two warpgroups multiply, the products of one tile under
// way while those of the next begin. The maps are parameters by value after the
// buffers.
// CHECK-LABEL: module @warpgroups
// CHECK: tandem.launch @cuda::@matmul_0
// CHECK: llvm.func @matmul_0(%arg0: {{.*}}, %arg1: {{.*}}, %arg2: {{.*}}, %arg3: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}, %arg4: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant})
// CHECK-SAME: nvvm.minctasm = 1
// CHECK-SAME: block = [384, 1, 1]
// CHECK-SAME: tensor_maps = [
// CHECK-SAME: #tandem.tensor_map<buffer = 0, element = "bf16", sizes = [512, 256], strides = [1024], box = [64, 128], swizzle = 128>,
// CHECK-SAME: #tandem.tensor_map<buffer = 1, element = "bf16", sizes = [256, 512], strides = [512], box = [64, 64], swizzle = 128>]
// CHECK: nvvm.mbarrier.init
// CHECK: nvvm.fence.mbarrier.init
// CHECK: nvvm.barrier
// CHECK: nvvm.setmaxregister increase 232
// CHECK: mbarrier.try_wait.parity
// CHECK: nvvm.wgmma.fence.aligned
// CHECK: setp.ne.b32 p, {{.*}}wgmma.mma_async.sync.aligned.m64n{{[0-9]+}}k16.f32.bf16.bf16
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK: mbarrier.try_wait.parity
// CHECK: nvvm.wgmma.fence.aligned
// CHECK-COUNT-4: wgmma.mma_async.sync.aligned
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 1
// CHECK: nvvm.mbarrier.arrive
// CHECK: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK: llvm.nvvm.barrier.cta.sync.aligned.count
// CHECK: nvvm.setmaxregister decrease 40
// CHECK: mbarrier.try_wait.parity
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global
module @warpgroups attributes {tandem.phase = "partition", tandem.target = #tandem.target<cuda {arch = "sm_90a", products = "wgmma"}>} {
  func.func @evaluate(%x: tensor<256x512xbf16> {tandem.role = #tandem.role<input "x">}, %w: tensor<512x256xbf16> {tandem.role = #tandem.role<input "w">}) -> (tensor<256x256xbf16> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.matmul %x, %w : tensor<256x512xbf16>, tensor<512x256xbf16> -> tensor<256x256xbf16>
    return %y : tensor<256x256xbf16>
  }
}

// -----

// What the op asks for, whatever the compilation says.
// CHECK-LABEL: module @precisions
// CHECK: llvm.func @matmul_0
// CHECK-NOT: nvvm.mma.sync
// CHECK: llvm.func @matmul_1
// CHECK: nvvm.mma.sync {{.*}}tf32
module @precisions attributes {tandem.phase = "partition", tandem.target = #tandem.target<cuda {arch = "sm_90", matmul_precision = "tf32"}>} {
  func.func @evaluate(%x: tensor<256x256xf32> {tandem.role = #tandem.role<input "x">}, %w: tensor<256x256xf32> {tandem.role = #tandem.role<input "w">}) -> (tensor<256x256xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.matmul %x, %w {precision = "f32"} : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
    %z = tandem.matmul %y, %w {precision = "tf32"} : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
    return %z : tensor<256x256xf32>
  }
}

// -----

// Factors of 8 bits: tensor cores multiply what the casts read. B's rows run
// along its lines: pairs of bytes are turned by ldmatrix, bytes by prmt. Sums of
// 32 terms begin at zero and are added in f32.
// CHECK-LABEL: module @bytes
// CHECK: tandem.launch @cuda::@cast_cast_matmul_0
// CHECK-NOT: tandem.launch
// CHECK: llvm.func @cast_cast_matmul_0
// CHECK-SAME: summary = "matmul 256x256xf8E5M2 256x256xf8E4M3FN -> 256x256"
// CHECK-COUNT-2: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>{{.*}}num = 4
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>{{.*}}num = 4
// CHECK: nvvm.prmt
// CHECK: [[SUM:%[0-9]+]] = llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.f32.e5m2.e4m3.f32"({{.*}}, [[ZERO:%[0-9]+]], [[ZERO]], [[ZERO]], [[ZERO]])
// CHECK: llvm.fadd {{.*}} : vector<4xf32>
module @bytes attributes {tandem.phase = "partition", tandem.target = #tandem.target<cuda {arch = "sm_89"}>} {
  func.func @evaluate(%x: tensor<256x256xf8E5M2> {tandem.role = #tandem.role<input "x">}, %w: tensor<256x256xf8E4M3FN> {tandem.role = #tandem.role<input "w">}) -> (tensor<256x256xf32> {tandem.role = #tandem.role<output "y">}) {
    %a = tandem.cast %x : tensor<256x256xf8E5M2> to tensor<256x256xf32>
    %b = tandem.cast %w : tensor<256x256xf8E4M3FN> to tensor<256x256xf32>
    %y = tandem.matmul %a, %b {precision = "tf32"} : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
    return %y : tensor<256x256xf32>
  }
}

// -----

// sm_90a multiplies bytes along k by warpgroups: tiles of 128 k, whose products
// begin at zeros (a scale of 0) and pass through the wait, behind which f32 adds
// them.
// CHECK-LABEL: module @bytes_of_warpgroups
// CHECK: tandem.launch @cuda::@cast_cast_matmul_0
// CHECK: llvm.func @cast_cast_matmul_0
// CHECK-SAME: #tandem.tensor_map<buffer = 0, element = "i8", sizes = [512, 256], strides = [512], box = [128, 128], swizzle = 128>,
// CHECK: [[NOT:%.*]] = llvm.mlir.constant(0 : i32)
// CHECK: nvvm.setmaxregister increase 232
// CHECK: mbarrier.try_wait.parity
// CHECK: nvvm.wgmma.fence.aligned
// CHECK: wgmma.mma_async.sync.aligned.m64n{{[0-9]+}}k32.f32.e5m2.e4m3 {{.*}}, [[NOT]], {{%[0-9]+}}, {{%[0-9]+}} :
// CHECK-COUNT-3: wgmma.mma_async.sync.aligned
// CHECK-NOT: wgmma.mma_async.sync.aligned
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK: nvvm.mbarrier.arrive
// CHECK: llvm.fadd {{.*}} : f32
// CHECK: nvvm.setmaxregister decrease 40
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global
module @bytes_of_warpgroups attributes {tandem.phase = "partition", tandem.target = #tandem.target<cuda {arch = "sm_90a", products = "wgmma"}>} {
  func.func @evaluate(%x: tensor<256x512xf8E5M2> {tandem.role = #tandem.role<input "x">}, %w: tensor<256x512xf8E4M3FN> {tandem.role = #tandem.role<input "w">}) -> (tensor<256x256xf32> {tandem.role = #tandem.role<output "y">}) {
    %a = tandem.cast %x : tensor<256x512xf8E5M2> to tensor<256x512xf32>
    %b = tandem.cast %w : tensor<256x512xf8E4M3FN> to tensor<256x512xf32>
    %y = tandem.matmul %a, %b {precision = "tf32", transpose_rhs} : tensor<256x512xf32>, tensor<256x512xf32> -> tensor<256x256xf32>
    return %y : tensor<256x256xf32>
  }
}

// -----

// Integers are added up in their registers, exactly; a factor along its lines is
// turned first, by a kernel that moves pieces of 16 bytes.
// CHECK-LABEL: module @integers_of_warpgroups
// CHECK: tandem.launch @cuda::@permute_0
// CHECK: tandem.launch @cuda::@cast_cast_matmul_0
// CHECK-DAG: llvm.load {{.*}} -> vector<16xi8>
// CHECK-DAG: llvm.store {{.*}} : vector<16xi8>
// CHECK: wgmma.mma_async.sync.aligned.m64n{{[0-9]+}}k32.s32.s8.u8
// CHECK: nvvm.wgmma.wait.group.sync.aligned 1
// CHECK: llvm.sitofp
module @integers_of_warpgroups attributes {tandem.phase = "partition", tandem.target = #tandem.target<cuda {arch = "sm_90a", products = "wgmma"}>} {
  func.func @evaluate(%x: tensor<256x512xi8> {tandem.role = #tandem.role<input "x">}, %w: tensor<512x256xui8> {tandem.role = #tandem.role<input "w">}) -> (tensor<256x256xf32> {tandem.role = #tandem.role<output "y">}) {
    %a = tandem.cast %x : tensor<256x512xi8> to tensor<256x512xf32>
    %b = tandem.cast %w : tensor<512x256xui8> to tensor<512x256xf32>
    %y = tandem.matmul %a, %b : tensor<256x512xf32>, tensor<512x256xf32> -> tensor<256x256xf32>
    return %y : tensor<256x256xf32>
  }
}
