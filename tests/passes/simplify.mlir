// RUN: tandem-opt %s -split-input-file -tandem-simplify | FileCheck %s

// Equal ops of forward and backward are one, once their passes are off.
// CHECK-LABEL: func.func @joint
// CHECK-NEXT: %[[E:.*]] = tandem.exp
// CHECK-NOT: tandem.pass
// CHECK-NOT: tandem.exp
// CHECK: tandem.mul %{{.*}}, %[[E]]
// CHECK: return
func.func @joint(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>}, %dy: tensor<4xf32> {tandem.role = #tandem.role<cotangent of "y">})
    -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}, tensor<4xf32> {tandem.role = #tandem.role<grad of "x">}) {
  %y = tandem.exp %x {tandem.pass = "forward"} : tensor<4xf32>
  %e = tandem.exp %x {tandem.pass = "backward"} : tensor<4xf32>
  %d = tandem.mul %dy, %e {tandem.pass = "backward"} : tensor<4xf32>
  return %y, %d : tensor<4xf32>, tensor<4xf32>
}
