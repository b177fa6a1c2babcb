// SPDX-License-Identifier: Apache-2.0
// The names of the functions in an ELF file, from its symbol table. On one thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace paceline::inject {

// Memory comes from the system: 8 bytes for each function of the file.
class FunctionNames {
 public:
  // Reads the symbol table: .symtab, or .dynsym in a stripped file. The file may change or shrink meanwhile: then names
  // are wrong or missing. Cost: reading the table and sorting it; 30 ms for 300,000 functions.
  void open(const char* path);
  void close();

  // The name of the function that begins at `function` or, where no symbol does, of the last one that begins before
  // `instruction`, but not before `function`. Addresses as in the file. "" without one. `out` receives the text. Cost:
  // a search, and reading one text from the file.
  std::string_view find(std::uint64_t function, std::uint64_t instruction, const char* path, char* out,
                        std::size_t capacity) const;

 private:
  struct Symbol {
    std::uint32_t address, name;  // places in the file's address space and in its table of texts
  };
  Symbol* symbols_ = nullptr;
  std::size_t count_ = 0, bytes_ = 0;
  std::uint64_t texts_ = 0;  // where the table of texts begins in the file
};

}  // namespace paceline::inject
