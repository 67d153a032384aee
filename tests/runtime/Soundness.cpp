//===- Soundness.cpp - what the executor relies on ------------------------===//
//
// Checked without the validator's code: bounds of buffers and of what libraries
// and bulk copies touch, and chains of views, of which the elements are
// followed one by one where there are few, and by their bounds where there are
// many.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/Mutants.h"

#include <algorithm>
#include <stdexcept>

namespace tandem::test {

using namespace artifact;

namespace {

void require(bool condition, const char *what = "a bound") {
  if (!condition)
    throw std::runtime_error(what);
}

/// True if a result of "prepare" is what `taken` stands for.
bool isPrepared(const Manifest &m, const Slot &taken) {
  for (const Program &p : m.programs)
    for (const Slot &given : p.results)
      if (p.name == "prepare" && given.role == Role::Prepared &&
          given.name == taken.name && given.dtype == taken.dtype &&
          given.shape == taken.shape)
        return true;
  return false;
}

/// What the executor relies on, checked without the validator's code.
void checkBounds(const Manifest &m, size_t constantsBytes) {
  for (const Program &p : m.programs) {
    for (const Slot &slot : p.arguments)
      require(slot.role != Role::Prepared || isPrepared(m, slot));
    for (const Buffer &b : p.buffers) {
      bool argument = b.place == Buffer::Place::Argument;
      bool result = b.place == Buffer::Place::Result;
      size_t limit = argument ? p.arguments.size() : p.results.size();
      if (argument || result) {
        require(b.index >= 0 && static_cast<size_t>(b.index) < limit);
        continue;
      }
      auto end = static_cast<__int128>(
          b.place == Buffer::Place::Arena  ? p.arenaBytes
          : b.place == Buffer::Place::Host ? p.hostBytes
                                           : int64_t(constantsBytes));
      require(b.offset >= 0 && b.bytes >= 0 && b.offset % 64 == 0 &&
              static_cast<__int128>(b.offset) + b.bytes <= end);
    }
    for (const Launch &l : p.launches) {
      if (l.isCopy())
        require(l.buffers.size() == 2 &&
                isOnHost(p, p.buffers[l.buffers[0]]) !=
                    isOnHost(p, p.buffers[l.buffers[1]]));
      else if (l.hasKernel())
        require(l.kernel >= 0 &&
                static_cast<size_t>(l.kernel) < m.kernels.size());
      require(l.work >= 0 && l.grain >= 1);
      for (int64_t b : l.buffers)
        require(b >= 0 && static_cast<size_t>(b) < p.buffers.size());
      for (int64_t w : l.writes)
        require(p.buffers[l.buffers[w]].place != Buffer::Place::Constant);
    }
  }
}

/// Bulk copies stay in their buffers.
void checkMaps(const Kernel &kernel, const Launch &launch, const Program &p) {
  for (const TensorMap &map : kernel.tensorMaps) {
    require(map.buffer >= 0 &&
            static_cast<size_t>(map.buffer) < launch.buffers.size());
    require(map.offset >= 0 && map.offset % 16 == 0 && map.elementBytes() > 0);
    require(!map.sizes.empty() && map.sizes.size() <= 5 &&
            map.strides.size() + 1 == map.sizes.size() &&
            map.box.size() == map.sizes.size());
    __int128 end = map.offset + map.elementBytes();
    for (size_t d = 0; d < map.sizes.size(); ++d) {
      require(map.sizes[d] >= 1 && map.sizes[d] < int64_t(1) << 32 &&
              map.box[d] >= 1 && map.box[d] <= 256);
      int64_t stride = d ? map.strides[d - 1] : map.elementBytes();
      require(stride > 0 && (d == 0 || stride % 16 == 0));
      end += static_cast<__int128>(map.sizes[d] - 1) * stride;
    }
    const Buffer &buffer = p.buffers[launch.buffers[map.buffer]];
    int64_t bytes = buffer.bytes;
    if (buffer.place == Buffer::Place::Argument ||
        buffer.place == Buffer::Place::Result) {
      const Slot &slot = buffer.place == Buffer::Place::Argument
                             ? p.arguments[buffer.index]
                             : p.results[buffer.index];
      bytes = tensorBytes(slot.dtype, slot.shape).value_or(0);
    }
    require(end <= bytes);
  }
}

/// Bytes of a buffer.
int64_t bytesOf(const Program &p, const Buffer &b) {
  if (b.place == Buffer::Place::Argument)
    return *tensorBytes(p.arguments[b.index].dtype, p.arguments[b.index].shape);
  if (b.place == Buffer::Place::Result)
    return *tensorBytes(p.results[b.index].dtype, p.results[b.index].shape);
  return b.bytes;
}

/// The last elements that a library's product touches, and its workspace.
void checkLibrary(const Program &p, const Launch &l) {
  const LibraryCall &call = *l.library;
  if (call.workspace)
    require(p.buffers.at(*call.workspace).place == Buffer::Place::Arena);
  auto last = [&](size_t operand, __int128 element) {
    const Buffer &b = p.buffers[l.buffers.at(call.operands.at(operand))];
    require((element + 1) * byteSize(call.dtype) <= bytesOf(p, b));
  };
  if (!call.isMatmul())
    return;
  int64_t batch = call.sizes.at(0), m = call.sizes.at(1), n = call.sizes.at(2),
          k = call.sizes.at(3);
  auto corner = [&](size_t operand, int64_t rows, int64_t columns) {
    last(operand, __int128(batch - 1) * call.batchStrides.at(operand) +
                      __int128(rows - 1) * call.lds.at(operand) + columns - 1);
  };
  corner(0, call.transposes.at(0) ? k : m, call.transposes.at(0) ? m : k);
  corner(1, call.transposes.at(1) ? n : k, call.transposes.at(1) ? k : n);
  corner(2, m, n);
  if (call.operands.size() > 3)
    last(3, n - 1);
}

/// What a device is given.
void checkExtents(const Manifest &m) {
  if (m.target.kind != "cuda")
    return;
  auto product = [](const std::vector<int64_t> &sizes) {
    require(sizes.size() == 3);
    __int128 all = 1;
    for (int64_t size : sizes) {
      require(size >= 1 && size <= INT32_MAX);
      all *= size;
    }
    return all;
  };
  for (const Kernel &k : m.kernels)
    require(product(k.block) <= 1024 && k.sharedBytes >= 0 &&
            k.sharedBytes <= 227 * 1024);
  for (const Program &p : m.programs)
    for (const Launch &l : p.launches) {
      if (!l.hasKernel())
        continue;
      require(product(l.grid) == l.work);
      checkMaps(m.kernels[l.kernel], l, p);
      if (l.library)
        checkLibrary(p, l);
    }
}

/// The places of the elements of a row-major tensor, in order, and its shape.
struct Places {
  std::vector<int64_t> shape, at;
};

constexpr int64_t mostPlaces = 4096;

/// The number of elements, or -1 if they are more than can be followed.
int64_t few(const std::vector<int64_t> &shape) {
  __int128 count = 1;
  for (int64_t size : shape)
    if (size == 0)
      return 0;
  for (int64_t size : shape)
    if ((count *= size) > mostPlaces)
      return -1;
  return static_cast<int64_t>(count);
}

/// Follows the definition of a view; false if there are too many elements.
bool follow(const View &view, Places &places) {
  std::vector<int64_t> shape = view.shape, index;
  size_t rank = places.shape.size();
  if (view.op == View::Op::Permute)
    for (int64_t dim : view.dims)
      shape.push_back(places.shape.at(static_cast<size_t>(dim)));
  if (view.op == View::Op::Slice)
    for (size_t d = 0; d < rank; ++d)
      shape.push_back(
          (view.limits.at(d) - view.starts.at(d) + view.strides.at(d) - 1) /
          view.strides.at(d));
  if (view.op == View::Op::Bitcast || view.op == View::Op::Detach)
    return true;
  int64_t count = few(shape);
  if (count < 0)
    return false;
  std::vector<int64_t> made;
  index.resize(shape.size());
  for (int64_t n = 0; n < count; ++n) {
    for (size_t d = shape.size(), rest = static_cast<size_t>(n); d-- > 0;
         rest /= static_cast<size_t>(shape[d]))
      index[d] = static_cast<int64_t>(rest % static_cast<size_t>(shape[d]));
    int64_t from = n; // the operand's element in row-major order
    if (view.op == View::Op::AsStrided) {
      from = view.offset;
      for (size_t d = 0; d < shape.size(); ++d)
        from += index[d] * view.strides[d];
    } else if (view.op != View::Op::Reshape) {
      std::vector<int64_t> of(rank);
      for (size_t d = 0; d < rank; ++d)
        if (view.op == View::Op::Slice)
          of[d] = view.starts[d] + index[d] * view.strides[d];
        else if (view.op == View::Op::Broadcast)
          of[d] = places.shape[d] == 1
                      ? 0
                      : index.at(static_cast<size_t>(view.dims.at(d)));
        else
          of.at(static_cast<size_t>(view.dims[d])) = index[d];
      from = 0;
      for (size_t d = 0; d < rank; ++d)
        from = from * places.shape[d] + of[d];
    }
    made.push_back(places.at.at(static_cast<size_t>(from)));
  }
  places = {shape, made};
  return true;
}

/// The views of a dense tensor stay in it, and are what they are defined to be.
void checkViews(const TensorType &base, const std::vector<View> &views) {
  Layout layout = Layout::of(base.dtype, base.shape);
  require(applyViews(views, layout).ok(), "a chain of views that fits");
  __int128 count = 1, low = layout.offset, high = layout.offset, elements = 1;
  for (int64_t size : base.shape)
    count *= size;
  for (int d = 0; d < layout.rank; ++d) {
    elements *= layout.sizes[d];
    __int128 reach = __int128(layout.sizes[d] - 1) * layout.steps[d];
    (reach < 0 ? low : high) += reach;
  }
  require(elements <= maxBytes, "a view of a size that a tensor has");
  if (elements == 0)
    return;
  require(low >= 0 && high < count, "a view within what it is of");
  Places places{base.shape, {}};
  int64_t all = few(base.shape);
  if (all < 0)
    return;
  for (int64_t i = 0; i < all; ++i)
    places.at.push_back(i);
  for (const View &view : views)
    if (!follow(view, places))
      return;
  require(std::equal(places.shape.begin(), places.shape.end(),
                     layout.shape().begin(), layout.shape().end()),
          "the shape that the views define");
  for (size_t n = 0; n < places.at.size(); ++n) {
    int64_t at = layout.offset;
    size_t rest = n;
    for (int d = layout.rank; d-- > 0;
         rest /= static_cast<size_t>(layout.sizes[d]))
      at += static_cast<int64_t>(rest % static_cast<size_t>(layout.sizes[d])) *
            layout.steps[d];
    require(at == places.at[n], "the elements that the views define");
  }
}

const Slot &named(const std::vector<Slot> &slots, const std::string &name) {
  auto found = std::find_if(slots.begin(), slots.end(), [&](const Slot &slot) {
    return slot.name == name && (slot.role <= Role::Output);
  });
  require(found != slots.end(), "a base of an alias");
  return *found;
}

void checkAlias(const Manifest &m, const Program &p, const Alias &alias) {
  if (!alias.output.empty()) {
    const Slot &base = named(p.results, alias.output);
    return checkViews({base.dtype, base.shape}, alias.views);
  }
  if (alias.storage)
    return checkViews(*alias.storage, alias.views);
  const Value *base = m.findValue(alias.of);
  require(base, "a base of an alias");
  checkViews({base->dtype, base->shape}, alias.views);
}

void checkAliases(const Manifest &m) {
  for (const Program &p : m.programs) {
    for (const auto *slots : {&p.arguments, &p.results})
      for (const Slot &slot : *slots) {
        require(tensorBytes(slot.dtype, slot.shape).has_value(), "a type");
        for (const auto *alias : {&slot.alias, &slot.metadata, &slot.storage})
          if (*alias)
            checkAlias(m, p, **alias);
        if (slot.role != Role::Saved || !slot.alias)
          continue;
        // Either may bring the memory that serves both.
        const Slot &home = named(p.results, slot.alias->output);
        require(tensorBytes(slot.dtype, slot.shape) ==
                    tensorBytes(home.dtype, home.shape),
                "a saved value as large as its output");
      }
    for (const OutputAlias &output : p.aliases)
      checkAlias(m, p, output.alias);
  }
}

} // namespace

std::string unsoundness(const Manifest &manifest, size_t constantsBytes) {
  try {
    checkBounds(manifest, constantsBytes);
    checkExtents(manifest);
    checkAliases(manifest);
    return "";
  } catch (const std::exception &error) {
    return std::string("expected ") + error.what();
  }
}

} // namespace tandem::test
