// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/stacks/function_names.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "profiler/inject/system/descriptor.h"
#include "profiler/inject/system/sysfs.h"

namespace paceline::inject {
namespace {

constexpr std::size_t most_symbols = std::size_t{1} << 22;

bool read_at(const Descriptor& file, std::uint64_t at, void* out, std::size_t size) {
  return pread(file.number(), out, size, static_cast<off_t>(at)) == static_cast<ssize_t>(size);
}

// Calls visit(item) for each of the items of a table in the file, which are read some at a time.
template <class Item, class Visit>
void each_item(const Descriptor& file, std::uint64_t at, std::uint64_t count, Visit visit) {
  constexpr std::uint64_t at_once = 1024;
  static Item items[at_once];
  for (std::uint64_t done = 0; done < count; done += at_once) {
    const std::uint64_t now = std::min(at_once, count - done);
    if (!read_at(file, at + done * sizeof(Item), items, now * sizeof(Item))) return;
    for (std::uint64_t i = 0; i < now; ++i) visit(items[i]);
  }
}

}  // namespace

void FunctionNames::open(const char* path) {
  const Descriptor file(open_high(path));
  Elf64_Ehdr head;
  if (!file.is_open() || !read_at(file, 0, &head, sizeof head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_shentsize != sizeof(Elf64_Shdr)) {
    return;
  }
  Elf64_Shdr table{}, texts{};
  each_item<Elf64_Shdr>(file, head.e_shoff, head.e_shnum, [&](const Elf64_Shdr& section) {
    if (section.sh_type == SHT_SYMTAB || (section.sh_type == SHT_DYNSYM && table.sh_type != SHT_SYMTAB))
      table = section;
  });
  if (table.sh_type == SHT_NULL || !read_at(file, head.e_shoff + table.sh_link * sizeof texts, &texts, sizeof texts))
    return;
  const std::size_t most = std::min<std::size_t>(table.sh_size / sizeof(Elf64_Sym), most_symbols);
  bytes_ = most * sizeof(Symbol);
  if (most == 0) return;
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;
  symbols_ = static_cast<Symbol*>(memory);
  texts_ = texts.sh_offset;
  each_item<Elf64_Sym>(file, table.sh_offset, most, [&](const Elf64_Sym& symbol) {
    const unsigned type = ELF64_ST_TYPE(symbol.st_info);
    const bool is_function = type == STT_FUNC || type == STT_GNU_IFUNC || (type == STT_NOTYPE && symbol.st_size > 0);
    if (!is_function || symbol.st_shndx == SHN_UNDEF || symbol.st_value >> 32 != 0) return;
    symbols_[count_++] = {static_cast<std::uint32_t>(symbol.st_value), symbol.st_name};
  });
  std::sort(symbols_, symbols_ + count_, [](const Symbol& a, const Symbol& b) {
    return a.address != b.address ? a.address < b.address : a.name < b.name;
  });
}

void FunctionNames::close() {
  if (symbols_ != nullptr) munmap(symbols_, bytes_);
  *this = {};
}

std::string_view FunctionNames::find(std::uint64_t function, std::uint64_t instruction, const char* path, char* out,
                                     std::size_t capacity) const {
  const auto begins = [&](std::uint64_t address) {
    return std::lower_bound(symbols_, symbols_ + count_, address,
                            [](const Symbol& symbol, std::uint64_t at) { return symbol.address < at; });
  };
  const Symbol* symbol = begins(function);
  if (symbol == symbols_ + count_ || symbol->address != function) {
    symbol = begins(instruction + 1);
    if (symbol == symbols_ || (--symbol)->address < function) return "";
  }
  const Descriptor file(open_high(path));
  if (!file.is_open()) return "";
  const ssize_t length = pread(file.number(), out, capacity - 1, static_cast<off_t>(texts_ + symbol->name));
  if (length <= 0) return "";
  out[length] = '\0';
  return out;
}

}  // namespace paceline::inject
