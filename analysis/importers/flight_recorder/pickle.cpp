// SPDX-License-Identifier: Apache-2.0
// Python's pickle format, as far as plain values need it: a program for a machine with a stack and a memo.
// https://docs.python.org/3/library/pickletools.html lists the opcodes.
#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cstdlib>
#include <unordered_map>

#include "analysis/importers/flight_recorder/values.h"
#include "profiler/format/error.h"

namespace paceline::analysis::flight_recorder {
namespace pickle_parts {

class Machine {
 public:
  Machine(std::string_view bytes, Values& values) : bytes_(bytes), values_(values) {}

  const Value& run() {
    for (;;) {
      const auto opcode = static_cast<unsigned char>(take(1)[0]);
      if (opcode == '.') return *pop();
      step(opcode);
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Error(fmt::format("{} at byte {}", what, at_)); }

  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) fail("the pickle ends early");
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  // A number with the lowest byte first.
  std::uint64_t number(std::size_t count) {
    std::uint64_t value = 0;
    const std::string_view bytes = take(count);
    for (std::size_t i = count; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
  }
  std::string_view line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == bytes_.npos) fail("the pickle ends early");
    std::string_view text = take(end - at_ + 1);
    text.remove_suffix(1);
    if (text.ends_with('\r')) text.remove_suffix(1);
    return text;
  }

  Value& push(Value::Type type) {
    Value& made = values_.emplace_back();
    made.type = type;
    stack_.push_back(&made);
    return made;
  }
  void push_text(std::string_view text) { push(Value::Type::text).text = text; }
  void push_whole(std::int64_t value) { push(Value::Type::whole).whole = value; }
  void push_boolean(bool value) { push(Value::Type::boolean).whole = value; }

  Value* pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("a value is missing");
    Value* value = stack_.back();
    stack_.pop_back();
    return value;
  }
  Value& top(Value::Type type) {
    if (stack_.empty() || stack_.back()->type != type) fail("a value has the wrong type");
    return *stack_.back();
  }
  // The values since the last mark.
  std::vector<Value*> pop_marked() {
    if (marks_.empty() || marks_.back() > stack_.size()) fail("a mark is missing");
    std::vector<Value*> marked(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return marked;
  }

  void append(const std::vector<Value*>& items) {
    Value& list = top(Value::Type::list);
    list.items.insert(list.items.end(), items.begin(), items.end());
  }
  void set_items(const std::vector<Value*>& pairs) {
    Value& dictionary = top(Value::Type::dictionary);
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) dictionary.entries.emplace_back(pairs[i], pairs[i + 1]);
  }
  void push_list(const std::vector<Value*>& items) {
    push(Value::Type::list);
    append(items);
  }
  void push_tuple(std::size_t size) {
    std::vector<Value*> items(size);
    for (std::size_t i = size; i-- > 0;) items[i] = pop();
    push_list(items);
  }

  void put(std::uint64_t place) {
    if (stack_.empty()) fail("a value is missing");
    memo_[place] = stack_.back();
  }
  void get(std::uint64_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) fail("a value of the memo is missing");
    stack_.push_back(found->second);
  }
  std::uint64_t decimal(std::string_view text) const {
    std::uint64_t value = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) fail("a number is damaged");
    return value;
  }

  // An integer of any length; those beyond 64 bits become real numbers.
  void push_long(std::uint64_t length) {
    const std::string_view bytes = take(length);
    const bool negative = !bytes.empty() && (static_cast<unsigned char>(bytes.back()) & 0x80) != 0;
    std::uint64_t low = negative ? ~std::uint64_t{0} : 0;
    bool fits = true;
    for (std::size_t i = bytes.size(); i-- > 0;) {
      const auto byte = static_cast<unsigned char>(bytes[i]);
      if (i >= 8) fits = fits && byte == (negative ? 0xff : 0);
      low = low << 8 | byte;
    }
    if (fits && (bytes.size() <= 8 || (static_cast<std::int64_t>(low) < 0) == negative)) {
      push_whole(static_cast<std::int64_t>(low));
    } else {
      push(Value::Type::real).real = negative ? -1e300 : 1e300;
    }
  }
  // "I01" is true; other numbers of protocol 0 end with an L at times.
  void push_number_line() {
    const std::string_view text = line();
    if (text == "00" || text == "01") return push_boolean(text == "01");
    std::int64_t value = 0;
    const bool whole = std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc();
    if (whole) return push_whole(value);
    push(Value::Type::none);
  }
  void push_real_line() {
    const std::string text(line());
    push(Value::Type::real).real = std::strtod(text.c_str(), nullptr);
  }
  // A literal of Python, in quotes. Escapes stay as they are: names of processes and functions have none.
  void push_quoted_line() {
    std::string_view text = line();
    if (text.size() >= 2) text = text.substr(1, text.size() - 2);
    push_text(text);
  }

  void step(unsigned char opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        take(1);
        return;
      case 0x95:  // FRAME
        take(8);
        return;
      case '(':
        return marks_.push_back(stack_.size());
      case '0':  // POP
        pop();
        return;
      case '1':  // POP_MARK
        pop_marked();
        return;
      case '2':  // DUP
        stack_.push_back(pop());
        return stack_.push_back(stack_.back());
      case 'N':
        push(Value::Type::none);
        return;
      case 0x88:
        return push_boolean(true);
      case 0x89:
        return push_boolean(false);
      case 'I':
      case 'L':
        return push_number_line();
      case 'F':
        return push_real_line();
      case 'S':
        return push_quoted_line();
      case 'V':
        return push_text(line());
      case 'J':
        return push_whole(static_cast<std::int32_t>(number(4)));
      case 'K':
        return push_whole(static_cast<std::int64_t>(number(1)));
      case 'M':
        return push_whole(static_cast<std::int64_t>(number(2)));
      case 0x8a:
        return push_long(number(1));
      case 0x8b:
        return push_long(number(4));
      case 'G': {  // the highest byte first
        const std::string_view bytes = take(8);
        std::uint64_t bits = 0;
        for (const char c : bytes) bits = bits << 8 | static_cast<unsigned char>(c);
        push(Value::Type::real).real = std::bit_cast<double>(bits);
        return;
      }
      case 'U':
      case 'C':
      case 0x8c:
        return push_text(take(number(1)));
      case 'T':
      case 'X':
      case 'B':
        return push_text(take(number(4)));
      case 0x8d:
      case 0x8e:
      case 0x96:
        return push_text(take(number(8)));
      case ']':
      case ')':
      case 0x8f:
        push(Value::Type::list);
        return;
      case '}':
        push(Value::Type::dictionary);
        return;
      case 'l':
      case 't':
      case 0x91:
        return push_list(pop_marked());
      case 'd': {
        const std::vector<Value*> pairs = pop_marked();
        push(Value::Type::dictionary);
        return set_items(pairs);
      }
      case 0x85:
      case 0x86:
      case 0x87:
        return push_tuple(opcode - 0x84U);
      case 'a': {
        Value* item = pop();
        return append({item});
      }
      case 'e':
      case 0x90:
        return append(pop_marked());
      case 's': {
        Value* value = pop();
        Value* key = pop();
        return set_items({key, value});
      }
      case 'u':
        return set_items(pop_marked());
      case 'p':
        return put(decimal(line()));
      case 'q':
        return put(number(1));
      case 'r':
        return put(number(4));
      case 0x94:
        return put(memo_.size());
      case 'g':
        return get(decimal(line()));
      case 'h':
        return get(number(1));
      case 'j':
        return get(number(4));
      default:
        fail(fmt::format("the opcode 0x{:02x}, which plain values do not need, is refused", opcode));
    }
  }

  const std::string_view bytes_;
  Values& values_;
  std::size_t at_ = 0;
  std::vector<Value*> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, Value*> memo_;
};

}  // namespace pickle_parts

const Value& decode_pickle(std::string_view bytes, Values& values) {
  return pickle_parts::Machine(bytes, values).run();
}

}  // namespace paceline::analysis::flight_recorder
