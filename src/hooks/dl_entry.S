/*
 * dlsym(handle, name) and dlvsym(handle, name, version): ask dl_route_* in C, then either return what it found or jump to the
 * real function with registers and return address as they came. dlopen(file, mode): jump to the real function with the mode
 * that dl_route_dlopen gives.
 */
#if defined(__x86_64__)

#include <cet.h>
#ifndef _CET_ENDBR
#define _CET_ENDBR
#endif

	.macro	ENTRY symbol, route
	.globl	\symbol
	.type	\symbol, @function
	.p2align 4
\symbol:
	.cfi_startproc
	_CET_ENDBR
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	movq	%rdx, %rcx		/* version, or nothing */
	movq	24(%rsp), %rdx		/* return address */
	call	\route
	movq	%rax, %r11
	movq	%rdx, %rax
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	testq	%r11, %r11
	jz	1f
	jmp	*%r11
1:	ret
	.cfi_endproc
	.size	\symbol, . - \symbol
	.endm

	.macro	ENTRY_MODE symbol, route
	.globl	\symbol
	.type	\symbol, @function
	.p2align 4
\symbol:
	.cfi_startproc
	_CET_ENDBR
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	movl	%esi, %edi
	call	\route
	movq	%rdx, %rsi
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	testq	%rax, %rax
	jz	1f
	jmp	*%rax
1:	ret
	.cfi_endproc
	.size	\symbol, . - \symbol
	.endm

#elif defined(__aarch64__)

	.macro	ENTRY symbol, route
	.globl	\symbol
	.type	\symbol, %function
	.p2align 4
\symbol:
	.cfi_startproc
	hint	#34			/* bti c */
	stp	x29, x30, [sp, #-48]!
	.cfi_def_cfa_offset 48
	.cfi_offset x29, -48
	.cfi_offset x30, -40
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	str	x2, [sp, #32]
	mov	x3, x2			/* version, or nothing */
	mov	x2, x30			/* return address */
	bl	\route
	mov	x16, x0
	mov	x17, x1
	ldp	x0, x1, [sp, #16]
	ldr	x2, [sp, #32]
	ldp	x29, x30, [sp], #48
	.cfi_def_cfa_offset 0
	.cfi_restore x29
	.cfi_restore x30
	cbz	x16, 1f
	br	x16
1:	mov	x0, x17
	ret
	.cfi_endproc
	.size	\symbol, . - \symbol
	.endm

	.macro	ENTRY_MODE symbol, route
	.globl	\symbol
	.type	\symbol, %function
	.p2align 4
\symbol:
	.cfi_startproc
	hint	#34			/* bti c */
	stp	x29, x30, [sp, #-32]!
	.cfi_def_cfa_offset 32
	.cfi_offset x29, -32
	.cfi_offset x30, -24
	mov	x29, sp
	str	x0, [sp, #16]
	mov	w0, w1
	bl	\route
	mov	x16, x0
	ldr	x0, [sp, #16]
	ldp	x29, x30, [sp], #32
	.cfi_def_cfa_offset 0
	.cfi_restore x29
	.cfi_restore x30
	cbz	x16, 1f
	br	x16
1:	mov	x0, xzr
	ret
	.cfi_endproc
	.size	\symbol, . - \symbol
	.endm

#else
#error "look-ups are written for x86-64 and aarch64"
#endif

	.text
	ENTRY	dlsym, dl_route_dlsym
	ENTRY	dlvsym, dl_route_dlvsym
	ENTRY_MODE dlopen, dl_route_dlopen

	.section .note.GNU-stack, "", %progbits
