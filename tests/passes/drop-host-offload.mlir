// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-drop-host-offload | FileCheck %s

// CHECK-LABEL: module @host
// CHECK-NOT: tandem.offload
module @host attributes {tandem.target = #tandem.target<cpu>} {
  func.func @joint(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    // expected-remark@+1 {{'tandem.offload' on 'tandem.exp' says nothing: the programs' memory is the host's; nor on 1 more}}
    %e = tandem.exp %x {tandem.pass = "forward", tandem.offload} : tensor<4xf32>
    %y = tandem.sin %e {tandem.pass = "forward", tandem.offload} : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// CHECK-LABEL: module @device
// CHECK: tandem.exp {{.*}}tandem.offload
module @device attributes {tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @joint(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.exp %x {tandem.pass = "forward", tandem.offload} : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
