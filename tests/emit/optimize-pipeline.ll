; RUN: tandem-llvm-opt 'tandem-optimize<O2>' %s | FileCheck %s
; LLVM's default pipeline with its own tuning, which has no vectors of values
; beside each other: `default<O2>` turned them on, and took long over kernels.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

; CHECK-LABEL: define void @beside
; CHECK-NOT: <4 x float>
; CHECK: }
define void @beside(ptr noalias %p, ptr noalias %q) {
  %a0 = load float, ptr %p, align 4
  %p1 = getelementptr float, ptr %p, i64 1
  %a1 = load float, ptr %p1, align 4
  %p2 = getelementptr float, ptr %p, i64 2
  %a2 = load float, ptr %p2, align 4
  %p3 = getelementptr float, ptr %p, i64 3
  %a3 = load float, ptr %p3, align 4
  %b0 = fadd float %a0, %a0
  %b1 = fadd float %a1, %a1
  %b2 = fadd float %a2, %a2
  %b3 = fadd float %a3, %a3
  store float %b0, ptr %q, align 4
  %q1 = getelementptr float, ptr %q, i64 1
  store float %b1, ptr %q1, align 4
  %q2 = getelementptr float, ptr %q, i64 2
  store float %b2, ptr %q2, align 4
  %q3 = getelementptr float, ptr %q, i64 3
  store float %b3, ptr %q3, align 4
  ret void
}
