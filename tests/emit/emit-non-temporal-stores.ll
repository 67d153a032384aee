; RUN: tandem-llvm-opt tandem-emit-non-temporal-stores %s | FileCheck %s
; A marked store of a whole aligned vector is non-temporal, and a fence ends the
; function.
target triple = "x86_64-unknown-linux-gnu"

; CHECK-LABEL: define void @vectors
; CHECK: store <8 x float> %x, ptr %p, align 32, {{.*}}!nontemporal ![[ONE:[0-9]+]]
; CHECK: store <8 x float> %x, ptr %q, align 32, {{.*}}!nontemporal ![[ONE]]
; CHECK: call void @llvm.x86.sse.sfence()
; CHECK-NEXT: ret void
define void @vectors(ptr %p, ptr %q, <8 x float> %x) {
  store <8 x float> %x, ptr %p, align 32, !llvm.access.group !0
  store <8 x float> %x, ptr %q, align 32, !llvm.access.group !0
  ret void
}

; An unaligned vector, one of 16 bytes and a scalar are not, nor are halves of
; lines beside them, whose other halves they may be. Whole lines are.
; CHECK-LABEL: define void @halves
; CHECK-NOT: !nontemporal
; CHECK: store <16 x float> %z, ptr %r, align 64, {{.*}}!nontemporal ![[ONE]]
; CHECK-NOT: !nontemporal
; CHECK: call void @llvm.x86.sse.sfence()
define void @halves(ptr %p, ptr %q, ptr %r, <8 x float> %x, <4 x float> %y, <16 x float> %z) {
  store <8 x float> %x, ptr %p, align 32, !llvm.access.group !0
  store <8 x float> %x, ptr %q, align 4, !llvm.access.group !0
  store <4 x float> %y, ptr %q, align 16, !llvm.access.group !0
  store <16 x float> %z, ptr %r, align 64, !llvm.access.group !0
  ret void
}

; CHECK-LABEL: define void @others
; CHECK-NOT: sfence
; CHECK: }
define void @others(ptr %p, ptr %q, <8 x float> %x, float %y) {
  store <8 x float> %x, ptr %p, align 32
  store float %y, ptr %q, align 4, !llvm.access.group !0
  ret void
}

; CHECK: ![[ONE]] = !{i32 1}
!0 = distinct !{}
