// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/trainer/backend/cpu/simulated_processor.h"

#if defined(__x86_64__) && defined(__linux__)

#include <cpuid.h>
#include <link.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace paceline::train {
namespace {

using Byte = unsigned char;

constexpr Byte cpuid[]{0x0f, 0xa2}, xgetbv[]{0x0f, 0x01, 0xd0}, trap[]{0x0f, 0x0b};  // trap: UD2
constexpr std::size_t most = 64;
Byte *cpuids[most], *read_state;  // where the replaced instructions are
std::size_t count;
bool with_bf16;

bool is_replaced_cpuid(const Byte* place) { return std::find(cpuids, cpuids + count, place) != cpuids + count; }

void execute(int, siginfo_t*, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  auto* const place = reinterpret_cast<Byte*>(registers[REG_RIP]);
  if (place == read_state) {
    unsigned low = 0, high = 0;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    registers[REG_RAX] = low | 0xe6;  // the system saves the registers of SSE, AVX and AVX-512
    registers[REG_RDX] = high;
    registers[REG_RIP] += sizeof(xgetbv);
  } else if (is_replaced_cpuid(place)) {
    const auto leaf = static_cast<unsigned>(registers[REG_RAX]), part = static_cast<unsigned>(registers[REG_RCX]);
    unsigned a = 0, b = 0, c = 0, d = 0;
    __cpuid_count(leaf, part, a, b, c, d);
    if (leaf == 7 && part == 0) {
      b |= 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;  // AVX512F, DQ, CD, BW, VL
      c |= 1u << 11;                                              // VNNI
      a = std::max(a, 1u);                                        // the last part
    }
    if (leaf == 7 && part == 1 && with_bf16) a |= 1u << 5;
    registers[REG_RAX] = a;
    registers[REG_RBX] = b;
    registers[REG_RCX] = c;
    registers[REG_RDX] = d;
    registers[REG_RIP] += sizeof(cpuid);
  } else {
    static constexpr char message[] = "an instruction that this processor does not have was run\n";
    if (write(STDERR_FILENO, message, sizeof(message) - 1) < 0) _exit(2);
    _exit(1);
  }
}

// Replaces the instructions around the library's only XGETBV.
int replace(dl_phdr_info* library, std::size_t, void*) {
  if (std::strstr(library->dlpi_name, "libdnnl") == nullptr) return 0;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const auto& part = library->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    auto* const begin = reinterpret_cast<Byte*>(library->dlpi_addr + part.p_vaddr);
    Byte* const end = begin + part.p_filesz;
    Byte* const found = std::search(begin, end, xgetbv, xgetbv + sizeof(xgetbv));
    if (found == end || found - begin < 4096 || end - found < 4096) return 1;
    if (std::search(found + 1, end, xgetbv, xgetbv + sizeof(xgetbv)) != end) return 1;
    const auto page = static_cast<std::uintptr_t>(getpagesize());
    auto* const first = reinterpret_cast<Byte*>(reinterpret_cast<std::uintptr_t>(found - 4096) / page * page);
    const std::size_t bytes = 3 * std::max<std::size_t>(page, 4096);
    if (mprotect(first, bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return 1;
    for (Byte* at = found - 4096; count < most; at += sizeof(cpuid)) {
      at = std::search(at, found + 4096, cpuid, cpuid + sizeof(cpuid));
      if (at == found + 4096) break;
      cpuids[count++] = at;
      std::memcpy(at, trap, sizeof(trap));
    }
    std::memcpy(found, trap, sizeof(trap));
    mprotect(first, bytes, PROT_READ | PROT_EXEC);
    read_state = found;
    return 1;
  }
  return 1;
}

// Runs before the constructors of the libraries.
void begin(int, char**, char** environment) {
  const std::size_t length = std::strlen(simulated_processor);
  for (char** entry = environment; *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, simulated_processor, length) != 0 || (*entry)[length] != '=') continue;
    with_bf16 = std::strcmp(*entry + length + 1, "AVX512_CORE_BF16") == 0;
    struct sigaction action {};
    action.sa_sigaction = execute;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGILL, &action, nullptr);
    dl_iterate_phdr(replace, nullptr);
  }
}

__attribute__((section(".preinit_array"), used)) void (*const before_libraries)(int, char**, char**) = begin;

}  // namespace

bool processor_is_simulated() { return read_state != nullptr; }

}  // namespace paceline::train

#else

namespace paceline::train {
bool processor_is_simulated() { return false; }
}  // namespace paceline::train

#endif
