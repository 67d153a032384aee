// RUN: tandem-opt %s -split-input-file -tandem-build-evaluate | FileCheck %s

// A copy follows inference: nothing is written, and the
// graph stays.
// CHECK-LABEL: func.func @graph
// CHECK-LABEL: func.func @evaluate
// CHECK-NOT: update of
// CHECK: return %{{[a-z0-9]+}} : tensor<4xf32>
module attributes {tandem.phase = "functionalize"} {
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">}, %s: tensor<4xf32> {tandem.role = #tandem.role<state "s">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}, tensor<4xf32> {tandem.role = #tandem.role<update of "s">}) {
    %y = tandem.add %x, %s : tensor<4xf32>
    return %y, %x : tensor<4xf32>, tensor<4xf32>
  }
}
