// RUN: tandem-opt %s -split-input-file -tandem-differentiate | FileCheck %s

// One cotangent for the output, one gradient for what requires it; the input
// has none.
// CHECK-LABEL: func.func @joint
// CHECK-SAME: cotangent of "y"
// CHECK-SAME: grad of "w"
// CHECK-NOT: grad of "x"
// CHECK: tandem.mul %arg0, %arg1 {tandem.pass = "forward"}
// CHECK: tandem.mul %arg2, %arg0 {tandem.pass = "backward"}
module attributes {tandem.phase = "functionalize"} {
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">}, %w: tensor<4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.mul %x, %w : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
