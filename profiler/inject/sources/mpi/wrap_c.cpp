// MPI's functions for C programs, which take the place of the library's (PMPI, MPI standard chapter 14): each records
// the call and calls the next function of that name. All but a few are generated from the table.
//
// PMPI's functions are wrapped as well, for other tools. A tool that is preloaded or a shared library of the program is
// called by our MPI_X, and its PMPI_X is then inside a recorded call. A tool in the program itself comes before our
// MPI_X, and only its PMPI_X comes here.
#include "profiler/inject/core/control.h"
#include "profiler/inject/sources/mpi/call.h"
#include "profiler/inject/sources/mpi/session.h"
#include "profiler/inject/sources/mpi/signatures.h"
#include "profiler/inject/sources/mpi/words.h"

namespace paceline::inject {

#define WRAP_ONE(symbol, real_symbol, behind, Name, large, ...)      \
  PACELINE_EXPORT int symbol(PACELINE_WORDS(__VA_ARGS__)) {          \
    using enum MpiRole;                                              \
    static constexpr MpiRow row(MpiId::Name, {__VA_ARGS__}, large);  \
    static constinit RealFunction real{real_symbol, Behind::behind}; \
    const Word words[most_words] = {PACELINE_NAMES(__VA_ARGS__)};    \
    return call_mpi(real, row, words, false);                        \
  }
#define WRAP_C_AS(Prefix, Name, suffix, large, ...)                                                \
  WRAP_ONE(Prefix##_##Name##suffix, "P" #Prefix "_" #Name #suffix, next, Name, large, __VA_ARGS__) \
  WRAP_ONE(P##Prefix##_##Name##suffix, "P" #Prefix "_" #Name #suffix, library, Name, large, __VA_ARGS__)
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

// MPI_Init and MPI_Finalize do more than the others (session.h).
#define WRAP_ONE_INIT(symbol, behind, Name, after, ...)                \
  PACELINE_EXPORT int symbol(PACELINE_WORDS(__VA_ARGS__)) {            \
    const SessionCall call;                                            \
    if (call.is_outermost()) before_init();                            \
    using enum MpiRole;                                                \
    static constexpr MpiRow row(MpiId::Name, {__VA_ARGS__});           \
    static constinit RealFunction real{"PMPI_" #Name, Behind::behind}; \
    const Word words[most_words] = {PACELINE_NAMES(__VA_ARGS__)};      \
    const int result = call_mpi(real, row, words, false);              \
    if (call.is_outermost() && result == 0) after();                   \
    return result;                                                     \
  }
#define WRAP_INIT_C(Name, after, ...)                       \
  WRAP_ONE_INIT(MPI_##Name, next, Name, after, __VA_ARGS__) \
  WRAP_ONE_INIT(PMPI_##Name, library, Name, after, __VA_ARGS__)
WRAP_INIT_C(Init, after_init, _, _)
WRAP_INIT_C(Init_thread, after_init, _, _, _, _)
WRAP_INIT_C(Session_init, after_session_init, _, _, _)

#define WRAP_FINALIZE(symbol, behind)                                    \
  PACELINE_EXPORT int symbol() {                                         \
    const SessionCall call;                                              \
    if (call.is_outermost()) before_finalize();                          \
    static constexpr MpiRow row(MpiId::Finalize, {});                    \
    static constinit RealFunction real{"PMPI_Finalize", Behind::behind}; \
    const Word words[most_words] = {};                                   \
    const int result = call_mpi(real, row, words, false);                \
    if (call.is_outermost()) after_finalize();                           \
    return result;                                                       \
  }
WRAP_FINALIZE(MPI_Finalize, next)
WRAP_FINALIZE(PMPI_Finalize, library)

// The standard's own switch for profiling tools: 0 turns recording off, anything else on.
PACELINE_EXPORT int MPI_Pcontrol(const int level, ...) {
  set_recording(level != 0);
  return 0;
}

}  // namespace paceline::inject
