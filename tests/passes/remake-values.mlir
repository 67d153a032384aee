// RUN: tandem-opt %s -split-input-file -tandem-remake-values -tandem-form-kernels | FileCheck %s

// What a product's epilogue reads in f32 it makes of the bf16 that it reads
// anyway: sigmoid is no result of the kernel that has it too. (Two kernels of
// gelu's gradient exchanged two tensors of f32. They are of one pass each:
// else they would be one kernel.)
// CHECK-LABEL: func.func @evaluate
// CHECK: tandem.kernel {{.*}}(%arg0) {
// CHECK: tandem.sigmoid
// CHECK: tandem.yield %{{[0-9]+}} : tensor<1024x1024xbf16>
// CHECK: tandem.kernel "{{.*}}matmul{{.*}}"(%arg0, %arg1) {
// CHECK-DAG: tandem.matmul
// CHECK-DAG: tandem.sigmoid
// CHECK: tandem.yield
// CHECK: return
module attributes {tandem.target = #tandem.target<cuda {arch = "sm_90a"}>} {
  func.func @evaluate(%x: tensor<1024x1024xbf16> {tandem.role = #tandem.role<input "x">}, %w: tensor<1024x1024xbf16> {tandem.role = #tandem.role<input "w">}) -> (tensor<1024x1024xbf16> {tandem.role = #tandem.role<output "y">}, tensor<1024x1024xbf16> {tandem.role = #tandem.role<output "z">}) {
    %f = tandem.cast %x {tandem.pass = "forward"} : tensor<1024x1024xbf16> to tensor<1024x1024xf32>
    %q = tandem.mul %f, %f {tandem.pass = "forward"} : tensor<1024x1024xf32>
    %s = tandem.sigmoid %q {tandem.pass = "forward"} : tensor<1024x1024xf32>
    %g = tandem.mul %f, %s {tandem.pass = "forward"} : tensor<1024x1024xf32>
    %y = tandem.cast %g {tandem.pass = "forward"} : tensor<1024x1024xf32> to tensor<1024x1024xbf16>
    %p = tandem.matmul %w, %w {tandem.pass = "backward"} : tensor<1024x1024xbf16>, tensor<1024x1024xbf16> -> tensor<1024x1024xbf16>
    %pf = tandem.cast %p {tandem.pass = "backward"} : tensor<1024x1024xbf16> to tensor<1024x1024xf32>
    %a = tandem.mul %pf, %s {tandem.pass = "backward"} : tensor<1024x1024xf32>
    %b = tandem.mul %a, %f {tandem.pass = "backward"} : tensor<1024x1024xf32>
    %z = tandem.cast %b {tandem.pass = "backward"} : tensor<1024x1024xf32> to tensor<1024x1024xbf16>
    return %y, %z : tensor<1024x1024xbf16>, tensor<1024x1024xbf16>
  }
}

// -----

// On a processor a function takes longer than the bytes: the kernels stay.
// CHECK-LABEL: func.func @evaluate
// CHECK: %[[K:.*]]:2 = tandem.kernel
// CHECK: tandem.sigmoid
// CHECK-NOT: tandem.sigmoid
// CHECK: return
module attributes {tandem.target = #tandem.target<cpu {arch = "x86-64-v3"}>} {
  func.func @evaluate(%x: tensor<1024x1024xbf16> {tandem.role = #tandem.role<input "x">}, %w: tensor<1024x1024xbf16> {tandem.role = #tandem.role<input "w">}) -> (tensor<1024x1024xbf16> {tandem.role = #tandem.role<output "y">}, tensor<1024x1024xbf16> {tandem.role = #tandem.role<output "z">}) {
    %f = tandem.cast %x : tensor<1024x1024xbf16> to tensor<1024x1024xf32>
    %s = tandem.sigmoid %f : tensor<1024x1024xf32>
    %g = tandem.mul %f, %s : tensor<1024x1024xf32>
    %y = tandem.cast %g : tensor<1024x1024xf32> to tensor<1024x1024xbf16>
    %p = tandem.matmul %w, %w : tensor<1024x1024xbf16>, tensor<1024x1024xbf16> -> tensor<1024x1024xbf16>
    %pf = tandem.cast %p : tensor<1024x1024xbf16> to tensor<1024x1024xf32>
    %a = tandem.mul %pf, %s : tensor<1024x1024xf32>
    %z = tandem.cast %a : tensor<1024x1024xf32> to tensor<1024x1024xbf16>
    return %y, %z : tensor<1024x1024xbf16>, tensor<1024x1024xbf16>
  }
}

// -----

// Half as many bytes as what it is made of, which its reader does not read
// otherwise: it crosses.
// CHECK-LABEL: func.func @evaluate
// CHECK: %[[K:.*]]:2 = tandem.kernel {{.*}}(%arg0, %arg1) {
// CHECK: tandem.exp
// CHECK: tandem.kernel "{{.*}}matmul{{.*}}"({{.*}}%[[K]]#
// CHECK-NOT: tandem.exp
// CHECK: return
module attributes {tandem.target = #tandem.target<cuda {arch = "sm_90a"}>} {
  func.func @evaluate(%x: tensor<1024x1024xf32> {tandem.role = #tandem.role<input "x">}, %v: tensor<1024x1024xf32> {tandem.role = #tandem.role<input "v">}, %w: tensor<1024x1024xbf16> {tandem.role = #tandem.role<input "w">}) -> (tensor<1024xf32> {tandem.role = #tandem.role<output "y">}, tensor<1024x1024xbf16> {tandem.role = #tandem.role<output "z">}) {
    %m = tandem.mul %x, %v : tensor<1024x1024xf32>
    %e = tandem.exp %m : tensor<1024x1024xf32>
    %y = tandem.reduce_sum %e over [1] : tensor<1024x1024xf32> -> tensor<1024xf32>
    %h = tandem.cast %e : tensor<1024x1024xf32> to tensor<1024x1024xbf16>
    %p = tandem.matmul %w, %w : tensor<1024x1024xbf16>, tensor<1024x1024xbf16> -> tensor<1024x1024xbf16>
    %z = tandem.add %p, %h : tensor<1024x1024xbf16>
    return %y, %z : tensor<1024xf32>, tensor<1024x1024xbf16>
  }
}
