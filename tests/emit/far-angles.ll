; RUN: tandem-llvm-opt tandem-far-angles %s | FileCheck %s
; The sin of far angles, which a loop's vectors choose, is behind one branch for
; vectors beside each other. What has no mark is left as it is.
target triple = "x86_64-unknown-linux-gnu"

; CHECK-LABEL: define <4 x float> @beside
; CHECK: %[[EITHER:.+]] = or <4 x i1> %far0, %far1
; CHECK: %[[ANY:.+]] = call i1 @llvm.vector.reduce.or.v4i1(<4 x i1> %[[EITHER]])
; CHECK: %[[SAID:.+]] = freeze i1 %[[ANY]]
; CHECK: br i1 %[[SAID]], label %[[FAR:.+]], label %[[END:.+]], !prof
; CHECK: [[FAR]]:
; CHECK: call void @tandem.far_angles(ptr %{{.+}}, i64 4, i1 false)
; CHECK: call void @tandem.far_angles(ptr %{{.+}}, i64 4, i1 true)
; CHECK: [[END]]:
; CHECK: phi <4 x float> [ %near, {{.+}} ], [ %{{.+}}, %[[FAR]] ]
; CHECK: phi <4 x float> [ %near, {{.+}} ], [ %{{.+}}, %[[FAR]] ]
; CHECK: ret
define <4 x float> @beside(<4 x float> %x, <4 x float> %y, <4 x float> %near) {
  %absolute0 = call <4 x float> @llvm.fabs.v4f32(<4 x float> %x)
  %far0 = fcmp ogt <4 x float> %absolute0, splat (float 2.0e+05)
  %sin = call arcp <4 x float> @llvm.sin.v4f32(<4 x float> %x)
  %absolute1 = call <4 x float> @llvm.fabs.v4f32(<4 x float> %y)
  %far1 = fcmp ogt <4 x float> %absolute1, splat (float 2.0e+05)
  %cos = call arcp <4 x float> @llvm.cos.v4f32(<4 x float> %y)
  %a = select <4 x i1> %far0, <4 x float> %sin, <4 x float> %near
  %b = select <4 x i1> %far1, <4 x float> %cos, <4 x float> %near
  %sum = fadd <4 x float> %a, %b
  ret <4 x float> %sum
}

; A branch each where the second angle is made of the first.
; CHECK-LABEL: define float @within
; CHECK: call void @tandem.far_angles(ptr %{{.+}}, i64 1, i1 false)
; CHECK: call void @tandem.far_angles(ptr %{{.+}}, i64 1, i1 false)
; CHECK: ret
define float @within(float %x, float %near) {
  %absolute0 = call float @llvm.fabs.f32(float %x)
  %far0 = fcmp ogt float %absolute0, 2.0e+05
  %sin0 = call arcp float @llvm.sin.f32(float %x)
  %y = select i1 %far0, float %sin0, float %near
  %absolute1 = call float @llvm.fabs.f32(float %y)
  %far1 = fcmp ogt float %absolute1, 2.0e+05
  %sin1 = call arcp float @llvm.sin.f32(float %y)
  %z = select i1 %far1, float %sin1, float %near
  ret float %z
}

; In another form than that of a choice it is of no use where nothing is far.
; CHECK-LABEL: define float @moved
; CHECK: call float @llvm.fabs.f32(float %x)
; CHECK: phi float [ 0.000000e+00, {{.+}} ]
; CHECK: call double @llvm.sin.f64
; CHECK: call float @llvm.sin.f32
; CHECK: ret
define float @moved(float %x, double %z, ptr %p) {
  %sin = call arcp float @llvm.sin.f32(float %x)
  %half = fmul float %sin, 5.0e-01
  %wide = call double @llvm.sin.f64(double %z)
  store double %wide, ptr %p
  %unmarked = call float @llvm.sin.f32(float %half)
  ret float %unmarked
}
