// RUN: tandem-opt %s --tandem-plan-programs --tandem-lower-to-cpu --split-input-file | FileCheck %s

// Equal kernels share one function, whatever their places and programs.
// CHECK-LABEL: module @shared
// CHECK-SAME: tandem.phase = "lower"
// CHECK: func.func @forward
// CHECK: tandem.launch @cpu::@exp_0(%arg0) {buffers = [#tandem.buffer<arena 0>], grain = 1 : i64, work = 1 : i64}
// CHECK: tandem.launch @cpu::@matmul_0
// CHECK: tandem.launch @cpu::@matmul_0
// CHECK: func.func @evaluate
// CHECK: tandem.launch @cpu::@exp_0
// CHECK: module @cpu
// CHECK-COUNT-1: llvm.func internal @exp_0.body(%{{.*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.noalias}, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: !llvm.ptr
// CHECK-NOT: @exp_1
// CHECK: llvm.func @exp_0(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: !llvm.ptr)
// CHECK-SAME: tandem.kernel = #tandem.kernel_facts<kind = "pointwise", ops = ["tandem.exp"], flops = 16, bytes = 128, summary = "exp 4x4 -> 4x4", dtype = f32, type = (tensor<4x4xf32>) -> tensor<4x4xf32>, items = 1, schedule = <chosen(method = pointwise, vectors = {{[0-9]+}}, block = 4096)>>
// CHECK: llvm.call @exp_0.body
module @shared attributes {tandem.phase = "partition"} {
  func.func @forward(%x: tensor<4x4xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<4x4xf32> {tandem.role = #tandem.role<output "y">}) {
    %0 = tandem.exp %x : tensor<4x4xf32>
    %1 = tandem.matmul %0, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %2 = tandem.matmul %1, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    return %2 : tensor<4x4xf32>
  }
  func.func @evaluate(%x: tensor<4x4xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<4x4xf32> {tandem.role = #tandem.role<output "y">}) {
    %0 = tandem.exp %x : tensor<4x4xf32>
    return %0 : tensor<4x4xf32>
  }
}

// -----

// A result that overwrites an input has no buffer of its own in the body.
// CHECK-LABEL: module @inplace
// CHECK: tandem.launch @cpu::@sub_0(%arg0, %arg1) {buffers = [#tandem.buffer<argument 0>]
// CHECK: llvm.func internal @sub_0.body(%{{.*}}: !llvm.ptr {{{.*}}}, %{{.*}}: !llvm.ptr {{{.*}}}, %{{.*}}: i64, %{{.*}}: i64,
module @inplace attributes {tandem.phase = "partition"} {
  func.func @update(%w: tensor<8xf32> {tandem.role = #tandem.role<param "w">}, %g: tensor<8xf32> {tandem.role = #tandem.role<grad of "w">}) -> (tensor<8xf32> {tandem.role = #tandem.role<update of "w">}) {
    %0 = tandem.sub %w, %g : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

// Softmax keeps its exponentials in scratch; sums may be reordered within a
// row, nothing else may.
// CHECK-LABEL: module @softmax
// CHECK: tandem.launch @cpu::@fused_reduce_max_sub_exp_reduce_sum_div_0(%arg0) {{.*}}work = 64 : i64
// CHECK: llvm.intr.maximum({{.*}}) {fastmathFlags = #llvm.fastmath<nsz, contract, reassoc>}
// CHECK: llvm.fsub {{[^{]*}} : f32
// CHECK: llvm.fadd {{.*}} {fastmathFlags = #llvm.fastmath<nsz, contract, reassoc>}
// CHECK: llvm.fdiv {{[^{]*}} : f{{32|64}}
// CHECK: scratch_bytes = 4096
module @softmax attributes {tandem.phase = "partition"} {
  func.func @evaluate(%x: tensor<64x1024xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<64x1024xf32> {tandem.role = #tandem.role<output "y">}) {
    %m = tandem.reduce_max %x over [1] : tensor<64x1024xf32> -> tensor<64xf32>
    %mb = tandem.broadcast %m to [64, 1024] along [0] : tensor<64xf32> -> tensor<64x1024xf32>
    %c = tandem.sub %x, %mb : tensor<64x1024xf32>
    %e = tandem.exp %c : tensor<64x1024xf32>
    %s = tandem.reduce_sum %e over [1] : tensor<64x1024xf32> -> tensor<64xf32>
    %sb = tandem.broadcast %s to [64, 1024] along [0] : tensor<64xf32> -> tensor<64x1024xf32>
    %y = tandem.div %e, %sb : tensor<64x1024xf32>
    return %y : tensor<64x1024xf32>
  }
}

// -----

// A large input is asked for a page before it is read, a small one is not; of
// columns, the next row is.
// CHECK-LABEL: module @ahead
// CHECK: llvm.func internal @add_0.body
// CHECK-SAME: passthrough = {{\[}}["tandem-loads-ahead", "0,4096"]]
// CHECK: llvm.func internal @reduce_max_0.body
// CHECK-SAME: passthrough = {{\[}}["tandem-loads-ahead", "4096"]]
module @ahead attributes {tandem.phase = "partition"} {
  func.func @evaluate(%x: tensor<1024x1024xf32> {tandem.role = #tandem.role<input "x">}, %b: tensor<1024xf32> {tandem.role = #tandem.role<input "b">}, %z: tensor<1024x1024xf32> {tandem.role = #tandem.role<input "z">}) -> (tensor<1024x1024xf32> {tandem.role = #tandem.role<output "y">}, tensor<1024xf32> {tandem.role = #tandem.role<output "m">}) {
    %c = tandem.broadcast %b to [1024, 1024] along [1] : tensor<1024xf32> -> tensor<1024x1024xf32>
    %y = tandem.add %x, %c : tensor<1024x1024xf32>
    %m = tandem.reduce_max %z over [0] : tensor<1024x1024xf32> -> tensor<1024xf32>
    return %y, %m : tensor<1024x1024xf32>, tensor<1024xf32>
  }
}
