// RUN: tandem-opt %s -split-input-file -tandem-set-backward-type | FileCheck %s

// The product of the backward is computed in f32, from what the forward has in
// bf16, and its result is the gradient without a cast between.
// CHECK: module attributes
// CHECK-NOT: tandem.backward_type
// CHECK-LABEL: func.func @joint
// CHECK: tandem.matmul {{.*}}"forward"{{.*}} -> tensor<2x2xbf16>
// CHECK: %[[G:.*]] = tandem.matmul {{.*}}"backward"{{.*}} : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
// CHECK: return %{{.*}}, %[[G]]
module attributes {tandem.phase = "joint", tandem.backward_type = f32} {
  func.func @joint(%w: tensor<2x2xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
                   %x: tensor<2x2xbf16> {tandem.role = #tandem.role<input "x">},
                   %dy: tensor<2x2xbf16> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<2x2xbf16> {tandem.role = #tandem.role<output "y">},
          tensor<2x2xf32> {tandem.role = #tandem.role<grad of "w">}) {
    %wl = tandem.cast %w {tandem.pass = "forward"} : tensor<2x2xf32> to tensor<2x2xbf16>
    %y = tandem.matmul %x, %wl {tandem.pass = "forward"} : tensor<2x2xbf16>, tensor<2x2xbf16> -> tensor<2x2xbf16>
    %g = tandem.matmul %x, %dy {transpose_lhs, tandem.pass = "backward"} : tensor<2x2xbf16>, tensor<2x2xbf16> -> tensor<2x2xbf16>
    %gw = tandem.cast %g {tandem.pass = "backward"} : tensor<2x2xbf16> to tensor<2x2xf32>
    return %y, %gw : tensor<2x2xbf16>, tensor<2x2xf32>
  }
}
