// RUN: tandem-opt %s -tandem-hoist-constants | FileCheck %s

// A constant that takes memory becomes an operand; a splat is computed where it
// stands.
// CHECK-LABEL: func.func @evaluate
// CHECK: %[[C:.*]] = tandem.constant dense<[1.000000e+00, 2.000000e+00]>
// CHECK: tandem.if %{{.*}}(%{{.*}}, %[[C]])
// CHECK-NOT: dense<[1.
// CHECK: tandem.constant dense<3.000000e+00>
func.func @evaluate(%p: tensor<i1> {tandem.role = #tandem.role<input "p">}, %x: tensor<2xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<2xf32> {tandem.role = #tandem.role<output "y">}) {
  %y = tandem.if %p (%x) then {
  ^bb0(%a: tensor<2xf32>):
    %c = tandem.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %b = tandem.add %a, %c : tensor<2xf32>
    tandem.yield %b : tensor<2xf32>
  } else {
  ^bb0(%a: tensor<2xf32>):
    %c = tandem.constant dense<3.0> : tensor<2xf32>
    %b = tandem.add %a, %c : tensor<2xf32>
    tandem.yield %b : tensor<2xf32>
  } : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}
