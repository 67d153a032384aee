// What is saved is chosen by one pass, printed, edited, and obeyed by the driver.
//
// RUN: tandem-opt %s -tandem-choose-saved -mlir-print-debuginfo > %t.mlir
// RUN: tandem compile %t.mlir --stop-after=partition | FileCheck %s --check-prefix=CHOSEN
// RUN: sed 's/tandem.sin %arg0 {tandem.pass = "forward"}/tandem.sin %arg0 {tandem.pass = "forward", tandem.saved = "mine"}/' %t.mlir > %t.edited.mlir
// RUN: tandem compile %t.edited.mlir --stop-after=partition | FileCheck %s --check-prefix=EDITED
// RUN: sed 's/tandem.neg %arg1 {tandem.pass = "backward"}/tandem.neg %arg1 {tandem.pass = "backward", tandem.saved = "mine"}/' %t.mlir > %t.wrong.mlir
// RUN: not tandem compile %t.wrong.mlir --stop-after=partition 2>&1 | FileCheck %s --check-prefix=WRONG

// The smallest cut saves nothing but takes x, which the backward needs in any
// case.
// CHOSEN: func.func @forward
// CHOSEN-NOT: #tandem.role<saved
// EDITED: func.func @forward
// EDITED-SAME: #tandem.role<saved "sin.0" {reason = "mine"
// EDITED: func.func @backward
// EDITED-NOT: tandem.sin
// EDITED: return
// WRONG: 'tandem.neg' op exists in the backward alone, where 'tandem.saved' says nothing
module @sines attributes {tandem.phase = "optimize"} {
  func.func @joint(
      %x: tensor<8xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %dy: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %s = tandem.sin %x {tandem.pass = "forward"} : tensor<8xf32>
    %y = tandem.sin %s {tandem.pass = "forward"} : tensor<8xf32>
    %n = tandem.neg %dy {tandem.pass = "backward"} : tensor<8xf32>
    %0 = tandem.cos %s {tandem.pass = "backward"} : tensor<8xf32>
    %1 = tandem.mul %n, %0 {tandem.pass = "backward"} : tensor<8xf32>
    %2 = tandem.cos %x {tandem.pass = "backward"} : tensor<8xf32>
    %3 = tandem.mul %1, %2 {tandem.pass = "backward"} : tensor<8xf32>
    return %y, %3 : tensor<8xf32>, tensor<8xf32>
  }
  func.func @evaluate(%x: tensor<8xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>}) -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">}) {
    %s = tandem.sin %x : tensor<8xf32>
    %y = tandem.sin %s : tensor<8xf32>
    return %y : tensor<8xf32>
  }
}
