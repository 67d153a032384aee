// RUN: tandem-opt %s -split-input-file -tandem-choose-saved=kind=default | FileCheck %s --check-prefixes=CHECK,DEFAULT
// RUN: tandem-opt %s -split-input-file -tandem-choose-saved=kind=min-cut | FileCheck %s --check-prefixes=CHECK,MINCUT
// RUN: not tandem-opt %s -split-input-file -tandem-choose-saved=kind=best 2>&1 | FileCheck %s --check-prefix=KIND

// KIND: expected partition 'default' or 'min-cut' but got 'best'

// The values are marked, each with the reason.
// CHECK-LABEL: module @sines
// CHECK: func.func @joint
// DEFAULT-SAME: attributes {tandem.saved_by = "default"}
// MINCUT-SAME: attributes {tandem.saved_by = "min-cut"}
// DEFAULT: tandem.sin %{{[a-z0-9]+}} {tandem.pass = "forward", tandem.saved = "the backward uses it"}
// MINCUT: tandem.sin %{{[a-z0-9]+}} {tandem.pass = "forward"}
// CHECK: tandem.sin %{{[a-z0-9]+}} {tandem.pass = "forward"}
// CHECK-NOT: tandem.saved
module @sines {
  func.func @joint(
      %x: tensor<8xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %dy: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %s = tandem.sin %x {tandem.pass = "forward"} : tensor<8xf32>
    %y = tandem.sin %s {tandem.pass = "forward"} : tensor<8xf32>
    %0 = tandem.cos %s {tandem.pass = "backward"} : tensor<8xf32>
    %1 = tandem.mul %dy, %0 {tandem.pass = "backward"} : tensor<8xf32>
    %2 = tandem.cos %x {tandem.pass = "backward"} : tensor<8xf32>
    %3 = tandem.mul %1, %2 {tandem.pass = "backward"} : tensor<8xf32>
    return %y, %3 : tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// An argument that the forward overwrites.
// CHECK-LABEL: module @overwritten
// CHECK: state "s"
// CHECK-SAME: tandem.saved = "{{[^"]*}}"
// CHECK-SAME: cotangent of "y"
module @overwritten {
  func.func @joint(
      %x: tensor<8xf32> {tandem.role = #tandem.role<param "x" {requires_grad}>},
      %s: tensor<8xf32> {tandem.role = #tandem.role<state "s">},
      %dy: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8xf32> {tandem.role = #tandem.role<update of "s">},
          tensor<8xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %y = tandem.mul %x, %s {tandem.pass = "forward"} : tensor<8xf32>
    %n = tandem.add %y, %s {tandem.pass = "forward"} : tensor<8xf32>
    %g = tandem.mul %dy, %s {tandem.pass = "backward"} : tensor<8xf32>
    return %y, %n, %g : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// Of an op with several results the needed ones.
// CHECK-LABEL: module @several
// CHECK: tandem.attention_forward
// CHECK-SAME: tandem.saved = [unit, "{{.*}}"]
module @several {
  func.func @joint(
      %q: tensor<2x8x4xf32> {tandem.role = #tandem.role<input "q" {requires_grad}>},
      %dy: tensor<2x8xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<2x8x4xf32> {tandem.role = #tandem.role<output "o">},
          tensor<2x8xf32> {tandem.role = #tandem.role<output "y">},
          tensor<2x8x4xf32> {tandem.role = #tandem.role<grad of "q">}) {
    %o, %m = tandem.attention_forward %q, %q, %q {scale = 0.5 : f64, tandem.pass = "forward"} : (tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> (tensor<2x8x4xf32>, tensor<2x8xf32>)
    %y = tandem.exp %m {tandem.pass = "forward"} : tensor<2x8xf32>
    %e = tandem.sin %m {tandem.pass = "backward"} : tensor<2x8xf32>
    %d = tandem.mul %dy, %e {tandem.pass = "backward"} : tensor<2x8xf32>
    %g = tandem.broadcast %d to [2, 8, 4] along [0, 1] {tandem.pass = "backward"} : tensor<2x8xf32> -> tensor<2x8x4xf32>
    return %o, %y, %g : tensor<2x8x4xf32>, tensor<2x8xf32>, tensor<2x8x4xf32>
  }
}

// -----

// What has been chosen, perhaps by hand, stays.
// CHECK-LABEL: module @chosen
// CHECK: tandem.saved_by = "me"
// CHECK: tandem.sin {{.*}}tandem.saved = "I want it"
module @chosen {
  func.func @joint(
      %x: tensor<8xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %dy: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8xf32> {tandem.role = #tandem.role<grad of "x">})
      attributes {tandem.saved_by = "me"} {
    %y = tandem.sin %x {tandem.pass = "forward", tandem.saved = "I want it"} : tensor<8xf32>
    %g = tandem.mul %dy, %y {tandem.pass = "backward"} : tensor<8xf32>
    return %y, %g : tensor<8xf32>, tensor<8xf32>
  }
}
