// RUN: tandem-opt %s -split-input-file -tandem-reorder-results -tandem-form-kernels | FileCheck %s

// Heads go back into rows in the kernel that makes them: a product and a loop
// read what it stores. (A kernel read and wrote them again, and another did for
// the backward.)
// CHECK-LABEL: func.func @evaluate
// CHECK: %[[A:.*]]:2 = tandem.kernel "attention_forward"(%arg0) {
// CHECK: %[[Y:.*]], %[[L:.*]] = tandem.attention_forward
// CHECK: %[[P:.*]] = tandem.permute %[[Y]] by [0, 2, 1, 3]
// CHECK: tandem.yield %[[L]], %[[P]] : tensor<2x4x16xf32>, tensor<2x16x4x8xf32>
// CHECK: %[[R:.*]] = tandem.reshape %[[A]]#1 to [32, 32]
// CHECK: tandem.kernel "matmul"(%[[R]], %arg1)
// CHECK: tandem.kernel {{.*}}(%[[A]]#1) {
// CHECK: tandem.permute %{{.*}} by [0, 2, 1, 3]
// CHECK: tandem.reduce_sum
// CHECK-NOT: tandem.kernel
// CHECK: return
module attributes {tandem.target = #tandem.target<cuda {arch = "sm_90a"}>} {
  func.func @evaluate(%q: tensor<2x4x16x8xf32> {tandem.role = #tandem.role<input "q">}, %w: tensor<32x8xf32> {tandem.role = #tandem.role<input "w">}) -> (tensor<32x8xf32> {tandem.role = #tandem.role<output "m">}, tensor<2x4x16xf32> {tandem.role = #tandem.role<output "l">}, tensor<2x4x16xf32> {tandem.role = #tandem.role<output "d">}) {
    %y, %l = tandem.attention_forward %q, %q, %q {causal, scale = 0.5 : f64} : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
    %p = tandem.permute %y by [0, 2, 1, 3] : tensor<2x4x16x8xf32> -> tensor<2x16x4x8xf32>
    %r = tandem.reshape %p to [32, 32] : tensor<2x16x4x8xf32> -> tensor<32x32xf32>
    %m = tandem.matmul %r, %w : tensor<32x32xf32>, tensor<32x8xf32> -> tensor<32x8xf32>
    %s = tandem.mul %y, %y : tensor<2x4x16x8xf32>
    %d = tandem.reduce_sum %s over [3] : tensor<2x4x16x8xf32> -> tensor<2x4x16xf32>
    return %m, %l, %d : tensor<32x8xf32>, tensor<2x4x16xf32>, tensor<2x4x16xf32>
  }
}

// -----

// A result that is returned is stored as it is, and so is one whose rows a
// permutation cuts.
// CHECK-LABEL: func.func @evaluate
// CHECK: tandem.kernel "attention_forward"
// CHECK-NOT: tandem.permute
// CHECK: tandem.kernel "permute"
// CHECK: return
module attributes {tandem.target = #tandem.target<cuda {arch = "sm_90a"}>} {
  func.func @evaluate(%q: tensor<2x4x16x8xf32> {tandem.role = #tandem.role<input "q">}, %w: tensor<32x8xf32> {tandem.role = #tandem.role<input "w">}) -> (tensor<32x8xf32> {tandem.role = #tandem.role<output "m">}, tensor<2x4x16x8xf32> {tandem.role = #tandem.role<output "y">}) {
    %y, %l = tandem.attention_forward %q, %q, %q {causal, scale = 0.5 : f64} : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
    %p = tandem.permute %y by [0, 2, 1, 3] : tensor<2x4x16x8xf32> -> tensor<2x16x4x8xf32>
    %r = tandem.reshape %p to [32, 32] : tensor<2x16x4x8xf32> -> tensor<32x32xf32>
    %m = tandem.matmul %r, %w : tensor<32x32xf32>, tensor<32x8xf32> -> tensor<32x8xf32>
    return %m, %y : tensor<32x8xf32>, tensor<2x4x16x8xf32>
  }
}

// -----

// CHECK-LABEL: func.func @evaluate
// CHECK: tandem.kernel "attention_forward"
// CHECK-NOT: tandem.permute
// CHECK: tandem.kernel "permute"
// CHECK: return
module attributes {tandem.target = #tandem.target<cuda {arch = "sm_90a"}>} {
  func.func @evaluate(%q: tensor<2x4x16x8xf32> {tandem.role = #tandem.role<input "q">}, %w: tensor<16x4xf32> {tandem.role = #tandem.role<input "w">}) -> (tensor<64x4xf32> {tandem.role = #tandem.role<output "m">}) {
    %y, %l = tandem.attention_forward %q, %q, %q {causal, scale = 0.5 : f64} : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
    %p = tandem.permute %y by [0, 1, 3, 2] : tensor<2x4x16x8xf32> -> tensor<2x4x8x16xf32>
    %r = tandem.reshape %p to [64, 16] : tensor<2x4x8x16xf32> -> tensor<64x16xf32>
    %m = tandem.matmul %r, %w : tensor<64x16xf32>, tensor<16x4xf32> -> tensor<64x4xf32>
    return %m : tensor<64x4xf32>
  }
}
