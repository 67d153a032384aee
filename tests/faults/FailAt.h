/*===- FailAt.h - calls that fail, chosen by the program itself ------------===
 *
 * For a program that FailAt.c is linked into, instead of preloaded.
 *
 *===----------------------------------------------------------------------===*/
#ifndef TANDEM_TESTS_FAULTS_FAILAT_H
#define TANDEM_TESTS_FAULTS_FAILAT_H

#include <stdint.h>

/* Counts from 1 again; the n-th call of `kind` fails, 0: none. */
enum fault_kind { fault_memory, fault_files, fault_threads, fault_kinds };
void fault_at(enum fault_kind kind, uint64_t n);
/* How many have failed since. */
uint64_t fault_failed(void);
/* Blocks of memory that are there. */
int64_t fault_blocks(void);

#endif
