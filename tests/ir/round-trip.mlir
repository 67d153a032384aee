// Ops of the dialect, printed as they are read: in their own syntax, through the
// generic syntax, and with locations. A pointwise op needs no line here:
// tests/gradients reads and prints the rows of all ops.
//
// RUN: tandem-opt %s | tandem-opt | FileCheck %s
// RUN: tandem-opt %s --mlir-print-op-generic | tandem-opt | FileCheck %s
// RUN: tandem-opt %s --mlir-print-debuginfo | tandem-opt | FileCheck %s
// RUN: tandem-opt %s --emit-bytecode | tandem-opt | FileCheck %s

// CHECK-LABEL: func.func @ops
func.func @ops(%v: tensor<3xf32>,
               %n: tensor<3xi32>,
               %t: tensor<3xi1>,
               %m: tensor<2x3xf32>,
               %x: tensor<2x4x8x8xf32>,
               %w: tensor<6x4x3x3xf32>,
               %g: tensor<6x2x3x3xf32>,
               %y: tensor<2x6x6x6xf32>,
               %p: tensor<2x4x4x4xf32>,
               %q: tensor<2x4x4x4xi32>,
               %s: tensor<3x3xf32>,
               %z: tensor<f32>,
               %r: !tandem.ref<3xf32>) {
  // CHECK: tandem.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]> : tensor<3xf32>
  %r0 = tandem.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  // CHECK: tandem.iota dim 0 : tensor<3xi32>
  %r1 = tandem.iota dim 0 : tensor<3xi32>
  // CHECK: tandem.neg %{{.*}} : tensor<3xf32>
  %r2 = tandem.neg %v : tensor<3xf32>
  // CHECK: tandem.abs %{{.*}} : tensor<3xf32>
  %r3 = tandem.abs %v : tensor<3xf32>
  // CHECK: tandem.exp %{{.*}} : tensor<3xf32>
  %r4 = tandem.exp %v : tensor<3xf32>
  // CHECK: tandem.log %{{.*}} : tensor<3xf32>
  %r5 = tandem.log %v : tensor<3xf32>
  // CHECK: tandem.log1p %{{.*}} : tensor<3xf32>
  %r6 = tandem.log1p %v : tensor<3xf32>
  // CHECK: tandem.sqrt %{{.*}} : tensor<3xf32>
  %r7 = tandem.sqrt %v : tensor<3xf32>
  // CHECK: tandem.rsqrt %{{.*}} : tensor<3xf32>
  %r8 = tandem.rsqrt %v : tensor<3xf32>
  // CHECK: tandem.sin %{{.*}} : tensor<3xf32>
  %r9 = tandem.sin %v : tensor<3xf32>
  // CHECK: tandem.cos %{{.*}} : tensor<3xf32>
  %r10 = tandem.cos %v : tensor<3xf32>
  // CHECK: tandem.tanh %{{.*}} : tensor<3xf32>
  %r11 = tandem.tanh %v : tensor<3xf32>
  // CHECK: tandem.sigmoid %{{.*}} : tensor<3xf32>
  %r12 = tandem.sigmoid %v : tensor<3xf32>
  // CHECK: tandem.erf %{{.*}} : tensor<3xf32>
  %r13 = tandem.erf %v : tensor<3xf32>
  // CHECK: tandem.relu %{{.*}} : tensor<3xf32>
  %r14 = tandem.relu %v : tensor<3xf32>
  // CHECK: tandem.sign %{{.*}} : tensor<3xf32>
  %r15 = tandem.sign %v : tensor<3xf32>
  // CHECK: tandem.floor %{{.*}} : tensor<3xf32>
  %r16 = tandem.floor %v : tensor<3xf32>
  // CHECK: tandem.ceil %{{.*}} : tensor<3xf32>
  %r17 = tandem.ceil %v : tensor<3xf32>
  // CHECK: tandem.round %{{.*}} : tensor<3xf32>
  %r18 = tandem.round %v : tensor<3xf32>
  // CHECK: tandem.detach %{{.*}} : tensor<3xf32>
  %r19 = tandem.detach %v : tensor<3xf32>
  // CHECK: tandem.add %{{.*}}, %{{.*}} : tensor<3xf32>
  %r20 = tandem.add %v, %v : tensor<3xf32>
  // CHECK: tandem.sub %{{.*}}, %{{.*}} : tensor<3xf32>
  %r21 = tandem.sub %v, %v : tensor<3xf32>
  // CHECK: tandem.mul %{{.*}}, %{{.*}} : tensor<3xf32>
  %r22 = tandem.mul %v, %v : tensor<3xf32>
  // CHECK: tandem.div %{{.*}}, %{{.*}} : tensor<3xf32>
  %r23 = tandem.div %v, %v : tensor<3xf32>
  // CHECK: tandem.pow %{{.*}}, %{{.*}} : tensor<3xf32>
  %r24 = tandem.pow %v, %v : tensor<3xf32>
  // CHECK: tandem.maximum %{{.*}}, %{{.*}} : tensor<3xi32>
  %r25 = tandem.maximum %n, %n : tensor<3xi32>
  // CHECK: tandem.minimum %{{.*}}, %{{.*}} : tensor<3xi32>
  %r26 = tandem.minimum %n, %n : tensor<3xi32>
  // CHECK: tandem.compare lt %{{.*}}, %{{.*}} : tensor<3xf32>
  %r27 = tandem.compare lt %v, %v : tensor<3xf32>
  // CHECK: tandem.logical_not %{{.*}} : tensor<3xi1>
  %r28 = tandem.logical_not %t : tensor<3xi1>
  // CHECK: tandem.logical_and %{{.*}}, %{{.*}} : tensor<3xi1>
  %r29 = tandem.logical_and %t, %t : tensor<3xi1>
  // CHECK: tandem.logical_or %{{.*}}, %{{.*}} : tensor<3xi1>
  %r30 = tandem.logical_or %t, %t : tensor<3xi1>
  // CHECK: tandem.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<3xi1>, tensor<3xf32>
  %r31 = tandem.select %t, %v, %v : tensor<3xi1>, tensor<3xf32>
  // CHECK: tandem.cast %{{.*}} : tensor<3xf32> to tensor<3xbf16>
  %r32 = tandem.cast %v : tensor<3xf32> to tensor<3xbf16>
  // CHECK: tandem.broadcast %{{.*}} to [2, 3] along [1] : tensor<3xf32> -> tensor<2x3xf32>
  %r33 = tandem.broadcast %v to [2, 3] along [1] : tensor<3xf32> -> tensor<2x3xf32>
  // CHECK: tandem.reshape %{{.*}} to [3, 1] : tensor<3xf32> -> tensor<3x1xf32>
  %r34 = tandem.reshape %v to [3, 1] : tensor<3xf32> -> tensor<3x1xf32>
  // CHECK: tandem.permute %{{.*}} by [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  %r35 = tandem.permute %m by [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  // CHECK: tandem.slice %{{.*}} from [0, 1] to [2, 3] step [1, 2] : tensor<2x3xf32> -> tensor<2x1xf32>
  %r36 = tandem.slice %m from [0, 1] to [2, 3] step [1, 2] : tensor<2x3xf32> -> tensor<2x1xf32>
  // CHECK: tandem.pad %{{.*}} low [1] high [2] interior [1] with 0.000000e+00 : f32 : tensor<3xf32> -> tensor<8xf32>
  %r37 = tandem.pad %v low [1] high [2] interior [1] with 0.000000e+00 : f32 : tensor<3xf32> -> tensor<8xf32>
  // CHECK: tandem.reduce_sum %{{.*}} over [0] : tensor<2x3xf32> -> tensor<3xf32>
  %r38 = tandem.reduce_sum %m over [0] : tensor<2x3xf32> -> tensor<3xf32>
  // CHECK: tandem.reduce_max %{{.*}} over [1] : tensor<2x3xf32> -> tensor<2xf32>
  %r39 = tandem.reduce_max %m over [1] : tensor<2x3xf32> -> tensor<2xf32>
  // CHECK: tandem.reduce_min %{{.*}} over [0, 1] : tensor<2x3xf32> -> tensor<f32>
  %r40 = tandem.reduce_min %m over [0, 1] : tensor<2x3xf32> -> tensor<f32>
  // CHECK: tandem.matmul %{{.*}}, %{{.*}} {transpose_rhs} : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x2xf32>
  %r41 = tandem.matmul %m, %m {transpose_rhs} : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x2xf32>
  // CHECK: tandem.conv2d %{{.*}}, %{{.*}} : tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32> -> tensor<2x6x6x6xf32>
  %r42 = tandem.conv2d %x, %w : tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32> -> tensor<2x6x6x6xf32>
  // CHECK: tandem.conv2d %{{.*}}, %{{.*}} strides [2, 2] padding [1, 1, 1, 1] dilation [2, 1] groups 2 : tensor<2x4x8x8xf32>, tensor<6x2x3x3xf32> -> tensor<2x6x3x4xf32>
  %r43 = tandem.conv2d %x, %g strides [2, 2] padding [1, 1, 1, 1] dilation [2, 1] groups 2 : tensor<2x4x8x8xf32>, tensor<6x2x3x3xf32> -> tensor<2x6x3x4xf32>
  // CHECK: tandem.conv2d_input_grad %{{.*}}, %{{.*}} to [2, 4, 8, 8] : tensor<2x6x6x6xf32>, tensor<6x4x3x3xf32> -> tensor<2x4x8x8xf32>
  %r44 = tandem.conv2d_input_grad %y, %w to [2, 4, 8, 8] : tensor<2x6x6x6xf32>, tensor<6x4x3x3xf32> -> tensor<2x4x8x8xf32>
  // CHECK: tandem.conv2d_filter_grad %{{.*}}, %{{.*}} to [6, 4, 3, 3] : tensor<2x4x8x8xf32>, tensor<2x6x6x6xf32> -> tensor<6x4x3x3xf32>
  %r45 = tandem.conv2d_filter_grad %x, %y to [6, 4, 3, 3] : tensor<2x4x8x8xf32>, tensor<2x6x6x6xf32> -> tensor<6x4x3x3xf32>
  // CHECK: tandem.max_pool2d %{{.*}} kernel [2, 2] strides [2, 2] : tensor<2x4x8x8xf32> -> tensor<2x4x4x4xf32>, tensor<2x4x4x4xi32>
  %r46, %r47 = tandem.max_pool2d %x kernel [2, 2] strides [2, 2] : tensor<2x4x8x8xf32> -> tensor<2x4x4x4xf32>, tensor<2x4x4x4xi32>
  // CHECK: tandem.max_pool2d_grad %{{.*}}, %{{.*}} to [2, 4, 8, 8] : tensor<2x4x4x4xf32>, tensor<2x4x4x4xi32> -> tensor<2x4x8x8xf32>
  %r48 = tandem.max_pool2d_grad %p, %q to [2, 4, 8, 8] : tensor<2x4x4x4xf32>, tensor<2x4x4x4xi32> -> tensor<2x4x8x8xf32>
  // CHECK: tandem.max_pool2d_take %{{.*}}, %{{.*}} : tensor<2x4x8x8xf32>, tensor<2x4x4x4xi32> -> tensor<2x4x4x4xf32>
  %r49 = tandem.max_pool2d_take %x, %q : tensor<2x4x8x8xf32>, tensor<2x4x4x4xi32> -> tensor<2x4x4x4xf32>
  // CHECK: tandem.avg_pool2d %{{.*}} kernel [2, 2] strides [2, 2] {count_include_pad = false} : tensor<2x4x8x8xf32> -> tensor<2x4x4x4xf32>
  %r50 = tandem.avg_pool2d %x kernel [2, 2] strides [2, 2] {count_include_pad = false} : tensor<2x4x8x8xf32> -> tensor<2x4x4x4xf32>
  // CHECK: tandem.avg_pool2d_grad %{{.*}} to [2, 4, 8, 8] kernel [2, 2] strides [2, 2] : tensor<2x4x4x4xf32> -> tensor<2x4x8x8xf32>
  %r51 = tandem.avg_pool2d_grad %p to [2, 4, 8, 8] kernel [2, 2] strides [2, 2] : tensor<2x4x4x4xf32> -> tensor<2x4x8x8xf32>
  // CHECK: tandem.take %{{.*}}, %{{.*}} : tensor<2x3xf32>, tensor<3xi32> -> tensor<3x3xf32>
  %r52 = tandem.take %m, %n : tensor<2x3xf32>, tensor<3xi32> -> tensor<3x3xf32>
  // CHECK: tandem.take_grad %{{.*}}, %{{.*}} to [2, 3] : tensor<3x3xf32>, tensor<3xi32> -> tensor<2x3xf32>
  %r53 = tandem.take_grad %s, %n to [2, 3] : tensor<3x3xf32>, tensor<3xi32> -> tensor<2x3xf32>
  // CHECK: tandem.expm1 %{{.*}} : tensor<3xf32>
  %p0 = tandem.expm1 %v : tensor<3xf32>
  // CHECK: tandem.tan %{{.*}} : tensor<3xf32>
  %p1 = tandem.tan %v : tensor<3xf32>
  // CHECK: tandem.asin %{{.*}} : tensor<3xf32>
  %p2 = tandem.asin %v : tensor<3xf32>
  // CHECK: tandem.acos %{{.*}} : tensor<3xf32>
  %p3 = tandem.acos %v : tensor<3xf32>
  // CHECK: tandem.atan %{{.*}} : tensor<3xf32>
  %p4 = tandem.atan %v : tensor<3xf32>
  // CHECK: tandem.sinh %{{.*}} : tensor<3xf32>
  %p5 = tandem.sinh %v : tensor<3xf32>
  // CHECK: tandem.cosh %{{.*}} : tensor<3xf32>
  %p6 = tandem.cosh %v : tensor<3xf32>
  // CHECK: tandem.trunc %{{.*}} : tensor<3xf32>
  %p7 = tandem.trunc %v : tensor<3xf32>
  // CHECK: tandem.atan2 %{{.*}}, %{{.*}} : tensor<3xf32>
  %p8 = tandem.atan2 %v, %v : tensor<3xf32>
  // CHECK: tandem.rem %{{.*}}, %{{.*}} : tensor<3xf32>
  %p9 = tandem.rem %v, %v : tensor<3xf32>
  // CHECK: tandem.div %{{.*}}, %{{.*}} : tensor<3xi32>
  %p10 = tandem.div %n, %n : tensor<3xi32>
  // CHECK: tandem.rem %{{.*}}, %{{.*}} : tensor<3xi32>
  %p11 = tandem.rem %n, %n : tensor<3xi32>
  // CHECK: tandem.pow %{{.*}}, %{{.*}} : tensor<3xi32>
  %p12 = tandem.pow %n, %n : tensor<3xi32>
  // CHECK: tandem.idiv %{{.*}}, %{{.*}} : tensor<3xi32>
  %p13 = tandem.idiv %n, %n : tensor<3xi32>
  // CHECK: tandem.shift_left %{{.*}}, %{{.*}} : tensor<3xi32>
  %p14 = tandem.shift_left %n, %n : tensor<3xi32>
  // CHECK: tandem.shift_right %{{.*}}, %{{.*}} : tensor<3xi32>
  %p15 = tandem.shift_right %n, %n : tensor<3xi32>
  // CHECK: tandem.bit_and %{{.*}}, %{{.*}} : tensor<3xi32>
  %p16 = tandem.bit_and %n, %n : tensor<3xi32>
  // CHECK: tandem.bit_or %{{.*}}, %{{.*}} : tensor<3xi32>
  %p17 = tandem.bit_or %n, %n : tensor<3xi32>
  // CHECK: tandem.bit_xor %{{.*}}, %{{.*}} : tensor<3xi32>
  %p18 = tandem.bit_xor %n, %n : tensor<3xi32>
  // CHECK: tandem.bit_not %{{.*}} : tensor<3xi1>
  %p19 = tandem.bit_not %t : tensor<3xi1>
  // CHECK: tandem.reverse %{{.*}} along [0, 1] : tensor<2x3xf32> -> tensor<2x3xf32>
  %p20 = tandem.reverse %m along [0, 1] : tensor<2x3xf32> -> tensor<2x3xf32>
  // CHECK: tandem.reduce_prod %{{.*}} over [1] : tensor<2x3xf32> -> tensor<2xf32>
  %p21 = tandem.reduce_prod %m over [1] : tensor<2x3xf32> -> tensor<2xf32>
  // CHECK: tandem.scatter max %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x3xf32>, tensor<3xi32>, tensor<3x3xf32> -> tensor<2x3xf32>
  %p22 = tandem.scatter max %m, %n, %s : tensor<2x3xf32>, tensor<3xi32>, tensor<3x3xf32> -> tensor<2x3xf32>
  // CHECK: tandem.scatter set %{{.*}}, %{{.*}}, %{{.*}} : tensor<3xi1>, tensor<3xi32>, tensor<3xi1> -> tensor<3xi1>
  %p23 = tandem.scatter set %t, %n, %t : tensor<3xi1>, tensor<3xi32>, tensor<3xi1> -> tensor<3xi1>
  // CHECK: tandem.cumsum %{{.*}} dim 1 : tensor<2x3xf32> -> tensor<2x3xf32>
  %p24 = tandem.cumsum %m dim 1 : tensor<2x3xf32> -> tensor<2x3xf32>
  // CHECK: tandem.cumsum %{{.*}} dim 0 exclusive reverse : tensor<2x3xf32> -> tensor<2x3xf32>
  %p25 = tandem.cumsum %m dim 0 exclusive reverse : tensor<2x3xf32> -> tensor<2x3xf32>
  // CHECK: tandem.sort %{{.*}} dim 1 descending : tensor<2x3xf32> -> tensor<2x3xf32>, tensor<2x3xi64>
  %p26:2 = tandem.sort %m dim 1 descending : tensor<2x3xf32> -> tensor<2x3xf32>, tensor<2x3xi64>
  // CHECK: tandem.gelu %{{.*}} {approximate = "tanh"} : tensor<3xf32>
  %r54 = tandem.gelu %v {approximate = "tanh"} : tensor<3xf32>
  // CHECK: tandem.silu %{{.*}} : tensor<3xf32>
  %r55 = tandem.silu %v : tensor<3xf32>
  // CHECK: tandem.softmax %{{.*}} dim 1 : tensor<2x3xf32>
  %r56 = tandem.softmax %m dim 1 : tensor<2x3xf32>
  // CHECK: tandem.log_softmax %{{.*}} dim 0 : tensor<2x3xf32>
  %r57 = tandem.log_softmax %m dim 0 : tensor<2x3xf32>
  // CHECK: tandem.layer_norm %{{.*}}, %{{.*}}, %{{.*}} axis 1 {epsilon = 1.000000e-03 : f64} : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32> -> tensor<2x3xf32>
  %r58 = tandem.layer_norm %m, %v, %v axis 1 {epsilon = 1.000000e-03 : f64} : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32> -> tensor<2x3xf32>
  // CHECK: tandem.batch_norm %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {training} : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  %r59, %r60, %r61 = tandem.batch_norm %m, %v, %v, %v, %v {training} : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  // CHECK: tandem.cross_entropy %{{.*}}, %{{.*}} {ignore_index = -100 : i64} : tensor<3x3xf32>, tensor<3xi32> -> tensor<f32>
  %r62 = tandem.cross_entropy %s, %n {ignore_index = -100 : i64} : tensor<3x3xf32>, tensor<3xi32> -> tensor<f32>
  // CHECK: tandem.mse_loss %{{.*}}, %{{.*}} {reduction = "sum"} : tensor<3xf32>, tensor<3xf32> -> tensor<f32>
  %r63 = tandem.mse_loss %v, %v {reduction = "sum"} : tensor<3xf32>, tensor<3xf32> -> tensor<f32>
  // CHECK: tandem.linear %{{.*}}, %{{.*}} : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<2xf32>
  %r64 = tandem.linear %v, %m : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<2xf32>
  // CHECK: tandem.linear %{{.*}}, %{{.*}}, %{{.*}} : (tensor<3x3xf32>, tensor<3x3xf32>, tensor<3xf32>) -> tensor<3x3xf32>
  %r65 = tandem.linear %s, %s, %v : (tensor<3x3xf32>, tensor<3x3xf32>, tensor<3xf32>) -> tensor<3x3xf32>
  // CHECK: tandem.attention %{{.*}}, %{{.*}}, %{{.*}} {causal, scale = 5.000000e-01 : f64} : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  %r66 = tandem.attention %m, %m, %m {causal, scale = 5.000000e-01 : f64} : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  // CHECK: tandem.attention_forward %{{.*}}, %{{.*}}, %{{.*}} {causal, scale = 5.000000e-01 : f64} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>)
  %a0, %a1 = tandem.attention_forward %m, %m, %m {causal, scale = 0.5 : f64} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>)
  // CHECK: tandem.attention_query_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {scale = 5.000000e-01 : f64} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  %a2 = tandem.attention_query_grad %m, %m, %m, %a0, %a1, %a1 {scale = 0.5 : f64} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  // CHECK: tandem.attention_key_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {causal, scale = 5.000000e-01 : f64} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  %a3, %a4 = tandem.attention_key_grad %m, %m, %m, %a0, %a1, %a1 {causal, scale = 0.5 : f64} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  // CHECK: tandem.reduce_mean %{{.*}} over [0, 1] : tensor<2x3xf32> -> tensor<f32>
  %r67 = tandem.reduce_mean %m over [0, 1] : tensor<2x3xf32> -> tensor<f32>
  // CHECK: tandem.argmax %{{.*}} dim 1 : tensor<2x3xf32> -> tensor<2xi64>
  %r68 = tandem.argmax %m dim 1 : tensor<2x3xf32> -> tensor<2xi64>
  // CHECK: tandem.concat %{{.*}}, %{{.*}} dim 0 : tensor<2x3xf32>, tensor<3x3xf32> -> tensor<5x3xf32>
  %r69 = tandem.concat %m, %s dim 0 : tensor<2x3xf32>, tensor<3x3xf32> -> tensor<5x3xf32>
  // CHECK: tandem.sgd %{{.*}}, %{{.*}}, %{{.*}} {weight_decay = 1.000000e-01 : f64} : (tensor<3xf32>, tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %r70 = tandem.sgd %v, %v, %z {weight_decay = 1.000000e-01 : f64} : (tensor<3xf32>, tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  // CHECK: tandem.momentum %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {nesterov} : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>)
  %r71, %r72 = tandem.momentum %v, %v, %v, %z {nesterov} : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>)
  // CHECK: tandem.adam %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  %r73, %r74, %r75 = tandem.adam %v, %v, %v, %v, %z, %z : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  // CHECK: tandem.adamw %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {beta1 = 8.000000e-01 : f64} : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  %r76, %r77, %r78 = tandem.adamw %v, %v, %v, %v, %z, %z {beta1 = 8.000000e-01 : f64} : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  // CHECK: tandem.make_ref %{{.*}} : tensor<3xf32>
  %r79 = tandem.make_ref %v : tensor<3xf32>
  %d = tandem.constant dense<[7, 0]> : tensor<2xi64>
  // CHECK: tandem.philox %{{.*}}, %{{.*}}, %{{.*}} draw %{{.*}} : tensor<2xf32>
  %d0 = tandem.philox %d, %d, %d draw %d : tensor<2xf32>
  // CHECK: tandem.random_bits %{{.*}} draw 0 : tensor<2x3xi32>
  %d1 = tandem.random_bits %d draw 0 : tensor<2x3xi32>
  // CHECK: tandem.random_uniform %{{.*}} draw 16777215 : tensor<f64>
  %d2 = tandem.random_uniform %d draw 16777215 : tensor<f64>
  // CHECK: tandem.random_normal %{{.*}} draw 1 : tensor<3xbf16>
  %d3 = tandem.random_normal %d draw 1 : tensor<3xbf16>
  // CHECK: tandem.bernoulli %{{.*}} draw 2 p 2.500000e-01 : tensor<3xi1>
  %d4 = tandem.bernoulli %d draw 2 p 0.25 : tensor<3xi1>
  // CHECK: tandem.dropout %{{.*}}, %{{.*}} draw 4 p 1.000000e-01 {training} : tensor<3xf32>
  %d5 = tandem.dropout %v, %d draw 4 p 0.1 {training} : tensor<3xf32>
  // CHECK: tandem.read %{{.*}} : !tandem.ref<3xf32>
  %r80 = tandem.read %r : !tandem.ref<3xf32>
  // CHECK: tandem.write %{{.*}} into %{{.*}} : tensor<3xf32>, !tandem.ref<3xf32>
  tandem.write %v into %r : tensor<3xf32>, !tandem.ref<3xf32>
  // CHECK: tandem.slice %{{.*}} from [1] to [3] step [1] : !tandem.ref<3xf32> -> !tandem.ref<2xf32>
  %r81 = tandem.slice %r from [1] to [3] step [1] : !tandem.ref<3xf32> -> !tandem.ref<2xf32>
  return
}

// CHECK-LABEL: func.func @kernel
func.func @kernel(%a: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: tandem.kernel "add"(%{{.*}}) {
  // CHECK: ^bb0(%{{.*}}: tensor<4xf32>):
  // CHECK: tandem.yield %{{.*}} : tensor<4xf32>
  // CHECK: } {buffers = [#tandem.buffer<arena 64>]} : (tensor<4xf32>) -> tensor<4xf32>
  %y = tandem.kernel "add" (%a) {
    ^bb0(%x: tensor<4xf32>):
      %s = tandem.add %x, %x : tensor<4xf32>
      tandem.yield %s : tensor<4xf32>
  } {buffers = [#tandem.buffer<arena 64>]} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: tandem.launch @cpu::@add(%{{.*}}) {buffers = [#tandem.buffer<result 0>], grain = 1 : i64, work = 4 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %z = tandem.launch @cpu::@add(%y) {buffers = [#tandem.buffer<result 0>], work = 4, grain = 1} : (tensor<4xf32>) -> tensor<4xf32>
  return %z : tensor<4xf32>
}

// CHECK-LABEL: func.func @types
// CHECK-SAME: tensor<2xf64>, %{{.*}}: tensor<2xf16>, %{{.*}}: tensor<2xbf16>, %{{.*}}: tensor<2xi64>, %{{.*}}: tensor<2xi16>, %{{.*}}: tensor<2xi8>, %{{.*}}: !tandem.ref<f64>, %{{.*}}: !tandem.ref<2x3xi1>
func.func @types(%0: tensor<2xf64>, %1: tensor<2xf16>, %2: tensor<2xbf16>, %3: tensor<2xi64>, %4: tensor<2xi16>, %5: tensor<2xi8>,
                 %6: !tandem.ref<f64>, %7: !tandem.ref<2x3xi1>) {
  return
}

// CHECK-LABEL: func.func @unsigned_and_narrow
// CHECK-SAME: tensor<2xui8>, %{{.*}}: tensor<2xui16>, %{{.*}}: tensor<2xui32>, %{{.*}}: tensor<2xui64>, %{{.*}}: tensor<2xf8E4M3FN>, %{{.*}}: tensor<2xf8E5M2>, %{{.*}}: !tandem.ref<ui8>
func.func @unsigned_and_narrow(%0: tensor<2xui8>, %1: tensor<2xui16>, %2: tensor<2xui32>, %3: tensor<2xui64>,
                               %4: tensor<2xf8E4M3FN>, %5: tensor<2xf8E5M2>, %6: !tandem.ref<ui8>) {
  // CHECK: tandem.constant dense<[255, 0]> : tensor<2xui8>
  %c = tandem.constant dense<[255, 0]> : tensor<2xui8>
  // CHECK: tandem.constant dense<18446744073709551615> : tensor<2xui64>
  %d = tandem.constant dense<18446744073709551615> : tensor<2xui64>
  // CHECK: tandem.add %{{.*}}, %{{.*}} : tensor<2xui8>
  %e = tandem.add %0, %c : tensor<2xui8>
  // CHECK: tandem.cast %{{.*}} : tensor<2xf8E5M2> to tensor<2xf32>
  %f = tandem.cast %5 : tensor<2xf8E5M2> to tensor<2xf32>
  return
}
