; RUN: tandem-llvm-opt 'function(infer-alignment,tandem-emit-non-temporal-stores)' %s | FileCheck %s
; What LLVM has written out behind the vectors of a loop has the alignment of its
; elements. A kernel whose lines were non-temporal in their first half alone took
; 25 times as long.
target triple = "x86_64-unknown-linux-gnu"

; CHECK-LABEL: define void @line
; CHECK-COUNT-2: store <8 x float> %x, {{.*}}!nontemporal
define void @line(ptr align 64 %p, i64 %row, <8 x float> %x) {
  %at = mul i64 %row, 1152
  %first = getelementptr i8, ptr %p, i64 %at
  %second = getelementptr inbounds nuw i8, ptr %first, i64 32
  store <8 x float> %x, ptr %first, align 64, !llvm.access.group !0
  store <8 x float> %x, ptr %second, align 4, !llvm.access.group !0
  ret void
}

!0 = distinct !{}
