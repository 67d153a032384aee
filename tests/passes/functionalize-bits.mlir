// RUN: tandem-opt %s -tandem-functionalize | FileCheck %s

// A12: what is written through a view of another element type is turned into
// the storage's. What is not written never passes through the other type: -1 is
// no float that keeps its bits.
// CHECK: func.func @graph(%[[S:.*]]: tensor<4xi32> {{.*}}, %[[V:.*]]: tensor<2xf32>
// CHECK-NOT: bitcast %[[S]]
// CHECK: %[[BITS:.*]] = tandem.bitcast %[[V]] : tensor<2xf32> -> tensor<2xi32>
// CHECK-NOT: bitcast
// CHECK: return %{{.*}} : tensor<4xi32>
module @bits attributes {tandem.phase = "capture"} {
  func.func @graph(
      %s: !tandem.ref<4xi32> {tandem.role = #tandem.role<state "s">},
      %v: tensor<2xf32> {tandem.role = #tandem.role<input "v">}) {
    %f = tandem.bitcast %s : !tandem.ref<4xi32> -> !tandem.ref<4xf32>
    %h = tandem.slice %f from [1] to [3] step [1] : !tandem.ref<4xf32> -> !tandem.ref<2xf32>
    tandem.write %v into %h : tensor<2xf32>, !tandem.ref<2xf32>
    return
  }
}
