// Ops on tensors without elements are constants after optimize, and so is what
// they make of nothing; kernels see none of them.
//
// RUN: tandem-opt %s --tandem-functionalize --tandem-build-joint --tandem-optimize-joint | FileCheck %s
// RUN: tandem-opt %s --tandem-functionalize --tandem-build-joint --tandem-optimize-joint --tandem-partition-joint --tandem-plan-programs | FileCheck %s --check-prefix=PLAN

// CHECK-LABEL: func.func @joint
// CHECK-NOT: tandem.softmax
// CHECK-NOT: tandem.matmul
// CHECK-NOT: tandem.reduce_max
// CHECK: tandem.constant dense<> : tensor<0x2xf32>
// CHECK: return

// PLAN-LABEL: func.func @forward
// PLAN-NOT: tandem.kernel {{.*}}0x
// PLAN: %[[E:.*]] = tandem.constant dense<> : tensor<0x2xf32>
// PLAN: return {{.*}}%[[E]]
module @empty attributes {tandem.phase = "capture"} {
  func.func @graph(
      %x: tensor<0x3xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<2x3xf32> {tandem.role = #tandem.role<param "w" {requires_grad, init = {kind = "constant", value = 1.0}}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">},
          tensor<0x2xf32> {tandem.role = #tandem.role<output "y">}) {
    %l = tandem.linear %x, %w : (tensor<0x3xf32>, tensor<2x3xf32>) -> tensor<0x2xf32>
    %y = tandem.softmax %l dim 1 : tensor<0x2xf32>
    %s = tandem.reduce_sum %y over [0, 1] : tensor<0x2xf32> -> tensor<f32>
    %q = tandem.mul %w, %w : tensor<2x3xf32>
    %t = tandem.reduce_sum %q over [0, 1] : tensor<2x3xf32> -> tensor<f32>
    %o = tandem.add %s, %t : tensor<f32>
    return %o, %y : tensor<f32>, tensor<0x2xf32>
  }
}
