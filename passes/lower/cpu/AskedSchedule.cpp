//===- AskedSchedule.cpp - a kernel's schedule, said and not modelled -----===//
#include "passes/lower/cpu/AskedSchedule.h"
using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;

AskedSchedule AskedSchedule::of(KernelOp kernel) {
  AskedSchedule asked;
  if (ScheduleAttr said = kernel.getScheduleAttr()) {
    asked.rows = said.getRows();
    asked.vectors = said.getVectors();
    asked.block = said.getBlock();
    asked.columns = said.getColumns();
    asked.packs = said.getPacks();
    asked.ahead = said.getAhead();
    asked.method = said.getMethod();
  }
  return asked;
}

ScheduleAttr AskedSchedule::attribute(MLIRContext *context) const {
  bool isSaid = rows || vectors || block || columns || packs || ahead || method;
  if (!isSaid)
    return {};
  return ScheduleAttr::get(context, method, rows, vectors, block, columns,
                           packs, ahead);
}
