// RUN: tandem-opt %s -tandem-drop-alias-outputs | FileCheck %s

// An output that is a view of another one is no result: the function lists it.
// A joint keeps its own.
// CHECK-LABEL: func.func @evaluate
// CHECK-SAME: -> (tensor<2x2xf32> {tandem.role = #tandem.role<output "y">})
// CHECK-SAME: tandem.aliases = [{name = "t", output = "y", type = tensor<4xf32>, views = [{op = "reshape", shape = array<i64: 4>}]}]
// CHECK: return %{{[a-z0-9]+}} : tensor<2x2xf32>
// CHECK-LABEL: func.func @joint
// CHECK-SAME: output "t" {alias
// CHECK-NOT: tandem.aliases
// CHECK: return %{{[a-z0-9]+}}, %{{[a-z0-9]+}} :
module {
  func.func @evaluate(%x: tensor<2x2xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<2x2xf32> {tandem.role = #tandem.role<output "y">},
          tensor<4xf32> {tandem.role = #tandem.role<output "t" {alias = {output = "y", views = [{op = "reshape", shape = array<i64: 4>}]}}>}) {
    %y = tandem.exp %x : tensor<2x2xf32>
    %t = tandem.reshape %y to [4] : tensor<2x2xf32> -> tensor<4xf32>
    return %y, %t : tensor<2x2xf32>, tensor<4xf32>
  }
  func.func @joint(%x: tensor<2x2xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<2x2xf32> {tandem.role = #tandem.role<output "y">},
          tensor<4xf32> {tandem.role = #tandem.role<output "t" {alias = {output = "y", views = [{op = "reshape", shape = array<i64: 4>}]}}>}) {
    %y = tandem.exp %x : tensor<2x2xf32>
    %t = tandem.reshape %y to [4] : tensor<2x2xf32> -> tensor<4xf32>
    return %y, %t : tensor<2x2xf32>, tensor<4xf32>
  }
}
