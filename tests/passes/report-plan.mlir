// RUN: tandem-opt %s -verify-diagnostics -tandem-form-kernels -tandem-plan-memory -tandem-report-plan=remarks=true | FileCheck %s

// CHECK: module attributes {tandem.step_memory = {arena = 64 : i64
module {
  // expected-remark@+1 {{kernel}}
  func.func @evaluate(%x: tensor<4x4xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<4x4xf32> {tandem.role = #tandem.role<output "y">}) {
    %p = tandem.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %y = tandem.matmul %p, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    return %y : tensor<4x4xf32>
  }
}
