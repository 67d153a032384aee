// RUN: tandem-opt %s -tandem-partition-joint | FileCheck %s

// A step is forward, backward with a cotangent of one, and update; the
// optimizer's states are arguments of update and step with their initial
// values, and the updates come in the order of the arguments.
// CHECK: func.func @update(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2xf32> {tandem.role = #tandem.role<param "x" {requires_grad}>},
// CHECK-SAME: %[[G:[a-z0-9]+]]: tensor<2xf32> {tandem.role = #tandem.role<grad of "x">},
// CHECK-SAME: %[[LR:[a-z0-9]+]]: tensor<f32> {tandem.role = #tandem.role<state "momentum.lr" {init = {kind = "constant", value = 5.000000e-01 : f64}}>},
// CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<2xf32> {tandem.role = #tandem.role<state "momentum.velocity:x" {init = {kind = "constant", value = 0.000000e+00 : f64}}>})
// CHECK-SAME: -> (tensor<2xf32> {tandem.role = #tandem.role<update of "x">},
// CHECK-SAME:     tensor<2xf32> {tandem.role = #tandem.role<update of "momentum.velocity:x">})
// CHECK-NEXT: %[[MU:.*]] = tandem.constant dense<0.899999976>
// CHECK-NEXT: %[[BMU:.*]] = tandem.mul %[[B]], %[[MU]]
// CHECK-NEXT: %[[NEW:.*]] = tandem.add %[[BMU]], %[[G]]
// CHECK-NEXT: %[[RATE:.*]] = tandem.broadcast %[[LR]]
// CHECK-NEXT: %[[D:.*]] = tandem.mul %[[RATE]], %[[NEW]]
// CHECK-NEXT: %[[Y:.*]] = tandem.sub %[[X]], %[[D]]
// CHECK-NEXT: return %[[Y]], %[[NEW]]
// CHECK: func.func @step(%[[X:[a-z0-9]+]]: {{.*}}, %[[LR:[a-z0-9]+]]: {{.*}}, %[[B:[a-z0-9]+]]: {{.*}} -> (
// CHECK-SAME: tensor<f32> {tandem.role = #tandem.role<output "loss">},
// CHECK-SAME: tensor<2xf32> {tandem.role = #tandem.role<update of "x">},
// CHECK-SAME: tensor<2xf32> {tandem.role = #tandem.role<update of "momentum.velocity:x">})
// CHECK-DAG: tandem.reduce_sum
// CHECK-DAG: %[[BMU:.*]] = tandem.mul %[[B]],
// CHECK-DAG: tandem.add %[[BMU]], %[[TWO:.*]] :
// CHECK: return
module attributes {tandem.phase = "optimize", tandem.optimizer = "momentum:lr=0.5", tandem.loss = "loss"} {
  func.func @joint(
      %x: tensor<2xf32> {tandem.role = #tandem.role<param "x" {requires_grad}>},
      %dy: tensor<f32> {tandem.role = #tandem.role<cotangent of "loss">})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">},
          tensor<2xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %y = tandem.reduce_sum %x over [0] {tandem.pass = "forward"} : tensor<2xf32> -> tensor<f32>
    %d = tandem.broadcast %dy to [2] along [] {tandem.pass = "backward"} : tensor<f32> -> tensor<2xf32>
    return %y, %d : tensor<f32>, tensor<2xf32>
  }
  func.func @evaluate() { return }
}
