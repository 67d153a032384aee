// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-partition-joint=kind=default
// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-partition-joint=kind=min-cut

// Where the programs are the host's, 'offload' says nothing: what is saved is
// what would be saved without it.
module attributes {tandem.phase = "optimize", tandem.target = #tandem.target<cpu>} {
  func.func @joint(
      %x: tensor<8xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %dy: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8xf32> {tandem.role = #tandem.role<grad of "x">}) {
    // expected-remark@+1 {{'tandem.offload' on 'tandem.sin' says nothing: the programs' memory is the host's; nor on 1 more}}
    %s = tandem.sin %x {tandem.pass = "forward", tandem.offload} : tensor<8xf32>
    %y = tandem.sin %s {tandem.pass = "forward", tandem.offload} : tensor<8xf32>
    %0 = tandem.cos %s {tandem.pass = "backward"} : tensor<8xf32>
    %1 = tandem.mul %dy, %0 {tandem.pass = "backward"} : tensor<8xf32>
    return %y, %1 : tensor<8xf32>, tensor<8xf32>
  }
  func.func @evaluate() { return }
}

// -----

// What is an output is the output's storage, on the device.
module attributes {tandem.phase = "optimize", tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @joint(
      %x: tensor<8xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %dy: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8xf32> {tandem.role = #tandem.role<grad of "x">}) {
    // expected-remark@+1 {{'tandem.offload' on 'tandem.exp' at partition-offload-remarks.mlir:32:10 does not bring it to the host: the device has it as output "y"}}
    %y = tandem.exp %x {tandem.pass = "forward", tandem.offload} : tensor<8xf32>
    %0 = tandem.mul %dy, %y {tandem.pass = "backward"} : tensor<8xf32>
    return %y, %0 : tensor<8xf32>, tensor<8xf32>
  }
  func.func @evaluate() { return }
}
