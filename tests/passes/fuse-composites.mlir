// RUN: tandem-opt %s -split-input-file -tandem-fuse-composites | FileCheck %s --check-prefixes=CHECK,ONCE
// RUN: tandem-opt %s -split-input-file -tandem-fuse-composites=order=2 | FileCheck %s --check-prefixes=CHECK,TWICE

// For a target that has kernels for it, where it is differentiated once; a
// program that nobody compiled for a target keeps its composites.
// CHECK-LABEL: module @target
// ONCE-NOT: tandem.attention %
// ONCE: tandem.attention_forward
// TWICE: tandem.attention %
module @target attributes {tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @graph(%q: tensor<2x2x16x16xf32> {tandem.role = #tandem.role<input "q">}) -> (tensor<2x2x16x16xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.attention %q, %q, %q : tensor<2x2x16x16xf32>, tensor<2x2x16x16xf32>, tensor<2x2x16x16xf32> -> tensor<2x2x16x16xf32>
    return %y : tensor<2x2x16x16xf32>
  }
}

// -----

// CHECK-LABEL: module @none
// CHECK: tandem.attention %
module @none {
  func.func @graph(%q: tensor<2x2x16x16xf32> {tandem.role = #tandem.role<input "q">}) -> (tensor<2x2x16x16xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.attention %q, %q, %q : tensor<2x2x16x16xf32>, tensor<2x2x16x16xf32>, tensor<2x2x16x16xf32> -> tensor<2x2x16x16xf32>
    return %y : tensor<2x2x16x16xf32>
  }
}
