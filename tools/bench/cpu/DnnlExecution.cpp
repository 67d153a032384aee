//===- DnnlExecution.cpp - contenders of oneDNN ---------------------------===//
#include "tools/bench/cpu/DnnlFunctions.h"

using namespace tandem;
using namespace tandem::bench;

/// A primitive and what it is executed with.
struct Dnnl::Execution {
  std::shared_ptr<void> primitive;
  std::vector<std::shared_ptr<void>> memories;
  std::vector<Tensor> tensors; ///< whose elements the memories are
  std::vector<DnnlExecutionArgument> arguments;
};

std::vector<Contender>
Dnnl::contenders(const std::string &suffix, const DnnlPrimitiveDesc &chosen,
                 const std::vector<DnnlOperand> &operands,
                 const std::vector<Tensor> &outputs) const {
  if (!chosen)
    return {};
  auto memory = [this](const void *desc, void *data) {
    void *made = nullptr;
    f->memoryCreate(&made, desc, engine, data);
    return std::shared_ptr<void>(made, f->memoryDestroy);
  };
  auto execution = [this](const DnnlPrimitiveDesc &pd) {
    void *made = nullptr;
    f->primitiveCreate(&made, pd.get());
    return Execution{{made, f->primitiveDestroy}, {}, {}, {}};
  };
  auto add = [](Execution &to, int argument, std::shared_ptr<void> memory) {
    to.arguments.push_back({argument, memory.get()});
    to.memories.push_back(std::move(memory));
  };

  Execution main = execution(chosen);
  std::vector<Execution> before, after; ///< reorders
  for (const DnnlOperand &operand : operands) {
    Tensor tensor = operand.tensor;
    main.tensors.push_back(tensor);
    auto given = memory(operand.desc.get(), tensor.mutableData());
    const void *wanted = operand.argument.query
                             ? f->query(chosen.get(), operand.argument.query, 0)
                             : operand.desc.get();
    if (f->equal(wanted, operand.desc.get())) {
      add(main, operand.argument.argument, given);
      continue;
    }
    std::shared_ptr<void> bytes(
        std::aligned_alloc(64, (f->sizeOf(wanted) + 63) / 64 * 64), std::free);
    auto own = memory(wanted, bytes.get());
    main.memories.push_back(bytes);
    add(main, operand.argument.argument, own);
    const void *from = operand.isResult ? wanted : operand.desc.get();
    const void *to = operand.isResult ? operand.desc.get() : wanted;
    void *pd = nullptr;
    int status = f->reorder(&pd, from, engine, to, engine, nullptr);
    auto reorderPd = owned(status, pd);
    if (!reorderPd)
      return {};
    Execution reorder = execution(reorderPd);
    add(reorder, kSrc.argument, operand.isResult ? own : given);
    add(reorder, kDst.argument, operand.isResult ? given : own);
    (operand.isResult ? after : before).push_back(std::move(reorder));
  }

  auto run = [f = f, stream = stream](const Execution &e) {
    f->execute(e.primitive.get(), stream, static_cast<int>(e.arguments.size()),
               e.arguments.data());
    f->streamWait(stream);
  };
  auto runAll = [run](const std::vector<Execution> &all) {
    for (const Execution &e : all)
      run(e);
  };
  Contender direct;
  direct.name = name + suffix;
  direct.outputs = outputs;
  direct.call = [=] {
    runAll(before);
    run(main);
    runAll(after);
  };
  if (before.empty() && after.empty())
    return {direct};
  Contender own;
  own.name = direct.name + "*";
  own.group = Contender::OwnLayout;
  own.outputs = outputs;
  own.call = [=] { run(main); };
  own.finish = [=] { runAll(after); };
  runAll(before);
  return {direct, own};
}
