//===- SavedTensors.cpp - dictionaries of tensors that torch.save wrote ---===//
#include "compiler/import/torch/SavedTensors.h"
#include "compiler/import/torch/Zip.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"

#include <map>

using namespace tandem;
using namespace tandem::torch;
using llvm::StringRef;

namespace {

/// What stands on the pickle's stack.
struct Item {
  enum class Form {
    None,
    Mark,
    Int, ///< also true and false
    Text,
    Name,    ///< text: "torch FloatStorage", of something that is called
    Tuple,   ///< items
    Dict,    ///< items: keys and values in turn
    Storage, ///< text: its file's name; kind
    Tensor,  ///< text: its storage's; items: offset, sizes, strides; kind
  };
  Form form = Form::None;
  int64_t number = 0;
  int depth = 1; ///< of tuples in tuples
  std::string text;
  std::vector<std::shared_ptr<Item>> items;
  ElementKind kind = ElementKind::Undefined;
  std::string type; ///< "FloatStorage"
  bool requiresGrad = false;
};
using ItemPtr = std::shared_ptr<Item>;
using Form = Item::Form;

/// Instructions, and what is remembered.
constexpr size_t kMost = size_t(1) << 22;
constexpr int kMostDepth = 16;

class PickleReader {
public:
  explicit PickleReader(StringRef bytes) : rest(bytes) {}

  /// What the pickle says; null with `problem` if it is none that is known.
  ItemPtr read();
  Status problem;

private:
  ItemPtr wrong(const std::string &why) {
    if (problem)
      problem = Status::failed("the pickle of torch.save: " + why);
    return nullptr;
  }
  ItemPtr unknown(const std::string &what) {
    if (problem)
      problem = Status::unsupported(
          "unsupported: its pickle says more than where tensors are (" +
          artifact::printable(what) +
          "), and pickles are not run: export the model again with PyTorch "
          "2.8 or later");
    return nullptr;
  }
  bool step();
  bool push(Form form, int64_t number = 0, std::string text = "");
  ItemPtr pop();
  /// What stands above the last mark, which goes too.
  bool popToMark(std::vector<ItemPtr> &items);
  bool tuple(std::vector<ItemPtr> items);
  bool tuple(size_t count);
  bool call();
  bool storage();
  bool setItems(std::vector<ItemPtr> items);
  uint64_t bytes(size_t count);
  StringRef text(size_t size);
  StringRef line();

  StringRef rest;
  std::vector<ItemPtr> stack;
  std::map<uint64_t, ItemPtr> memo;
  bool isDone = false;
};

} // namespace

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

uint64_t PickleReader::bytes(size_t count) {
  uint64_t value = 0;
  StringRef taken = text(count);
  for (size_t i = 0; i < taken.size(); ++i)
    value |= uint64_t(static_cast<unsigned char>(taken[i])) << (8 * i);
  return value;
}

StringRef PickleReader::text(size_t size) {
  if (size > rest.size()) {
    (void)wrong("it ends too early");
    return {};
  }
  StringRef taken = rest.take_front(size);
  rest = rest.drop_front(size);
  return taken;
}

StringRef PickleReader::line() {
  size_t end = rest.find('\n');
  if (end == StringRef::npos)
    return text(rest.size() + 1);
  StringRef taken = text(end);
  rest = rest.drop_front(1);
  return taken;
}

bool PickleReader::push(Form form, int64_t number, std::string text) {
  if (!problem)
    return false;
  auto item = std::make_shared<Item>();
  item->form = form;
  item->number = number;
  item->text = std::move(text);
  stack.push_back(std::move(item));
  return true;
}

ItemPtr PickleReader::pop() {
  if (stack.empty() || stack.back()->form == Form::Mark)
    return wrong("it takes what is not there");
  ItemPtr item = stack.back();
  stack.pop_back();
  return item;
}

bool PickleReader::popToMark(std::vector<ItemPtr> &items) {
  auto mark = llvm::find_if(llvm::reverse(stack), [](const ItemPtr &item) {
    return item->form == Form::Mark;
  });
  if (mark == stack.rend())
    return wrong("it takes what is not there"), false;
  items.assign(mark.base(), stack.end());
  stack.erase(std::prev(mark.base()), stack.end());
  return true;
}

bool PickleReader::tuple(size_t count) {
  std::vector<ItemPtr> items(count);
  for (size_t i = count; i-- > 0;)
    if (!(items[i] = pop()))
      return false;
  return tuple(std::move(items));
}

bool PickleReader::tuple(std::vector<ItemPtr> items) {
  if (!push(Form::Tuple))
    return false;
  Item &made = *stack.back();
  for (const ItemPtr &item : items)
    made.depth = std::max(made.depth, item->depth + 1);
  made.items = std::move(items);
  if (made.depth > kMostDepth)
    return unknown("tuples in tuples"), false;
  return true;
}

/// ('storage', type, file, device, elements)
bool PickleReader::storage() {
  ItemPtr id = pop();
  if (!id)
    return false;
  if (id->form != Form::Tuple || id->items.size() != 5 ||
      id->items[0]->text != "storage" || id->items[1]->form != Form::Name ||
      id->items[2]->form != Form::Text)
    return unknown("an object that is no storage"), false;
  StringRef type = id->items[1]->text;
  if (!type.consume_front("torch ") || !type.ends_with("Storage"))
    return unknown(id->items[1]->text), false;
  push(Form::Storage, 0, id->items[2]->text);
  stack.back()->type = type.str();
  stack.back()->kind = llvm::StringSwitch<ElementKind>(type)
                           .Case("FloatStorage", ElementKind::F32)
                           .Case("DoubleStorage", ElementKind::F64)
                           .Case("HalfStorage", ElementKind::F16)
                           .Case("BFloat16Storage", ElementKind::BF16)
                           .Case("LongStorage", ElementKind::I64)
                           .Case("IntStorage", ElementKind::I32)
                           .Case("ShortStorage", ElementKind::I16)
                           .Case("CharStorage", ElementKind::I8)
                           .Case("ByteStorage", ElementKind::U8)
                           .Case("BoolStorage", ElementKind::Bool)
                           .Default(ElementKind::Undefined);
  return true;
}

/// A call of one of the names that make a dictionary of tensors.
bool PickleReader::call() {
  ItemPtr arguments = pop(), callee = arguments ? pop() : nullptr;
  if (!callee)
    return false;
  if (callee->form != Form::Name || arguments->form != Form::Tuple)
    return wrong("it calls what cannot be called"), false;
  const auto &given = arguments->items;
  auto isForm = [&](size_t i, Form form) {
    return i < given.size() && given[i]->form == form;
  };
  if (callee->text == "collections OrderedDict" && given.empty())
    return push(Form::Dict);
  // (storage, offset, sizes, strides, requires_grad, hooks[, metadata])
  if (callee->text == "torch._utils _rebuild_tensor_v2" && given.size() >= 4 &&
      isForm(0, Form::Storage) && isForm(1, Form::Int) &&
      isForm(2, Form::Tuple) && isForm(3, Form::Tuple)) {
    if (!push(Form::Tensor, 0, given[0]->text))
      return false;
    stack.back()->kind = given[0]->kind;
    stack.back()->type = given[0]->type;
    stack.back()->items = {given[1], given[2], given[3]};
    return true;
  }
  // (tensor, requires_grad, hooks[, attributes of the object])
  if ((callee->text == "torch._utils _rebuild_parameter" ||
       callee->text == "torch._utils _rebuild_parameter_with_state") &&
      given.size() >= 2 && isForm(0, Form::Tensor) && isForm(1, Form::Int)) {
    auto parameter = std::make_shared<Item>(*given[0]);
    parameter->requiresGrad = given[1]->number != 0;
    stack.push_back(std::move(parameter));
    return true;
  }
  return unknown("a call of '" + callee->text + "'"), false;
}

bool PickleReader::setItems(std::vector<ItemPtr> items) {
  if (stack.empty() || stack.back()->form != Form::Dict || items.size() % 2)
    return wrong("it puts things into what is no dictionary"), false;
  for (const ItemPtr &item : items)
    if (item->form == Form::Dict || item->form == Form::Tuple)
      return unknown("a dictionary of more than tensors"), false;
  llvm::append_range(stack.back()->items, items);
  return true;
}

bool PickleReader::step() {
  StringRef code = text(1);
  if (code.empty())
    return false;
  auto remember = [&](uint64_t at) {
    if (stack.empty() || memo.size() > kMost)
      return wrong("it remembers what is not there"), false;
    memo[at] = stack.back();
    return bool(problem);
  };
  auto recall = [&](uint64_t at) {
    auto found = memo.find(at);
    if (found == memo.end())
      return wrong("it recalls what is not there"), false;
    stack.push_back(found->second);
    return bool(problem);
  };
  switch (code[0]) {
  case '\x80': // PROTO
    return bytes(1) <= 5 || (unknown("a newer protocol"), false);
  case '}':
    return push(Form::Dict);
  case ')':
    return push(Form::Tuple);
  case '(':
    return push(Form::Mark);
  case 'N':
    return push(Form::None);
  case '\x88':
    return push(Form::Int, 1);
  case '\x89':
    return push(Form::Int, 0);
  case 'J':
    return push(Form::Int, static_cast<int32_t>(bytes(4)));
  case 'K':
    return push(Form::Int, static_cast<int64_t>(bytes(1)));
  case 'M':
    return push(Form::Int, static_cast<int64_t>(bytes(2)));
  case '\x8a': { // LONG1: as many bytes as it takes, with a sign
    size_t size = bytes(1);
    if (size > 8)
      return unknown("an integer of more than 64 bits"), false;
    int shift = 64 - 8 * static_cast<int>(size);
    uint64_t value = bytes(size);
    return push(Form::Int,
                size ? static_cast<int64_t>(value << shift) >> shift : 0);
  }
  case 'X':
    return push(Form::Text, 0, text(bytes(4)).str());
  case 'c': {
    std::string module = line().str(), name = line().str();
    return push(Form::Name, 0, module + " " + name);
  }
  case 'q':
    return remember(bytes(1));
  case 'r':
    return remember(bytes(4));
  case 'h':
    return recall(bytes(1));
  case 'j':
    return recall(bytes(4));
  case '\x85':
    return tuple(1);
  case '\x86':
    return tuple(2);
  case '\x87':
    return tuple(3);
  case 't': {
    std::vector<ItemPtr> items;
    return popToMark(items) && tuple(std::move(items));
  }
  case 'Q':
    return storage();
  case 'R':
    return call();
  case 's': {
    ItemPtr value = pop(), key = value ? pop() : nullptr;
    return key && setItems({key, value});
  }
  case 'u': {
    std::vector<ItemPtr> items;
    return popToMark(items) && setItems(std::move(items));
  }
  case '.':
    isDone = true;
    return true;
  default:
    return unknown("the instruction " +
                   std::to_string(static_cast<unsigned char>(code[0]))),
           false;
  }
}

ItemPtr PickleReader::read() {
  for (size_t steps = 0; !isDone; ++steps)
    if (steps > kMost || !step())
      return wrong("it ends too early");
  ItemPtr item = pop();
  return item && stack.empty() ? item : wrong("it leaves things behind");
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// Elements of `size` bytes in row-major order, from a storage in which they
/// stand `strides` apart; nothing if they lie outside.
std::optional<std::string> torch::denseOf(StringRef storage,
                                          const std::vector<int64_t> &shape,
                                          const std::vector<int64_t> &strides,
                                          int64_t offset, int64_t size) {
  int64_t count = 1, last = offset;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0 || strides[i] < 0 ||
        __builtin_mul_overflow(count, shape[i], &count))
      return std::nullopt;
    int64_t reach;
    if (shape[i] > 0 &&
        (__builtin_mul_overflow(shape[i] - 1, strides[i], &reach) ||
         __builtin_add_overflow(last, reach, &last)))
      return std::nullopt;
  }
  if (count == 0)
    return std::string();
  int64_t held = static_cast<int64_t>(storage.size()) / size;
  // Strides of 0 repeat elements; nothing stored is as much as that.
  if (offset < 0 || last >= held || count > (int64_t(1) << 40) / size)
    return std::nullopt;
  std::string bytes;
  bytes.reserve(count * size);
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t at = offset, left = count; left > 0; --left) {
    bytes.append(storage.data() + at * size, size);
    for (size_t i = shape.size(); i-- > 0;) {
      at += strides[i];
      if (++index[i] < shape[i])
        break;
      at -= strides[i] * shape[i];
      index[i] = 0;
    }
  }
  return bytes;
}

static bool integersOf(const Item &tuple, std::vector<int64_t> &to) {
  for (const ItemPtr &item : tuple.items) {
    if (item->form != Form::Int)
      return false;
    to.push_back(item->number);
  }
  return true;
}

/// Reads the elements; why not, if they are of a type that Tandem has not.
static Status readElements(StorageReader storage, const Item &item,
                           SavedTensor &to) {
  std::vector<int64_t> shape, strides;
  if (!integersOf(*item.items[1], shape) ||
      !integersOf(*item.items[2], strides) || shape.size() != strides.size())
    return Status::failed("expected sizes and strides that are integers");
  if (item.kind == ElementKind::Undefined) {
    to.why = "has elements of type '" + artifact::printable(item.type) + "'";
    return Status::success();
  }
  auto bytes = storage(item.text);
  if (!bytes)
    return bytes.status();
  auto data = std::make_shared<TensorData>();
  data->name = to.name;
  data->kind = item.kind;
  data->shape = shape;
  auto dense = denseOf(*bytes, shape, strides, item.items[0]->number,
                       byteSize(item.kind));
  if (!dense)
    return Status::failed("expected its elements to lie in the " +
                          std::to_string(bytes->size()) +
                          " bytes that are stored");
  data->bytes = *std::move(dense);
  to.data = std::move(data);
  return Status::success();
}

Result<std::vector<SavedTensor>> torch::readSavedFile(StringRef file) {
  auto zip = Zip::openBytes(file);
  if (!zip)
    return zip.status();
  auto pickle = (*zip)->read("data.pkl");
  if (!pickle)
    return pickle.status();
  if ((*zip)->has("byteorder")) {
    auto order = (*zip)->read("byteorder");
    if (order && StringRef(*order).trim() != "little")
      return Status::unsupported(
          "unsupported: it was written on a big-endian machine");
  }
  return readSavedTensors(*pickle, [&](const std::string &name) {
    return (*zip)->read("data/" + name);
  });
}

Result<std::vector<SavedTensor>>
torch::readSavedTensors(StringRef pickle, StorageReader storage) {
  PickleReader reader(pickle);
  ItemPtr root = reader.read();
  if (!root)
    return reader.problem;
  if (root->form != Form::Dict)
    return Status::unsupported("unsupported: expected a dictionary of tensors");
  std::vector<SavedTensor> made;
  // What is stored once and shown alike is one tensor with several names.
  std::map<std::tuple<std::string, int64_t, std::vector<int64_t>,
                      std::vector<int64_t>, ElementKind>,
           TensorPtr>
      shown;
  for (size_t i = 0; i + 1 < root->items.size(); i += 2) {
    const Item &key = *root->items[i], &value = *root->items[i + 1];
    if (key.form != Form::Text)
      return Status::unsupported("unsupported: a key that is no text");
    SavedTensor &tensor = made.emplace_back();
    tensor.name = key.text;
    if (value.form != Form::Tensor) {
      tensor.why = "is no tensor";
      continue;
    }
    tensor.storage = value.text;
    tensor.requiresGrad = value.requiresGrad;
    std::vector<int64_t> sizes, strides;
    (void)integersOf(*value.items[1], sizes);
    (void)integersOf(*value.items[2], strides);
    TensorPtr &one =
        shown[{value.text, value.items[0]->number, sizes, strides, value.kind}];
    if (one) {
      tensor.data = one;
      continue;
    }
    if (Status s = readElements(storage, value, tensor); !s)
      return std::move(s).in("'" + artifact::printable(key.text) + "'");
    one = tensor.data;
  }
  return made;
}
