; RUN: tandem-llvm-opt tandem-insert-prefetches %s | FileCheck %s
; Vector loads of a parameter with a distance prefetch, once a cache line.

; CHECK-LABEL: define <8 x float> @loads
; CHECK: %[[AHEAD:[0-9]+]] = getelementptr i8, ptr %p, i64 4096
; CHECK-NEXT: call void @llvm.prefetch.p0(ptr %[[AHEAD]], i32 0, i32 3, i32 1)
; CHECK-NEXT: %a = load <8 x float>, ptr %p
; CHECK-NOT: prefetch
; CHECK: %[[NEXT:[0-9]+]] = getelementptr i8, ptr %at64, i64 4096
; CHECK-NEXT: call void @llvm.prefetch.p0(ptr %[[NEXT]], i32 0, i32 3, i32 1)
; CHECK-NEXT: %c = load <8 x float>, ptr %at64
; CHECK-NOT: prefetch
; CHECK: ret
define <8 x float> @loads(ptr %q, ptr %p) "tandem-loads-ahead"="0,4096" {
  %a = load <8 x float>, ptr %p, align 32
  %at32 = getelementptr i8, ptr %p, i64 32
  %b = load <8 x float>, ptr %at32, align 32
  %at64 = getelementptr i8, ptr %p, i64 64
  %c = load <8 x float>, ptr %at64, align 32
  %d = load <8 x float>, ptr %q, align 32
  %s = load float, ptr %p, align 4
  %ab = fadd <8 x float> %a, %b
  %cd = fadd <8 x float> %c, %d
  %e = fadd <8 x float> %ab, %cd
  %f = insertelement <8 x float> %e, float %s, i32 0
  ret <8 x float> %f
}

; CHECK-LABEL: define <8 x float> @nothing
; CHECK-NOT: prefetch
; CHECK: }
define <8 x float> @nothing(ptr %p) {
  %a = load <8 x float>, ptr %p, align 32
  ret <8 x float> %a
}
