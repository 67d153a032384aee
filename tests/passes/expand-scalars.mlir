// RUN: tandem-opt %s -split-input-file -tandem-expand-scalars | FileCheck %s

// Functions of f32 are polynomials, those of f64 stay for libm; a bf16 is moved
// by integers.
// CHECK-LABEL: func.func @functions
// CHECK-NOT: math.exp %{{.*}} : vector
// CHECK: math.exp %{{.*}} : f64
// CHECK-NOT: arith.extf
// CHECK: return
func.func @functions(%x: vector<8xf32>, %y: f64, %z: bf16) -> (vector<8xf32>, f64, f32) {
  %0 = math.exp %x : vector<8xf32>
  %1 = math.exp %y : f64
  %2 = arith.extf %z : bf16 to f32
  return %0, %1, %2 : vector<8xf32>, f64, f32
}

// -----

// f16 is converted where the processor does.
// CHECK-LABEL: func.func @halves
// CHECK: arith.extf
module attributes {tandem.target = #tandem.target<cpu {features = ["f16c"]}>} {
  func.func @halves(%x: f16) -> f32 {
    %0 = arith.extf %x : f16 to f32
    return %0 : f32
  }
}

// -----

// CHECK-LABEL: func.func @without
// CHECK-NOT: arith.extf
// CHECK: return
module attributes {tandem.target = #tandem.target<cpu {}>} {
  func.func @without(%x: f16) -> f32 {
    %0 = arith.extf %x : f16 to f32
    return %0 : f32
  }
}
