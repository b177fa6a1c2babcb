// SPDX-License-Identifier: Apache-2.0
// MPI's functions for C programs, which take the place of the library's (MPI standard, chapter 14), under their MPI and
// their PMPI names (call.h). All but a few are generated from the table.
#include "profiler/inject/process/control.h"
#include "profiler/inject/sources/mpi/call.h"
#include "profiler/inject/sources/mpi/session.h"
#include "profiler/inject/sources/mpi/signatures.h"
#include "profiler/inject/sources/mpi/words.h"

namespace paceline::inject {

#define WRAP_C_AS(Prefix, Name, suffix, large, ...)                             \
  PACELINE_EXPORT int Prefix##_##Name##suffix(PACELINE_WORDS(__VA_ARGS__)) {    \
    using enum MpiRole;                                                         \
    static constexpr MpiRow row(MpiId::Name, {__VA_ARGS__}, large);             \
    static constinit RealFunction real{#Prefix "_" #Name #suffix};              \
    const Word words[most_words] = {PACELINE_NAMES(__VA_ARGS__)};               \
    return call_mpi(real, row, words, false);                                   \
  }                                                                             \
  PACELINE_EXPORT int P##Prefix##_##Name##suffix(PACELINE_WORDS(__VA_ARGS__)) { \
    using enum MpiRole;                                                         \
    using Real = int(PACELINE_WORDS(__VA_ARGS__));                              \
    static constexpr MpiRow row(MpiId::Name, {__VA_ARGS__}, large);             \
    static constinit RealFunction real{"P" #Prefix "_" #Name #suffix};          \
    if (void* straight = straight_to(real)) {                                   \
      return reinterpret_cast<Real*>(straight)(PACELINE_NAMES(__VA_ARGS__));    \
    }                                                                           \
    const Word words[most_words] = {PACELINE_NAMES(__VA_ARGS__)};               \
    return call_pmpi(real, row, words, false, PACELINE_CALL_SITE);              \
  }
#define WRAP_C(Name, name, ...) WRAP_C_AS(MPI, Name, , false, __VA_ARGS__)
#define WRAP_PERSISTENT_C(Name, name, ...)   \
  WRAP_C_AS(MPI, Name, , false, __VA_ARGS__) \
  WRAP_C_AS(MPIX, Name, , false, __VA_ARGS__)
#define WRAP_LARGE_C(Name, name, ...) \
  WRAP_C(Name, name, __VA_ARGS__)     \
  WRAP_C_AS(MPI, Name, _c, true, __VA_ARGS__)
#define WRAP_LARGE_PERSISTENT_C(Name, name, ...) \
  WRAP_PERSISTENT_C(Name, name, __VA_ARGS__)     \
  WRAP_C_AS(MPI, Name, _c, true, __VA_ARGS__)

PACELINE_MPI_SIGNATURES(WRAP_C, WRAP_C, WRAP_PERSISTENT_C, WRAP_LARGE_C, WRAP_LARGE_PERSISTENT_C)

// MPI_Init and MPI_Finalize do more than the others (session.h), once: a tool's MPI_Init calls PMPI_Init.
#define WRAP_INIT_C(Symbol, Name, after, ...)                     \
  PACELINE_EXPORT int Symbol(PACELINE_WORDS(__VA_ARGS__)) {       \
    const bool outermost = !is_nested();                          \
    if (outermost) before_init();                                 \
    using enum MpiRole;                                           \
    static constexpr MpiRow row(MpiId::Name, {__VA_ARGS__});      \
    static constinit RealFunction real{#Symbol};                  \
    const Word words[most_words] = {PACELINE_NAMES(__VA_ARGS__)}; \
    const int result = call_mpi(real, row, words, false);         \
    if (outermost && result == 0) after();                        \
    return result;                                                \
  }
WRAP_INIT_C(MPI_Init, Init, after_init, _, _)
WRAP_INIT_C(PMPI_Init, Init, after_init, _, _)
WRAP_INIT_C(MPI_Init_thread, Init_thread, after_init, _, _, _, _)
WRAP_INIT_C(PMPI_Init_thread, Init_thread, after_init, _, _, _, _)
WRAP_INIT_C(MPI_Session_init, Session_init, after_session_init, _, _, _)
WRAP_INIT_C(PMPI_Session_init, Session_init, after_session_init, _, _, _)
#define WRAP_FINALIZE_C(Symbol)                           \
  PACELINE_EXPORT int Symbol() {                          \
    const bool outermost = !is_nested();                  \
    if (outermost) before_finalize();                     \
    static constexpr MpiRow row(MpiId::Finalize, {});     \
    static constinit RealFunction real{#Symbol};          \
    const Word words[most_words] = {};                    \
    const int result = call_mpi(real, row, words, false); \
    if (outermost) after_finalize();                      \
    return result;                                        \
  }
WRAP_FINALIZE_C(MPI_Finalize)
WRAP_FINALIZE_C(PMPI_Finalize)

// The standard's own switch for profiling tools: 0 turns recording off, anything else on. A tool behind the recorder
// gets the call, too, with as many arguments as registers hold.
PACELINE_EXPORT int MPI_Pcontrol(const int level, Word b, Word c, Word d, Word e, Word f) {
  set_recording(level != 0);
  const auto tools = reinterpret_cast<int (*)(int, ...)>(find_in_tool("MPI_Pcontrol", "PMPI_Pcontrol"));
  return tools != nullptr ? tools(level, b, c, d, e, f) : 0;
}
PACELINE_EXPORT int PMPI_Pcontrol(const int level, ...) {
  set_recording(level != 0);
  return 0;
}

}  // namespace paceline::inject
