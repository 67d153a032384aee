// RUN: tandem-opt %s -split-input-file -tandem-plan-programs | FileCheck %s

// A copy is a kernel of its own. The order says how long the device has the
// bytes: to the host until the copy can have ended (it takes 86 us here, a
// product 35), and from where it has to begin to end in time.
// CHECK-LABEL: module @layers
// CHECK-SAME: tandem.step_memory = {arena = 16777216 {{.*}}host = 8388608
// CHECK: func.func @step
// CHECK-SAME: arena_bytes = 16777216, {{.*}}host_bytes = 8388608
// CHECK: %[[A:.*]] = tandem.kernel "matmul"(%arg0, %arg1)
// CHECK: buffers = [#tandem.buffer<arena 0>]
// CHECK: %[[B:.*]] = tandem.kernel "matmul"(%[[A]], %arg1)
// CHECK: buffers = [#tandem.buffer<arena 4194304>]
// CHECK: tandem.kernel "matmul"(%[[B]], %arg1)
// CHECK: tandem.kernel "matmul"
// CHECK: %[[AH:.*]] = tandem.kernel "to_host"(%[[A]])
// CHECK: tandem.to_host
// CHECK: buffers = [#tandem.buffer<arena 0>]
// CHECK: tandem.kernel "matmul"
// CHECK: buffers = [#tandem.buffer<arena 0>]
// CHECK: tandem.kernel "matmul"
// CHECK: %[[BH:.*]] = tandem.kernel "to_host"(%[[B]])
// CHECK: buffers = [#tandem.buffer<arena 4194304>]
// CHECK: tandem.kernel "matmul"
// CHECK: %[[BD:.*]] = tandem.kernel "to_device"(%[[BH]])
// CHECK: tandem.to_device
// CHECK: buffers = [#tandem.buffer<arena 4194304>]
// CHECK: tandem.kernel "matmul"
// CHECK: tandem.kernel "matmul"
// CHECK: tandem.kernel "to_device"(%[[AH]])
// CHECK: tandem.kernel "matmul_sub"(%[[BD]]
module @layers attributes {tandem.phase = "partition", tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @step(
      %x: tensor<1024x1024xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<1024x1024xf32> {tandem.role = #tandem.role<param "w">},
      %v: tensor<1024x1024xf32> {tandem.role = #tandem.role<param "v">})
      -> (tensor<1024x1024xf32> {tandem.role = #tandem.role<update of "w">},
          tensor<1024x1024xf32> {tandem.role = #tandem.role<update of "v">}) {
    %a = tandem.matmul %x, %w {tandem.pass = "forward"} : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
    %ah = tandem.to_host %a {tandem.pass = "forward"} : tensor<1024x1024xf32>
    %b = tandem.matmul %a, %w {tandem.pass = "forward"} : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
    %bh = tandem.to_host %b {tandem.pass = "forward"} : tensor<1024x1024xf32>
    %c = tandem.matmul %b, %w {tandem.pass = "forward"} : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
    %d = tandem.matmul %c, %w {tandem.pass = "forward"} : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
    %e = tandem.matmul %d, %w {tandem.pass = "forward"} : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
    %f = tandem.matmul %e, %w {tandem.pass = "forward"} : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
    %g = tandem.matmul %f, %w {tandem.pass = "backward"} : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
    %i = tandem.matmul %g, %w {tandem.pass = "backward"} : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
    %bd = tandem.to_device %bh {tandem.pass = "backward"} : tensor<1024x1024xf32>
    %dw = tandem.matmul %bd, %i {tandem.pass = "backward"} : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
    %j = tandem.matmul %i, %w {tandem.pass = "backward"} : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
    %k = tandem.matmul %j, %w {tandem.pass = "backward"} : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
    %ad = tandem.to_device %ah {tandem.pass = "backward"} : tensor<1024x1024xf32>
    %dv = tandem.matmul %ad, %k {tandem.pass = "backward"} : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
    %nw = tandem.sub %w, %dw : tensor<1024x1024xf32>
    %nv = tandem.sub %v, %dv : tensor<1024x1024xf32>
    return %nw, %nv : tensor<1024x1024xf32>, tensor<1024x1024xf32>
  }
  func.func @evaluate() { return }
}

// -----

// What would come back where it leaves stays: there is no copy.
// CHECK-LABEL: module @last
module @last attributes {tandem.phase = "partition", tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  // CHECK: func.func @step
  // CHECK-NOT: to_host
  // CHECK-NOT: to_device
  // CHECK: return
  func.func @step(
      %x: tensor<1024x1024xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<1024x1024xf32> {tandem.role = #tandem.role<param "w">})
      -> (tensor<f32> {tandem.role = #tandem.role<output "y">},
          tensor<1024x1024xf32> {tandem.role = #tandem.role<update of "w">}) {
    %a = tandem.matmul %x, %w {tandem.pass = "forward"} : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
    %h = tandem.to_host %a {tandem.pass = "forward"} : tensor<1024x1024xf32>
    %y = tandem.reduce_sum %a over [0, 1] {tandem.pass = "forward"} : tensor<1024x1024xf32> -> tensor<f32>
    %d = tandem.to_device %h {tandem.pass = "backward"} : tensor<1024x1024xf32>
    %g = tandem.cos %d {tandem.pass = "backward"} : tensor<1024x1024xf32>
    %dw = tandem.matmul %x, %g {tandem.pass = "backward"} : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
    %nw = tandem.sub %w, %dw : tensor<1024x1024xf32>
    return %y, %nw : tensor<f32>, tensor<1024x1024xf32>
  }
  func.func @evaluate() { return }
}

// -----

// A backward may write over what it alone was given, but not over what is on the
// host; a copy waits for the cotangents that its reader waits for.
// CHECK-LABEL: module @backward
module @backward attributes {tandem.phase = "partition", tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  // CHECK: func.func @backward
  // CHECK: tandem.kernel "to_device"(%arg0)
  // CHECK: buffers = [#tandem.buffer<arena 0>], needs = {{\[\["z"\]\]}}
  // CHECK-NOT: buffer<argument
  // CHECK: return
  func.func @forward(
      %x: tensor<64xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<64xf32> {tandem.role = #tandem.role<output "y">},
          tensor<64xf32> {tandem.role = #tandem.role<output "z">},
          tensor<64xf32> {tandem.role = #tandem.role<saved "s" {host}>}) {
    %s = tandem.sin %x : tensor<64xf32>
    %h = tandem.to_host %s : tensor<64xf32>
    %y = tandem.neg %x : tensor<64xf32>
    %z = tandem.exp %s : tensor<64xf32>
    return %y, %z, %h : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
  }
  func.func @backward(
      %s: tensor<64xf32> {tandem.role = #tandem.role<saved "s" {host}>},
      %dy: tensor<64xf32> {tandem.role = #tandem.role<cotangent of "y">},
      %dz: tensor<64xf32> {tandem.role = #tandem.role<cotangent of "z">})
      -> (tensor<64xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %d = tandem.to_device %s : tensor<64xf32>
    %e = tandem.exp %d : tensor<64xf32>
    %m = tandem.mul %dz, %e : tensor<64xf32>
    %n = tandem.neg %dy : tensor<64xf32>
    %g = tandem.accumulate %n, %m : tensor<64xf32>
    return %g : tensor<64xf32>
  }
  func.func @evaluate() { return }
}
