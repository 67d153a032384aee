// RUN: tandem-opt %s -tandem-form-kernels -tandem-order-kernels | FileCheck %s

// Two large products, of each of which only a small one is wanted: that is
// made before the other large one is.
// CHECK-LABEL: func.func @evaluate
// CHECK: %[[P:.*]] = tandem.kernel "matmul"(%[[W:.*]], %[[V:.*]]) {
// CHECK: = tandem.kernel "matmul{{.*}}"(%[[P]], %[[W]])
// CHECK: %[[Q:.*]] = tandem.kernel "matmul"(%[[W]], %[[V]]) {
// CHECK: = tandem.kernel "matmul{{.*}}"(%[[V]], %[[Q]])
// CHECK: return
func.func @evaluate(%x: tensor<64x64xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<64x64xf32> {tandem.role = #tandem.role<output "s">}, tensor<64x64xf32> {tandem.role = #tandem.role<output "t">}) {
  %w = tandem.reshape %x to [4096, 1] : tensor<64x64xf32> -> tensor<4096x1xf32>
  %v = tandem.reshape %x to [1, 4096] : tensor<64x64xf32> -> tensor<1x4096xf32>
  %p = tandem.matmul %w, %v : tensor<4096x1xf32>, tensor<1x4096xf32> -> tensor<4096x4096xf32>
  %q = tandem.matmul %w, %v : tensor<4096x1xf32>, tensor<1x4096xf32> -> tensor<4096x4096xf32>
  %a = tandem.matmul %p, %w : tensor<4096x4096xf32>, tensor<4096x1xf32> -> tensor<4096x1xf32>
  %b = tandem.matmul %v, %q : tensor<1x4096xf32>, tensor<4096x4096xf32> -> tensor<1x4096xf32>
  %s = tandem.reshape %a to [64, 64] : tensor<4096x1xf32> -> tensor<64x64xf32>
  %t = tandem.reshape %b to [64, 64] : tensor<1x4096xf32> -> tensor<64x64xf32>
  return %s, %t : tensor<64x64xf32>, tensor<64x64xf32>
}
