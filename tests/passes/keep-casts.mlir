// RUN: tandem-opt %s -split-input-file -tandem-keep-casts | FileCheck %s

// Both passes of the step read the copy that @prepare makes, and the step gives
// a new one beside the param. What no product reads (the bias) is cast where it
// is added; what is trained no more (%f) keeps its copy; sums read the same.
// CHECK-LABEL: module @step
// CHECK: func.func @prepare(%[[W:[a-z0-9]+]]: tensor<8x4xf32> {tandem.role = #tandem.role<param "w">}, %[[F:[a-z0-9]+]]: tensor<8x4xf32> {tandem.role = #tandem.role<param "f">})
// CHECK-SAME: -> (tensor<8x4xbf16> {tandem.role = #tandem.role<prepared "w.bf16">}, tensor<8x4xbf16> {tandem.role = #tandem.role<prepared "f.bf16.cast">})
// CHECK: %[[A:.*]] = tandem.cast %[[W]]
// CHECK: %[[B:.*]] = tandem.cast %[[F]]
// CHECK: return %[[A]], %[[B]]
// CHECK: func.func @step(
// CHECK-SAME: %[[LW:[a-z0-9]+]]: tensor<8x4xbf16> {tandem.role = #tandem.role<prepared "w.bf16">},
// CHECK-SAME: %[[LF:[a-z0-9]+]]: tensor<8x4xbf16> {tandem.role = #tandem.role<prepared "f.bf16.cast">})
// CHECK-SAME: tensor<8x4xbf16> {tandem.role = #tandem.role<update of "w.bf16">})
// CHECK: tandem.matmul %{{.*}}, %[[LW]] :
// CHECK: %[[T:.*]] = tandem.permute %[[LF]] by [1, 0] : tensor<8x4xbf16> -> tensor<4x8xbf16>
// CHECK: tandem.matmul %{{.*}}, %[[T]] :
// CHECK: tandem.cast %{{.*}} : tensor<4xf32> to tensor<4xbf16>
// CHECK: %[[N:.*]] = tandem.sub
// CHECK: %[[C:.*]] = tandem.cast %[[N]] : tensor<8x4xf32> to tensor<8x4xbf16>
// CHECK: return %{{.*}}, %[[N]], %[[C]]
// CHECK: func.func @accumulate(
// CHECK-SAME: %[[SW:[a-z0-9]+]]: tensor<8x4xbf16> {tandem.role = #tandem.role<prepared "w.bf16">})
// CHECK-NOT: tandem.cast
// CHECK: tandem.matmul %{{.*}}, %[[SW]] :
module @step attributes {tandem.target = #tandem.target<cuda {arch = "sm_80"}>} {
  func.func @step(
      %x: tensor<2x8xbf16> {tandem.role = #tandem.role<input "x">},
      %w: tensor<8x4xf32> {tandem.role = #tandem.role<param "w">},
      %f: tensor<8x4xf32> {tandem.role = #tandem.role<param "f">},
      %b: tensor<4xf32> {tandem.role = #tandem.role<param "b">},
      %s: tensor<f32> {tandem.role = #tandem.role<state "f.bf16">})
      -> (tensor<2x8xbf16> {tandem.role = #tandem.role<output "y">},
          tensor<8x4xf32> {tandem.role = #tandem.role<update of "w">}) {
    %lw = tandem.cast %w : tensor<8x4xf32> to tensor<8x4xbf16>
    %h = tandem.matmul %x, %lw : tensor<2x8xbf16>, tensor<8x4xbf16> -> tensor<2x4xbf16>
    %ft = tandem.permute %f by [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
    %lf = tandem.cast %ft : tensor<4x8xf32> to tensor<4x8xbf16>
    %y = tandem.matmul %h, %lf : tensor<2x4xbf16>, tensor<4x8xbf16> -> tensor<2x8xbf16>
    %lb = tandem.cast %b : tensor<4xf32> to tensor<4xbf16>
    %bb = tandem.broadcast %lb to [2, 4] along [1] : tensor<4xbf16> -> tensor<2x4xbf16>
    %g = tandem.add %h, %bb : tensor<2x4xbf16>
    %xt = tandem.permute %x by [1, 0] : tensor<2x8xbf16> -> tensor<8x2xbf16>
    %dw = tandem.matmul %xt, %g : tensor<8x2xbf16>, tensor<2x4xbf16> -> tensor<8x4xbf16>
    %d = tandem.cast %dw : tensor<8x4xbf16> to tensor<8x4xf32>
    %n = tandem.sub %w, %d : tensor<8x4xf32>
    return %y, %n : tensor<2x8xbf16>, tensor<8x4xf32>
  }
  func.func @accumulate(
      %x: tensor<2x8xbf16> {tandem.role = #tandem.role<input "x">},
      %w: tensor<8x4xf32> {tandem.role = #tandem.role<param "w">})
      -> (tensor<2x4xbf16> {tandem.role = #tandem.role<output "h">}) {
    %lw = tandem.cast %w : tensor<8x4xf32> to tensor<8x4xbf16>
    %h = tandem.matmul %x, %lw : tensor<2x8xbf16>, tensor<8x4xbf16> -> tensor<2x4xbf16>
    return %h : tensor<2x4xbf16>
  }
}

// -----

// On a processor those alone that serve more than a step: of what is frozen,
// and of all where batches are added up. No update gives them.
// CHECK-LABEL: module @processor
// CHECK: func.func @prepare(%{{.*}}: tensor<4x4xf32> {tandem.role = #tandem.role<param "f">})
// CHECK: func.func @step(
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<4x4xbf16> {tandem.role = #tandem.role<prepared "f.bf16">})
// CHECK-SAME: -> (tensor<4x4xf32> {tandem.role = #tandem.role<update of "w">})
// CHECK: tandem.cast %{{.*}} : tensor<4x4xf32> to tensor<4x4xbf16>
// CHECK-NOT: tandem.cast %{{.*}} : tensor<4x4xf32> to tensor<4x4xbf16>
// CHECK: return
module @processor {
  func.func @step(
      %w: tensor<4x4xf32> {tandem.role = #tandem.role<param "w">},
      %f: tensor<4x4xf32> {tandem.role = #tandem.role<param "f">})
      -> (tensor<4x4xf32> {tandem.role = #tandem.role<update of "w">}) {
    %lw = tandem.cast %w : tensor<4x4xf32> to tensor<4x4xbf16>
    %lf = tandem.cast %f : tensor<4x4xf32> to tensor<4x4xbf16>
    %y = tandem.matmul %lw, %lf : tensor<4x4xbf16>, tensor<4x4xbf16> -> tensor<4x4xbf16>
    %n = tandem.cast %y : tensor<4x4xbf16> to tensor<4x4xf32>
    return %n : tensor<4x4xf32>
  }
}

// -----

// CHECK-LABEL: module @sums
// CHECK: func.func @step(
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<4x4xbf16> {tandem.role = #tandem.role<prepared "w.bf16">})
// CHECK-SAME: -> (tensor<4x4xf32> {tandem.role = #tandem.role<update of "w">})
// CHECK: func.func @accumulate(
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<4x4xbf16> {tandem.role = #tandem.role<prepared "w.bf16">})
module @sums {
  func.func @step(
      %w: tensor<4x4xf32> {tandem.role = #tandem.role<param "w">})
      -> (tensor<4x4xf32> {tandem.role = #tandem.role<update of "w">}) {
    %lw = tandem.cast %w : tensor<4x4xf32> to tensor<4x4xbf16>
    %y = tandem.matmul %lw, %lw : tensor<4x4xbf16>, tensor<4x4xbf16> -> tensor<4x4xbf16>
    %n = tandem.cast %y : tensor<4x4xbf16> to tensor<4x4xf32>
    return %n : tensor<4x4xf32>
  }
  func.func @accumulate(
      %w: tensor<4x4xf32> {tandem.role = #tandem.role<param "w">})
      -> (tensor<4x4xbf16> {tandem.role = #tandem.role<output "h">}) {
    %lw = tandem.cast %w : tensor<4x4xf32> to tensor<4x4xbf16>
    %h = tandem.matmul %lw, %lw : tensor<4x4xbf16>, tensor<4x4xbf16> -> tensor<4x4xbf16>
    return %h : tensor<4x4xbf16>
  }
}

// -----

// A wider type is read by a cast: it would be larger than what it is made of.
// CHECK-LABEL: module @wider
// CHECK-NOT: @prepare
module @wider {
  func.func @step(
      %x: tensor<2x8xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<8x4xbf16> {tandem.role = #tandem.role<param "w">})
      -> (tensor<2x4xf32> {tandem.role = #tandem.role<output "h">}) {
    %lw = tandem.cast %w : tensor<8x4xbf16> to tensor<8x4xf32>
    %h = tandem.matmul %x, %lw : tensor<2x8xf32>, tensor<8x4xf32> -> tensor<2x4xf32>
    return %h : tensor<2x4xf32>
  }
}

// -----

// Ranks gather the copies of their pieces: half the bytes.
// CHECK-LABEL: module @ranks
// CHECK: func.func @step
// CHECK: %[[G:.*]] = tandem.all_gather %{{[a-z0-9]+}} dim 0 over ["data"] : tensor<4x4xbf16> -> tensor<8x4xbf16>
// CHECK-NOT: tandem.all_gather
// CHECK: tandem.matmul %{{.*}}, %[[G]]
module @ranks attributes {tandem.mesh = #tandem.mesh<"data" = 2>} {
  func.func @step(
      %x: tensor<2x8xbf16> {tandem.role = #tandem.role<input "x">},
      %w: tensor<4x4xf32> {tandem.role = #tandem.role<param "w">})
      -> (tensor<2x4xbf16> {tandem.role = #tandem.role<output "h">}) attributes {tandem.local} {
    %all = tandem.all_gather %w dim 0 over ["data"] : tensor<4x4xf32> -> tensor<8x4xf32>
    %lw = tandem.cast %all : tensor<8x4xf32> to tensor<8x4xbf16>
    %h = tandem.matmul %x, %lw : tensor<2x8xbf16>, tensor<8x4xbf16> -> tensor<2x4xbf16>
    return %h : tensor<2x4xbf16>
  }
}
