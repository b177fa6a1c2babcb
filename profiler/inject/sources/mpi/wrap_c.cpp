// MPI's functions for C programs, which take the place of the library's (PMPI, MPI standard chapter 14): each records
// the call and calls the real function under its PMPI name. All but a few are generated from the table.
#include "profiler/inject/core/control.h"
#include "profiler/inject/sources/mpi/call.h"
#include "profiler/inject/sources/mpi/session.h"
#include "profiler/inject/sources/mpi/signatures.h"
#include "profiler/inject/sources/mpi/words.h"

namespace paceline::inject {

#define WRAP_C_AS(Prefix, Name, suffix, large, ...)                          \
  PACELINE_EXPORT int Prefix##_##Name##suffix(PACELINE_WORDS(__VA_ARGS__)) { \
    using enum MpiRole;                                                      \
    static constexpr MpiRow row(MpiId::Name, {__VA_ARGS__}, large);          \
    static constinit RealFunction real{"P" #Prefix "_" #Name #suffix};       \
    const Word words[most_words] = {PACELINE_NAMES(__VA_ARGS__)};            \
    return call_mpi(real, row, words, false);                                \
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

// MPI_Init and MPI_Finalize do more than the others (session.h).
#define WRAP_INIT_C(Name, after, ...)                             \
  PACELINE_EXPORT int MPI_##Name(PACELINE_WORDS(__VA_ARGS__)) {   \
    before_init();                                                \
    using enum MpiRole;                                           \
    static constexpr MpiRow row(MpiId::Name, {__VA_ARGS__});      \
    static constinit RealFunction real{"PMPI_" #Name};            \
    const Word words[most_words] = {PACELINE_NAMES(__VA_ARGS__)}; \
    const int result = call_mpi(real, row, words, false);         \
    if (result == 0) after();                                     \
    return result;                                                \
  }
WRAP_INIT_C(Init, after_init, _, _)
WRAP_INIT_C(Init_thread, after_init, _, _, _, _)
WRAP_INIT_C(Session_init, after_session_init, _, _, _)
PACELINE_EXPORT int MPI_Finalize() {
  before_finalize();
  static constexpr MpiRow row(MpiId::Finalize, {});
  static constinit RealFunction real{"PMPI_Finalize"};
  const Word words[most_words] = {};
  const int result = call_mpi(real, row, words, false);
  after_finalize();
  return result;
}

// The standard's own switch for profiling tools: 0 turns recording off, anything else on.
PACELINE_EXPORT int MPI_Pcontrol(const int level, ...) {
  set_recording(level != 0);
  return 0;
}

}  // namespace paceline::inject
