// RUN: tandem-opt %s -split-input-file -tandem-mark-passes | FileCheck %s

// Forward is what an output needs, whatever stood there before.
// CHECK-LABEL: func.func @joint
// CHECK: tandem.exp {{.*}}tandem.pass = "forward"
// CHECK: tandem.mul {{.*}}tandem.pass = "backward"
// CHECK-LABEL: func.func @evaluate
// CHECK-NOT: tandem.pass
module {
  func.func @joint(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>}, %dy: tensor<4xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}, tensor<4xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %y = tandem.exp %x {tandem.pass = "backward"} : tensor<4xf32>
    %d = tandem.mul %dy, %y : tensor<4xf32>
    return %y, %d : tensor<4xf32>, tensor<4xf32>
  }
  func.func @evaluate(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.exp %x : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
