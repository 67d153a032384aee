// RUN: tandem-opt %s -tandem-form-kernels -tandem-place-host-copies | FileCheck %s

// A copy from the host begins early enough to have ended where it is read. More
// of it, with memory: plan/host-copies.mlir.
// CHECK-LABEL: func.func @backward
// CHECK: tandem.kernel "to_device"
// CHECK: tandem.kernel "matmul
// CHECK: tandem.kernel "matmul
module attributes {tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @backward(
      %h: tensor<1024x1024xf32> {tandem.role = #tandem.role<saved "h" {host}>},
      %x: tensor<1024x1024xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<1024x1024xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %a = tandem.matmul %x, %x : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
    %d = tandem.to_device %h : tensor<1024x1024xf32>
    %b = tandem.matmul %a, %d : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
    return %b : tensor<1024x1024xf32>
  }
}
