// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/mpi/static_library.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/inject/system/say.h"
#include "profiler/launch/launcher.h"

namespace paceline::inject {
namespace {

constexpr char sign[] = "PMPI_Init";
constexpr char program_file[] = "/proc/self/exe";

// The program's file in memory, which lasts as long as this object.
class ProgramFile {
 public:
  ProgramFile() {
    const int file = open(program_file, O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (file < 0) return;
    if (fstat(file, &status) == 0 && status.st_size > 0) {
      size_ = static_cast<std::size_t>(status.st_size);
      bytes_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    }
    close(file);
  }
  ~ProgramFile() {
    if (bytes_ != MAP_FAILED) munmap(bytes_, size_);
  }
  ProgramFile(const ProgramFile&) = delete;
  ProgramFile& operator=(const ProgramFile&) = delete;

  // `count` objects at an offset, or nullptr if the file is shorter.
  template <class Object>
  const Object* at(std::size_t offset, std::size_t count) const {
    if (bytes_ == MAP_FAILED || offset > size_ || count > (size_ - offset) / sizeof(Object)) return nullptr;
    return reinterpret_cast<const Object*>(static_cast<const char*>(bytes_) + offset);
  }

 private:
  void* bytes_ = MAP_FAILED;
  std::size_t size_ = 0;
};

// True if the symbol table defines the function `sign`.
bool defines_sign(const ProgramFile& file, const ElfW(Shdr) & table, const ElfW(Shdr) & strings) {
  const auto* symbols = file.at<ElfW(Sym)>(table.sh_offset, table.sh_size / sizeof(ElfW(Sym)));
  const char* names = file.at<char>(strings.sh_offset, strings.sh_size);
  if (symbols == nullptr || names == nullptr) return false;
  const char* end = names + strings.sh_size;
  for (const char* found = names; found != nullptr; ++found) {
    found = static_cast<const char*>(memmem(found, static_cast<std::size_t>(end - found), sign, sizeof sign));
    if (found == nullptr) break;
    for (std::size_t at = 0; at < table.sh_size / sizeof(ElfW(Sym)); ++at) {
      if (symbols[at].st_name == static_cast<std::size_t>(found - names) && symbols[at].st_shndx != SHN_UNDEF) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

bool has_static_mpi() {
  const ProgramFile file;
  const auto* header = file.at<ElfW(Ehdr)>(0, 1);
  if (header == nullptr || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return false;
  const auto* sections = file.at<ElfW(Shdr)>(header->e_shoff, header->e_shnum);
  if (sections == nullptr) return false;
  for (std::size_t at = 0; at < header->e_shnum; ++at) {
    const ElfW(Shdr)& table = sections[at];
    if (table.sh_type != SHT_SYMTAB || table.sh_link >= header->e_shnum) continue;
    if (defines_sign(file, table, sections[table.sh_link])) return true;
  }
  return false;
}

void report_static_mpi() {
  if (record::launched_rank().rank > 0 || !has_static_mpi()) return;
  char program[PATH_MAX] = "";
  if (readlink(program_file, program, sizeof program - 1) < 0) return;
  say("MPI is linked statically into %s: its calls are not recorded; link MPI's shared library", program);
}

}  // namespace paceline::inject
