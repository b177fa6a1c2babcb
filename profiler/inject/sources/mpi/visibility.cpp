// SPDX-License-Identifier: Apache-2.0
// The recorder has a function for every MPI function that it knows. A program that asks which functions its MPI library
// has (by weak references or by dlsym, as PyPI's mpi4py does) must get the answer that it would get without the
// recorder. The dynamic linker asks this file each time:
//
//   - A relocation to a wrapper calls the wrapper's resolver, because the symbols are turned into indirect functions
//     (STT_GNU_IFUNC). The resolver returns the wrapper if a loaded library other than the recorder has a function of
//     that name, and otherwise null, which is what a weak reference to a missing function holds.
//   - dlsym does not find a symbol without a version whose version index is hidden and at least 2, while relocations
//     without a version accept index 2 (do_lookup_x and check_match in glibc's elf/dl-lookup.c). Functions that no
//     loaded MPI library has carry that index, so that dlsym passes them over.
//
// A relocation takes place after all libraries of a dlopen are mapped. That is why the resolver sees the MPI library
// that a Python module brings along. Symbols are changed in this library's own symbol table, in memory, before the
// program starts. The libraries that the program was started with may have been bound before that. Their calls of
// functions that the MPI library lacks are served by call_mpi.
#include "profiler/inject/sources/mpi/visibility.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <utility>

#include "profiler/inject/sources/mpi/static_library.h"
#include "profiler/launch/environment.h"

namespace paceline::inject {
namespace {

constexpr std::size_t most_wrappers = 2560;
constexpr ElfW(Half) absent_version = 0x8002;

// The dynamic symbols of one loaded object.
struct SymbolTable {
  const ElfW(Dyn) * dynamic = nullptr;
  ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const std::uint32_t* gnu_hash = nullptr;
  const std::uint32_t* old_hash = nullptr;
  ElfW(Half) * versions = nullptr;
};

SymbolTable symbols_of(const dl_phdr_info& object) {
  SymbolTable table;
  for (int at = 0; at < object.dlpi_phnum; ++at) {
    if (object.dlpi_phdr[at].p_type != PT_DYNAMIC) continue;
    table.dynamic = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[at].p_vaddr);
  }
  if (table.dynamic == nullptr) return table;
  for (const ElfW(Dyn)* entry = table.dynamic; entry->d_tag != DT_NULL; ++entry) {
    // glibc adds the load address to these values in place, except in the kernel's object.
    const ElfW(Addr) value = entry->d_un.d_ptr;
    void* const place = reinterpret_cast<void*>(value < object.dlpi_addr ? object.dlpi_addr + value : value);
    if (entry->d_tag == DT_SYMTAB) table.symbols = static_cast<ElfW(Sym)*>(place);
    if (entry->d_tag == DT_STRTAB) table.names = static_cast<const char*>(place);
    if (entry->d_tag == DT_GNU_HASH) table.gnu_hash = static_cast<const std::uint32_t*>(place);
    if (entry->d_tag == DT_HASH) table.old_hash = static_cast<const std::uint32_t*>(place);
    if (entry->d_tag == DT_VERSYM) table.versions = static_cast<ElfW(Half)*>(place);
  }
  return table;
}

std::uint32_t gnu_hash_of(const char* name) {
  std::uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

// The two parts of DT_GNU_HASH after its filter.
struct GnuHash {
  explicit GnuHash(const std::uint32_t* table)
      : buckets(table[0]),
        first(table[1]),
        filters(table[2]),
        shift(table[3]),
        filter(reinterpret_cast<const ElfW(Addr) *>(table + 4)),
        bucket(reinterpret_cast<const std::uint32_t*>(filter + filters)),
        chain(bucket + buckets) {}
  std::uint32_t buckets, first, filters, shift;
  const ElfW(Addr) * filter;
  const std::uint32_t* bucket;
  const std::uint32_t* chain;
};

bool is_named(const SymbolTable& table, std::uint32_t index, const char* name) {
  const ElfW(Sym)& symbol = table.symbols[index];
  return symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0 && strcmp(table.names + symbol.st_name, name) == 0;
}

bool defines(const SymbolTable& table, const char* name, std::uint32_t hash) {
  if (table.gnu_hash != nullptr) {
    const GnuHash lookup(table.gnu_hash);
    if (lookup.buckets == 0 || lookup.filters == 0) return false;
    constexpr std::uint32_t bits = 8 * sizeof(ElfW(Addr));
    const ElfW(Addr) filter = lookup.filter[hash / bits % lookup.filters];
    if ((filter >> hash % bits & filter >> (hash >> lookup.shift) % bits & 1) == 0) return false;
    std::uint32_t index = lookup.bucket[hash % lookup.buckets];
    if (index < lookup.first) return false;
    for (;; ++index) {
      const std::uint32_t there = lookup.chain[index - lookup.first];
      if ((there | 1) == (hash | 1) && is_named(table, index, name)) return true;
      if ((there & 1) != 0) return false;
    }
  }
  if (table.old_hash != nullptr) {
    for (std::uint32_t index = 1; index < table.old_hash[1]; ++index) {
      if (is_named(table, index, name)) return true;
    }
  }
  return false;
}

struct Wrapper {
  const char* name = nullptr;
  std::uint32_t hash = 0;
  void* function = nullptr;
  ElfW(Half) * version = nullptr;
  ElfW(Half) visible_version = 0;
  std::atomic<bool> present{false};
};
constinit Wrapper wrappers[most_wrappers];
constinit std::size_t wrapper_count = 0;

// The numbers of objects that were loaded and unloaded at the last look.
constinit std::atomic<unsigned long long> seen_adds{0}, seen_subs{0};

struct Look {
  bool first = true;
  bool unchanged = false;
  unsigned long long adds = 0, subs = 0;
  bool found[most_wrappers] = {};
};

bool has_mpi(const SymbolTable& table) {
  constexpr const char* signs[] = {"MPI_Init", "MPI_Send", "mpi_init_", "mpi_send_", "mpi_init_f08_", "mpi_send_f08_"};
  for (const char* sign : signs) {
    if (defines(table, sign, gnu_hash_of(sign))) return true;
  }
  return false;
}

int look_at(dl_phdr_info* object, std::size_t, void* data) {
  Look& look = *static_cast<Look*>(data);
  if (look.first) {
    look.first = false;
    look.adds = object->dlpi_adds;
    look.subs = object->dlpi_subs;
    look.unchanged = seen_adds.load() == look.adds && seen_subs.load() == look.subs;
    if (look.unchanged) return 1;
  }
  const SymbolTable table = symbols_of(*object);
  if (table.symbols == nullptr || table.names == nullptr || table.dynamic == _DYNAMIC || !has_mpi(table)) return 0;
  for (std::size_t at = 0; at < wrapper_count; ++at) {
    if (!look.found[at]) look.found[at] = defines(table, wrappers[at].name, wrappers[at].hash);
  }
  return 0;
}

void look_for_mpi() {
  Look look;
  dl_iterate_phdr(look_at, &look);
  if (look.unchanged) return;
  for (std::size_t at = 0; at < wrapper_count; ++at) {
    Wrapper& wrapper = wrappers[at];
    wrapper.present.store(look.found[at]);
    const ElfW(Half) version = look.found[at] ? wrapper.visible_version : absent_version;
    std::atomic_ref<ElfW(Half)>(*wrapper.version).store(version, std::memory_order_relaxed);
  }
  seen_adds.store(look.adds);  // from now on other threads may rely on the result
  seen_subs.store(look.subs);
}

template <std::size_t index>
void* resolve() {
  look_for_mpi();
  return wrappers[index].present.load(std::memory_order_relaxed) ? wrappers[index].function : nullptr;
}

using Resolver = void* (*)();
template <std::size_t... index>
constexpr std::array<Resolver, sizeof...(index)> make_resolvers(std::index_sequence<index...>) {
  return {resolve<index>...};
}
constexpr auto resolvers = make_resolvers(std::make_index_sequence<most_wrappers>());

bool is_mpi(const char* name) {
  if (*name == 'P' || *name == 'p') ++name;
  return strncmp(name, "MPI_", 4) == 0 || strncmp(name, "MPIX_", 5) == 0 || strncmp(name, "mpi_", 4) == 0 ||
         strncmp(name, "mpix_", 5) == 0;
}

struct Own {
  ElfW(Addr) base = 0;
  SymbolTable table;
  bool is_code = false;  // the table lies in a segment with code, which must not become writable
};

int find_own(dl_phdr_info* object, std::size_t, void* data) {
  const SymbolTable table = symbols_of(*object);
  if (table.dynamic != _DYNAMIC) return 0;
  Own& own = *static_cast<Own*>(data);
  own = {object->dlpi_addr, table};
  for (int at = 0; at < object->dlpi_phnum; ++at) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[at];
    const ElfW(Addr) offset = reinterpret_cast<ElfW(Addr)>(table.symbols) - object->dlpi_addr - segment.p_vaddr;
    if (segment.p_type == PT_LOAD && offset < segment.p_memsz) own.is_code = (segment.p_flags & PF_X) != 0;
  }
  return 1;
}

// The pages stay writable: the versions change whenever the program loads an MPI library.
template <class Entry>
bool make_writable(Entry* first, Entry* end) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(first) & ~(page - 1);
  return mprotect(reinterpret_cast<void*>(begin), reinterpret_cast<std::uintptr_t>(end) - begin,
                  PROT_READ | PROT_WRITE) == 0;
}

// Turns the wrappers' symbols into indirect functions. Nothing changes if the system does not allow it.
void take_over_symbols() {
  Own own;
  dl_iterate_phdr(find_own, &own);
  const SymbolTable& table = own.table;
  if (table.symbols == nullptr || table.names == nullptr || table.gnu_hash == nullptr || table.versions == nullptr ||
      own.is_code) {
    return;
  }
  const GnuHash lookup(table.gnu_hash);
  std::uint32_t end = lookup.first;
  for (std::uint32_t bucket = 0; bucket < lookup.buckets; ++bucket) {
    std::uint32_t index = lookup.bucket[bucket];
    if (index < lookup.first) continue;
    while ((lookup.chain[index - lookup.first] & 1) == 0) ++index;
    if (index + 1 > end) end = index + 1;
  }
  if (!make_writable(table.symbols + lookup.first, table.symbols + end) ||
      !make_writable(table.versions + lookup.first, table.versions + end)) {
    return;
  }
  for (std::uint32_t index = lookup.first; index < end && wrapper_count < most_wrappers; ++index) {
    ElfW(Sym)& symbol = table.symbols[index];
    const char* const name = table.names + symbol.st_name;
    if (symbol.st_shndx == SHN_UNDEF || !is_mpi(name)) continue;
    Wrapper& wrapper = wrappers[wrapper_count];
    wrapper.name = name;
    wrapper.hash = gnu_hash_of(name);
    wrapper.function = reinterpret_cast<void*>(own.base + symbol.st_value);
    wrapper.version = &table.versions[index];
    wrapper.visible_version = *wrapper.version;
    *wrapper.version = absent_version;
    symbol.st_value = reinterpret_cast<ElfW(Addr)>(resolvers[wrapper_count]) - own.base;
    symbol.st_info = ELF64_ST_INFO(ELF64_ST_BIND(symbol.st_info), STT_GNU_IFUNC);
    ++wrapper_count;
  }
}

}  // namespace

void match_mpi_libraries() {
  if (wrapper_count == 0) take_over_symbols();
  look_for_mpi();
}

}  // namespace paceline::inject

// The resolver of this indirect function runs while the recorder itself is relocated, which is before the program is:
// so the program's own weak references are right as well.
extern "C" {
// A sanitizer of the program replaces functions of the C library, and its replacements work only after it has started,
// which is after the relocation. There the constructor below comes first.
extern void __tsan_init() __attribute__((weak));
extern void __msan_init() __attribute__((weak));
extern void __asan_init() __attribute__((weak));

static void nothing_more() {}
__attribute__((used, no_sanitize("address", "thread", "undefined"))) static void (*at_relocation())() {
  const bool sanitized = __tsan_init != nullptr || __msan_init != nullptr || __asan_init != nullptr;
  if (!sanitized) paceline::inject::match_mpi_libraries();
  return nothing_more;
}
__attribute__((visibility("hidden"), ifunc("at_relocation"))) void paceline_relocated();
}
__attribute__((constructor)) static void paceline_match_mpi() {
  paceline_relocated();
  paceline::inject::match_mpi_libraries();
  if (getauxval(AT_SECURE) == 0 && getenv(paceline::record::env_output) != nullptr) {
    paceline::inject::report_static_mpi();
  }
}
