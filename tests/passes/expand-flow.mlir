// RUN: tandem-opt %s -tandem-expand-flow | FileCheck %s

// Both branches are computed, and one is selected. More of it, and loops:
// optimize-flow.mlir.
// CHECK-LABEL: func.func @evaluate(
// CHECK-SAME: %[[X:[a-z0-9]+]]: {{[^,]*}}, %[[C:[a-z0-9]+]]:
// CHECK-DAG: %[[R:.*]] = tandem.sqrt %[[X]]
// CHECK-DAG: %[[E:.*]] = tandem.exp %[[X]]
// CHECK: tandem.select %{{[a-z0-9]+}}, %[[R]], %[[E]]
// CHECK-NOT: tandem.if
// CHECK: return
module {
  func.func @evaluate(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">},
                      %c: tensor<i1> {tandem.role = #tandem.role<input "c">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.if %c (%x) then {
      ^bb0(%a: tensor<4xf32>):
        %s = tandem.sqrt %a : tensor<4xf32>
        tandem.yield %s : tensor<4xf32>
    } else {
      ^bb0(%a: tensor<4xf32>):
        %s = tandem.exp %a : tensor<4xf32>
        tandem.yield %s : tensor<4xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
