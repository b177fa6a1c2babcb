// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/stacks/frame_rules.h"

#include <string.h>

#include <cstddef>
#include <initializer_list>
#include <span>

namespace paceline::inject {
namespace {

// Numbers of registers in DWARF (System V ABI for AMD64, table 3.36).
constexpr std::uint64_t rbp = 6, rsp = 7, return_address = 16;

// Reads one entry's bytes in order. Beyond the end it gives zeros, and is not whole any more.
class Bytes {
 public:
  explicit Bytes(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool at_end() const { return at_ >= bytes_.size(); }
  bool is_whole() const { return whole_; }
  template <class Value>
  Value value() {
    Value value{};
    if (bytes_.size() - at_ < sizeof value) {
      whole_ = false;
      at_ = bytes_.size();
    } else {
      memcpy(&value, bytes_.data() + at_, sizeof value);
      at_ += sizeof value;
    }
    return value;
  }
  std::uint8_t byte() { return value<std::uint8_t>(); }
  std::uint64_t unsigned_leb() {
    std::uint64_t result = 0;
    for (unsigned shift = 0;; shift += 7) {
      const std::uint8_t next = byte();
      if (shift < 64) result |= std::uint64_t{next & 0x7fu} << shift;
      if ((next & 0x80) == 0) return result;
    }
  }
  std::int64_t signed_leb() {
    std::uint64_t result = 0;
    for (unsigned shift = 0;;) {
      const std::uint8_t next = byte();
      if (shift < 64) result |= std::uint64_t{next & 0x7fu} << shift;
      shift += 7;
      if ((next & 0x80) != 0) continue;
      if (shift < 64 && (next & 0x40) != 0) result |= ~std::uint64_t{0} << shift;
      return static_cast<std::int64_t>(result);
    }
  }
  std::span<const std::uint8_t> part(std::uint64_t size) {
    if (size > bytes_.size() - at_) {
      whole_ = false;
      size = bytes_.size() - at_;
    }
    const auto part = bytes_.subspan(at_, size);
    at_ += size;
    return part;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  bool whole_ = true;
};

// An entry of .eh_frame begins with the number of bytes that follow.
constexpr std::size_t longest_entry = 16 * 1024;
struct Entry {
  Address body = 0;
  std::size_t size = 0;
  std::uint8_t bytes[longest_entry];

  bool read(ProgramMemory& memory, Address at) {
    std::uint32_t length = 0;
    if (!memory.read_value(at, length) || length == 0 || length > sizeof bytes) return false;
    body = at + sizeof length;
    size = length;
    return memory.read_near(body, bytes, size);
  }
};
Entry common_entry, function_entry;

// Bytes of a pointer of this encoding; 0: it has no fixed size.
std::size_t pointer_bytes(std::uint8_t encoding) {
  switch (encoding & 0x07) {
    case 0x00:
    case 0x04:
      return 8;
    case 0x02:
      return 2;
    case 0x03:
      return 4;
    default:
      return 0;
  }
}

struct Common {
  std::uint64_t code_factor = 1;
  std::int64_t data_factor = 1;
  std::uint8_t pointers = 0;  // encoding of the function's addresses
  bool augmented = false, is_signal = false;
  std::span<const std::uint8_t> instructions;
};

std::optional<Common> read_common() {
  Bytes in({common_entry.bytes, common_entry.size});
  Common common;
  if (in.value<std::uint32_t>() != 0) return std::nullopt;
  const std::uint8_t version = in.byte();
  char augmentation[8] = "";
  for (char& letter : augmentation) {
    letter = static_cast<char>(in.byte());
    if (letter == '\0') break;
  }
  if (augmentation[sizeof augmentation - 1] != '\0') return std::nullopt;
  common.code_factor = in.unsigned_leb();
  common.data_factor = in.signed_leb();
  if ((version == 1 ? in.byte() : in.unsigned_leb()) != return_address) return std::nullopt;
  common.augmented = augmentation[0] == 'z';
  if (!common.augmented && augmentation[0] != '\0') return std::nullopt;
  if (common.augmented) {
    Bytes data(in.part(in.unsigned_leb()));
    for (const char* letter = augmentation + 1; *letter != '\0'; ++letter) {
      if (*letter == 'R') {
        common.pointers = data.byte();
      } else if (*letter == 'P') {
        data.part(pointer_bytes(data.byte()));
      } else if (*letter == 'L') {
        data.byte();
      } else if (*letter == 'S') {
        common.is_signal = true;
      } else {
        return std::nullopt;
      }
    }
    if (!data.is_whole()) return std::nullopt;
  }
  common.instructions = in.part(common_entry.size);
  return pointer_bytes(common.pointers) > 0 ? std::optional(common) : std::nullopt;
}

// What the instructions say of the place that they have come to.
struct Row {
  FrameRule rule;
  bool known = false;       // the frame's end
  bool has_caller = true;   // the return address is not undefined
  bool saved_known = true;  // where rbp is
};

bool is(std::span<const std::uint8_t> expression, std::initializer_list<std::uint8_t> wanted) {
  return expression.size() == wanted.size() && memcmp(expression.data(), wanted.begin(), wanted.size()) == 0;
}

// DW_OP_breg6 offset, which some expressions begin with. Returns what follows.
std::optional<std::span<const std::uint8_t>> from_frame_pointer(std::span<const std::uint8_t> expression,
                                                                std::int32_t& offset) {
  constexpr std::uint8_t breg6 = 0x76;
  if (expression.empty() || expression.front() != breg6) return std::nullopt;
  Bytes in(expression.subspan(1));
  offset = static_cast<std::int32_t>(in.signed_leb());
  return in.part(expression.size());
}

// The two expressions that occur: of functions that align their stack, and of the linker's entries for other libraries,
// in whose last bytes one more word is on the stack.
void set_end(Row& row, std::span<const std::uint8_t> expression) {
  constexpr std::uint8_t deref = 0x06;
  row.known = true;
  if (is(expression, {0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22})) {
    row.rule.end = FrameRule::End::plt;
  } else if (const auto rest = from_frame_pointer(expression, row.rule.end_offset); rest && is(*rest, {deref})) {
    row.rule.end = FrameRule::End::at_frame_pointer;
  } else {
    row.known = false;
  }
}

class Interpreter {
 public:
  explicit Interpreter(const Common& common) : common_(common) {}

  // Runs instructions up to the place `until` bytes behind the function's begin. Returns false for one that is not
  // known.
  bool run(std::span<const std::uint8_t> instructions, std::uint64_t until) {
    Bytes in(instructions);
    while (!in.at_end()) {
      if (!step(in) || !in.is_whole()) return false;
      if (place_ > until) return true;
      row = next_;
    }
    return true;
  }
  void keep_first_row() { first_ = row; }

  Row row;

 private:
  bool step(Bytes& in) {
    next_ = row;
    const std::uint8_t code = in.byte(), operand = code & 0x3f;
    switch (code >> 6) {
      case 1:
        place_ += operand * common_.code_factor;
        return true;
      case 2:
        save(operand, static_cast<std::int64_t>(in.unsigned_leb()) * common_.data_factor);
        return true;
      case 3:
        restore(operand);
        return true;
      default:
        return extended(code, in);
    }
  }

  bool extended(std::uint8_t code, Bytes& in) {
    switch (code) {
      case 0x00:  // nop
        return true;
      case 0x02:  // advance_loc1, 2, 4
        place_ += in.byte() * common_.code_factor;
        return true;
      case 0x03:
        place_ += in.value<std::uint16_t>() * common_.code_factor;
        return true;
      case 0x04:
        place_ += in.value<std::uint32_t>() * common_.code_factor;
        return true;
      case 0x05:  // offset_extended
      case 0x11:  // offset_extended_sf
      {
        const std::uint64_t of = in.unsigned_leb();
        const std::int64_t offset = code == 0x05 ? static_cast<std::int64_t>(in.unsigned_leb()) : in.signed_leb();
        save(of, offset * common_.data_factor);
        return true;
      }
      case 0x06:  // restore_extended
        restore(in.unsigned_leb());
        return true;
      case 0x07:  // undefined
        if (const std::uint64_t of = in.unsigned_leb(); of == return_address) {
          next_.has_caller = false;
        } else if (of == rbp) {
          next_.saved_known = false;
        }
        return true;
      case 0x08:  // same_value
        if (in.unsigned_leb() == rbp) next_.rule.frame_pointer = FrameRule::Saved::no;
        return true;
      case 0x09:  // register
        if (in.unsigned_leb() == rbp) next_.saved_known = false;
        in.unsigned_leb();
        return true;
      case 0x0a:  // remember_state
        if (kept_ == most_kept) return false;
        rows_[kept_++] = row;
        return true;
      case 0x0b:  // restore_state
        if (kept_ == 0) return false;
        next_ = rows_[--kept_];
        return true;
      case 0x0c:  // def_cfa
      {
        const std::uint64_t of = in.unsigned_leb();
        end_at(of, static_cast<std::int64_t>(in.unsigned_leb()));
        return true;
      }
      case 0x12:  // def_cfa_sf
      {
        const std::uint64_t of = in.unsigned_leb();
        end_at(of, in.signed_leb() * common_.data_factor);
        return true;
      }
      case 0x0d:  // def_cfa_register
        end_at(in.unsigned_leb(), next_.rule.end_offset);
        return true;
      case 0x0e:  // def_cfa_offset
        next_.rule.end_offset = static_cast<std::int32_t>(in.unsigned_leb());
        return true;
      case 0x13:  // def_cfa_offset_sf
        next_.rule.end_offset = static_cast<std::int32_t>(in.signed_leb() * common_.data_factor);
        return true;
      case 0x0f:  // def_cfa_expression
        set_end(next_, in.part(in.unsigned_leb()));
        return true;
      case 0x10:  // expression
      case 0x16:  // val_expression
      {
        const std::uint64_t of = in.unsigned_leb();
        const auto expression = in.part(in.unsigned_leb());
        if (of != rbp) return true;
        const auto rest = from_frame_pointer(expression, next_.rule.saved_offset);
        next_.rule.frame_pointer = FrameRule::Saved::at_frame_pointer;
        next_.saved_known = code == 0x10 && rest && rest->empty();
        return true;
      }
      case 0x14:  // val_offset, val_offset_sf: no compiler uses them for rbp
      case 0x15:
        in.unsigned_leb();
        in.unsigned_leb();
        return true;
      case 0x2e:  // GNU_args_size
        in.unsigned_leb();
        return true;
      default:
        return false;
    }
  }

  void end_at(std::uint64_t of, std::int64_t offset) {
    next_.known = of == rsp || of == rbp;
    next_.rule.end = of == rsp ? FrameRule::End::stack_pointer : FrameRule::End::frame_pointer;
    next_.rule.end_offset = static_cast<std::int32_t>(offset);
  }
  void save(std::uint64_t of, std::int64_t offset) {
    if (of != rbp) return;
    next_.rule.frame_pointer = FrameRule::Saved::before_end;
    next_.rule.saved_offset = static_cast<std::int32_t>(offset);
    next_.saved_known = true;
  }
  void restore(std::uint64_t of) {
    if (of != rbp) return;
    next_.rule.frame_pointer = first_.rule.frame_pointer;
    next_.rule.saved_offset = first_.rule.saved_offset;
    next_.saved_known = first_.saved_known;
  }

  static constexpr std::size_t most_kept = 8;
  const Common& common_;
  std::uint64_t place_ = 0;
  Row next_, first_, rows_[most_kept];
  std::size_t kept_ = 0;
};

// The entry of the last function that begins at or before the instruction; 0 if there is none.
struct Found {
  Address function = 0, entry = 0;
};
std::optional<Found> search(ProgramMemory& memory, Address table, Address instruction) {
  struct Head {
    std::uint8_t version, entries_pointer, count, table;
    std::int32_t entries;
    std::uint32_t functions;
  } head;
  struct Place {
    std::int32_t function, entry;
  };
  constexpr std::uint8_t udata4 = 0x03, pcrel_sdata4 = 0x1b, datarel_sdata4 = 0x3b;  // what linkers write
  if (!memory.read_value(table, head) || head.version != 1 || head.entries_pointer != pcrel_sdata4 ||
      head.count != udata4 || head.table != datarel_sdata4) {
    return std::nullopt;
  }
  const auto place = [&](std::uint32_t i, Place& out) {
    return memory.read_value(table + sizeof head + 8ull * i, out);
  };
  const auto address = [&](std::int32_t offset) { return table + static_cast<Address>(std::int64_t{offset}); };
  std::uint32_t first = 0, last = head.functions;  // the one that is looked for is in [first, last)
  Place found{};
  while (last - first > 1) {
    const std::uint32_t middle = first + (last - first) / 2;
    if (!place(middle, found)) return std::nullopt;
    (address(found.function) <= instruction ? first : last) = middle;
  }
  if (last == first || !place(first, found) || address(found.function) > instruction) return std::nullopt;
  return Found{address(found.function), address(found.entry)};
}

}  // namespace

std::optional<FunctionRule> find_rule(ProgramMemory& memory, Address table, Address instruction) {
  const auto found = search(memory, table, instruction);
  if (!found || !function_entry.read(memory, found->entry)) return std::nullopt;
  Bytes in({function_entry.bytes, function_entry.size});
  const auto distance = in.value<std::uint32_t>();
  if (distance == 0 || !common_entry.read(memory, function_entry.body - distance)) return std::nullopt;
  const auto common = read_common();
  if (!common) return std::nullopt;
  const std::size_t pointer = pointer_bytes(common->pointers);
  in.part(pointer);
  std::uint64_t length = 0;
  const auto bytes = in.part(pointer);
  memcpy(&length, bytes.data(), bytes.size());
  if (common->augmented) in.part(in.unsigned_leb());
  const std::uint64_t until = instruction - found->function;
  if (!in.is_whole() || until >= length) return std::nullopt;
  FunctionRule result{.function = found->function, .rule = {}};
  if (common->is_signal) {
    result.rule.end = FrameRule::End::signal;
    return result;
  }
  Interpreter interpreter(*common);
  if (!interpreter.run(common->instructions, until)) return std::nullopt;
  interpreter.keep_first_row();
  if (!interpreter.run(in.part(function_entry.size), until)) return std::nullopt;
  const Row& row = interpreter.row;
  if (!row.has_caller) return result;
  if (!row.known) return std::nullopt;
  result.rule = row.rule;
  if (!row.saved_known) result.rule.frame_pointer = FrameRule::Saved::lost;
  return result;
}

}  // namespace paceline::inject
