#include "profiler/inject/sources/mpi/callers.h"

#include <dlfcn.h>
#include <string.h>
#include <strings.h>

#include <atomic>
#include <cstdint>

#include "profiler/inject/sources/mpi/library.h"

extern "C" int backtrace(void**, int) __attribute__((weak));  // not every C library has it

namespace paceline::inject {
namespace {

// One word for each known place: its address, the function's number and the answer.
constexpr std::size_t places = 1024;
std::atomic<std::uint64_t> known[places];
constexpr int address_bits = 48, function_bits = 12;

std::uint64_t key_of(const void* site, format::MpiId id) {
  constexpr std::uint64_t address = (std::uint64_t{1} << address_bits) - 1;
  return (reinterpret_cast<std::uintptr_t>(site) & address) | static_cast<std::uint64_t>(id) << address_bits;
}

const void* object_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

// True for MPI's Fortran functions. In many MPI libraries they are an object of their own.
bool is_fortran_library(const void* site) {
  Dl_info info{};
  if (dladdr(site, &info) == 0 || info.dli_fname == nullptr) return false;
  void* object = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (object == nullptr) return false;
  void* function = dlsym(object, "pmpi_init_");
  dlclose(object);
  return function != nullptr && object_of(function) == info.dli_fbase;
}

bool begins(const char* text, const char* start) { return strncasecmp(text, start, strlen(start)) == 0; }

// True for a function that the MPI library has, too, under its PMPI name.
bool is_mpi_function(const char* symbol) {
  if (!begins(symbol, "MPI_") && !begins(symbol, "MPIX_")) return false;
  char name[80] = {symbol[0] == 'm' ? 'p' : 'P'};
  const std::size_t length = strlen(symbol);
  if (length + 2 > sizeof name) return false;
  memcpy(name + 1, symbol, length + 1);
  return find_in_mpi(name) != nullptr;
}

// True if both are forms of one function: for C and Fortran, with large and with small counts.
bool is_form_of(const char* symbol, const char* function) {
  const char* name = strchr(symbol, '_');
  const char* wanted = strchr(function, '_');
  if (name == nullptr || wanted == nullptr || !begins(name, wanted)) return false;
  const char* rest = name + strlen(wanted);
  for (const char* ending : {"", "_", "__", "_c", "_f08_", "_f08ts_"}) {
    if (strcasecmp(rest, ending) == 0) return true;
  }
  return false;
}

// True if the program's calls of this function reach another tool before the recorder.
bool has_tool_before(const char* symbol) {
  const void* first = dlsym(RTLD_DEFAULT, symbol + 1);
  return first != nullptr && object_of(first) != object_of(reinterpret_cast<const void*>(&has_tool_before));
}

MpiCaller judge(const void* site, const char* symbol, const void* real, format::MpiId id) {
  const void* caller = object_of(site);
  if (caller != nullptr && caller == object_of(real)) return MpiCaller::library;
  if (is_fortran_library(site)) return MpiCaller::program;
  void* stack[48];
  const int depth = &backtrace != nullptr ? backtrace(stack, sizeof stack / sizeof *stack) : 0;
  const void* own = object_of(reinterpret_cast<const void*>(&judge));
  for (int at = 0; at < depth; ++at) {
    Dl_info info{};
    const void* inside = static_cast<const char*>(stack[at]) - 1;  // the return address may be the next function's
    if (dladdr(inside, &info) == 0 || info.dli_sname == nullptr || info.dli_fbase == own) continue;
    if (!is_mpi_function(info.dli_sname)) continue;
    const format::MpiFunction* function = format::find_mpi_function(static_cast<std::uint32_t>(id));
    return is_form_of(info.dli_sname, function->name.data()) ? MpiCaller::program : MpiCaller::tool;
  }
  return has_tool_before(symbol) ? MpiCaller::program : MpiCaller::tool;
}

}  // namespace

MpiCaller find_caller(const void* site, const char* symbol, const void* real, format::MpiId id) {
  const std::uint64_t key = key_of(site, id);
  std::atomic<std::uint64_t>& place = known[key * 0x9e3779b97f4a7c15 >> 54];
  const std::uint64_t found = place.load(std::memory_order_relaxed);
  constexpr int answer_bit = address_bits + function_bits;
  if ((found & ((std::uint64_t{1} << answer_bit) - 1)) == key) return static_cast<MpiCaller>(found >> answer_bit);
  const MpiCaller caller = judge(site, symbol, real, id);
  place.store(key | static_cast<std::uint64_t>(caller) << answer_bit, std::memory_order_relaxed);
  return caller;
}

}  // namespace paceline::inject
