// SPDX-License-Identifier: Apache-2.0
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

// What is known of a place in the code: who calls from it, or which function it lies in.
enum class Place : std::uint64_t {
  unknown,
  of_program,  // in the function itself or another form of it; or the program calls from there
  of_tool,     // in another MPI function; or a tool calls from there
  of_library,  // the MPI library calls from there
  shared,      // the callers of its function decide
  elsewhere,   // in no MPI function
};

// One word for each known place: its address, the number of the MPI function that is called, and what is known.
class Places {
 public:
  template <class Judge>
  Place find(const void* site, format::MpiId id, Judge judge) {
    const std::uint64_t key = key_of(site, id);
    std::atomic<std::uint64_t>& word = words_[key * 0x9e3779b97f4a7c15 >> (64 - size_bits)];
    const std::uint64_t found = word.load(std::memory_order_relaxed);
    if ((found & ((std::uint64_t{1} << answer_bit) - 1)) == key) return static_cast<Place>(found >> answer_bit);
    const Place place = judge();
    word.store(key | static_cast<std::uint64_t>(place) << answer_bit, std::memory_order_relaxed);
    return place;
  }

 private:
  static constexpr int size_bits = 10, address_bits = 48, answer_bit = address_bits + 12;
  static std::uint64_t key_of(const void* site, format::MpiId id) {
    constexpr std::uint64_t address = (std::uint64_t{1} << address_bits) - 1;
    return (reinterpret_cast<std::uintptr_t>(site) & address) | static_cast<std::uint64_t>(id) << address_bits;
  }
  std::atomic<std::uint64_t> words_[1 << size_bits];
};
Places sites, frames;

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

// The tool that the program's calls of this function reach before the recorder, or nullptr.
const void* tool_before(const char* symbol) {
  const void* first = object_of(dlsym(RTLD_DEFAULT, symbol + 1));
  return first != object_of(reinterpret_cast<const void*>(&tool_before)) ? first : nullptr;
}

// The function around a return address.
Place judge_frame(const void* site, format::MpiId id) {
  Dl_info info{};
  const void* inside = static_cast<const char*>(site) - 1;  // the return address may be the next function's
  if (dladdr(inside, &info) == 0 || info.dli_sname == nullptr) return Place::elsewhere;
  if (info.dli_fbase == object_of(reinterpret_cast<const void*>(&judge_frame))) return Place::elsewhere;
  if (!is_mpi_function(info.dli_sname)) return Place::elsewhere;
  const format::MpiFunction* function = format::find_mpi_function(static_cast<std::uint32_t>(id));
  return is_form_of(info.dli_sname, function->name.data()) ? Place::of_program : Place::of_tool;
}

// The innermost MPI function on the stack.
Place judge_stack(format::MpiId id) {
  void* stack[48];
  const int depth = &backtrace != nullptr ? backtrace(stack, sizeof stack / sizeof *stack) : 0;
  for (int at = 0; at < depth; ++at) {
    const void* site = stack[at];
    const Place place = frames.find(site, id, [&] { return judge_frame(site, id); });
    if (place != Place::elsewhere) return place;
  }
  return Place::elsewhere;
}

Place judge_site(const void* site, const char* symbol, const void* real, format::MpiId id) {
  const void* caller = object_of(site);
  if (caller != nullptr && caller == object_of(real)) return Place::of_library;
  if (is_fortran_library(site)) return Place::of_program;
  if (const Place own = judge_frame(site, id); own != Place::elsewhere) return own;
  if (judge_stack(id) != Place::elsewhere) return Place::shared;
  const void* tool = tool_before(symbol);
  if (tool == nullptr) return Place::of_tool;
  return caller == tool ? Place::shared : Place::of_program;
}

}  // namespace

MpiCaller find_caller(const void* site, const char* symbol, const void* real, format::MpiId id) {
  Place place = sites.find(site, id, [&] { return judge_site(site, symbol, real, id); });
  if (place == Place::shared) place = judge_stack(id);
  if (place == Place::elsewhere) place = tool_before(symbol) != nullptr ? Place::of_program : Place::of_tool;
  return place == Place::of_library ? MpiCaller::library
         : place == Place::of_tool  ? MpiCaller::tool
                                    : MpiCaller::program;
}

}  // namespace paceline::inject
