// RUN: tandem-opt %s -tandem-functionalize | FileCheck %s

// P15: of a region that writes, what becomes of the write is of the region; a
// view of what was written is of the region that reads it, not of the one that
// made the view, and the same view is the same value wherever it is made.
// CHECK: func.func @graph(%[[X:.*]]: tensor<4xf32>
module attributes {tandem.phase = "capture"} {
  // CHECK: %[[A:.*]] = tandem.exp %[[X]] {tandem.checkpoint = "first", tandem.save}
  // CHECK: %[[S:.*]] = tandem.slice %[[A]] {{.*}}{tandem.checkpoint = "first"}
  // CHECK: %[[B:.*]] = tandem.sin %[[S]] {tandem.checkpoint = "first"}
  // CHECK: %[[W:.*]] = tandem.{{.*}} {tandem.checkpoint = "first"}
  // CHECK: %[[T:.*]] = tandem.slice {{.*}} {tandem.checkpoint = "second"}
  // CHECK: tandem.cos %[[T]] {tandem.checkpoint = "second"}
  // CHECK: tandem.cos %[[T]] {tandem.checkpoint = "third"}
  // CHECK-NOT: tandem.slice
  // CHECK: return
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<2xf32> {tandem.role = #tandem.role<output "y">},
          tensor<2xf32> {tandem.role = #tandem.role<output "z">}) {
    %a = tandem.exp %x {tandem.checkpoint = "first", tandem.save} : tensor<4xf32>
    %r = tandem.make_ref %a {tandem.checkpoint = "first"} : tensor<4xf32>
    %s = tandem.slice %r from [1] to [3] step [1] {tandem.checkpoint = "first"} : !tandem.ref<4xf32> -> !tandem.ref<2xf32>
    %v = tandem.read %s {tandem.checkpoint = "first"} : !tandem.ref<2xf32>
    %b = tandem.sin %v {tandem.checkpoint = "first"} : tensor<2xf32>
    %q = tandem.slice %r from [0] to [2] step [1] {tandem.checkpoint = "first"} : !tandem.ref<4xf32> -> !tandem.ref<2xf32>
    tandem.write %b into %q {tandem.checkpoint = "first"} : tensor<2xf32>, !tandem.ref<2xf32>
    %u = tandem.read %s {tandem.checkpoint = "second"} : !tandem.ref<2xf32>
    %y = tandem.cos %u {tandem.checkpoint = "second"} : tensor<2xf32>
    %t = tandem.slice %r from [1] to [3] step [1] {tandem.checkpoint = "third"} : !tandem.ref<4xf32> -> !tandem.ref<2xf32>
    %w = tandem.read %t {tandem.checkpoint = "third"} : !tandem.ref<2xf32>
    %z = tandem.cos %w {tandem.checkpoint = "third"} : tensor<2xf32>
    return %y, %z : tensor<2xf32>, tensor<2xf32>
  }
}
