// RUN: tandem-opt %s -verify-diagnostics -tandem-report-partition=remarks=true | FileCheck %s
// RUN: sed s/.*expected-remark.*// %s | tandem-opt -tandem-report-partition 2>&1 | FileCheck %s --check-prefixes=CHECK,QUIET

// What is saved, with the time of making it again, and what the backward runs
// again, with the reason; nothing is divided. More of it:
// partition-joint-remarks.mlir.
// QUIET-NOT: remark
// CHECK: module @reported attributes {tandem.partition = {
// CHECK-SAME: repeated = [{bytes = 64 : i64, op = "tandem.exp", path = "", reason = "a kernel of the backward is expected to take it in", seconds = {{[^,]*}}, where = "{{[^"]*}}:[[#]]:[[#]]"}]
// CHECK-SAME: saved = [{name = "matmul.0", op = "tandem.matmul", path = "", seconds = {{[^,]*}}, where = "{{[^"]*}}:[[#]]:[[#]]"}]
// CHECK: func.func @joint
// CHECK: tandem.saved = "it is large"
module @reported {
  func.func @joint(
      %x: tensor<4x8xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<8x4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
      %dy: tensor<4x4xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<4x4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8x4xf32> {tandem.role = #tandem.role<grad of "w">})
      attributes {tandem.saved_by = "me"} {
    // expected-remark@+1 {{saved the result of 'tandem.matmul' ('tensor<4x4xf32>', 64 bytes): it is large; making it again would take 1.0 us}}
    %m = tandem.matmul %x, %w {tandem.pass = "forward", tandem.saved = "it is large"} : tensor<4x8xf32>, tensor<8x4xf32> -> tensor<4x4xf32>
    // expected-remark@+1 {{'tandem.exp' is computed again in the backward, in 0.0 us: a kernel of the backward is expected to take it in}}
    %e = tandem.exp %m {tandem.pass = "forward"} : tensor<4x4xf32>
    %y = tandem.sin %e {tandem.pass = "forward"} : tensor<4x4xf32>
    %c = tandem.cos %e {tandem.pass = "backward"} : tensor<4x4xf32>
    %f = tandem.mul %c, %m {tandem.pass = "backward"} : tensor<4x4xf32>
    %d = tandem.mul %dy, %f {tandem.pass = "backward"} : tensor<4x4xf32>
    %g = tandem.matmul %x, %d {transpose_lhs, tandem.pass = "backward"} : tensor<4x8xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    return %y, %g : tensor<4x4xf32>, tensor<8x4xf32>
  }
}
