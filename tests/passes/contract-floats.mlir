// RUN: tandem-opt %s -split-input-file -tandem-contract-floats | FileCheck %s

// Sums and products may be rounded as one; what they could do before, they can.
// CHECK-LABEL: func.func @fast
module attributes {tandem.target = #tandem.target<cpu {fast_math}>} {
  func.func @fast(%x: f32, %y: f32) -> f32 {
    // CHECK: arith.mulf %arg0, %arg1 fastmath<contract> : f32
    // CHECK: arith.addf %{{.*}}, %arg1 fastmath<reassoc,contract> : f32
    // CHECK: arith.divf %{{.*}}, %arg1 : f32
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %0, %y fastmath<reassoc> : f32
    %2 = arith.divf %1, %y : f32
    return %2 : f32
  }
}

// -----

// CHECK-LABEL: func.func @exact
// CHECK: arith.mulf %arg0, %arg1 : f32
module attributes {tandem.target = #tandem.target<cpu {}>} {
  func.func @exact(%x: f32, %y: f32) -> f32 {
    %0 = arith.mulf %x, %y : f32
    return %0 : f32
  }
}
