// MPI's functions for C programs, defined in the program's place (PMPI, MPI standard chapter 14): the call is recorded
// and the real function called under its PMPI name. All but a few are generated from the table.
#include "profiler/inject/core/control.h"
#include "profiler/inject/sources/mpi/call.h"
#include "profiler/inject/sources/mpi/session.h"
#include "profiler/inject/sources/mpi/signatures.h"
#include "profiler/inject/sources/mpi/words.h"

namespace paceline::inject {

#define WRAP_C_AS(Prefix, count, Name, suffix, letters, large)               \
  PACELINE_EXPORT int Prefix##_##Name##suffix(WORDS_##count) {               \
    static constexpr MpiRow row(MpiId::Name, letters, large);                \
    static_assert(row.parameters == (count), "a letter for each parameter"); \
    static constinit RealFunction real{"P" #Prefix "_" #Name #suffix};       \
    const Word words[most_words] = {NAMES_##count};                          \
    return call_mpi(real, row, words, false);                                \
  }
#define WRAP_C(count, Name, name, letters) WRAP_C_AS(MPI, count, Name, , letters, false)
#define WRAP_PERSISTENT_C(count, Name, name, letters) \
  WRAP_C_AS(MPI, count, Name, , letters, false)       \
  WRAP_C_AS(MPIX, count, Name, , letters, false)
#define WRAP_LARGE_C(count, Name, name, letters) \
  WRAP_C(count, Name, name, letters)             \
  WRAP_C_AS(MPI, count, Name, _c, letters, true)
#define WRAP_LARGE_PERSISTENT_C(count, Name, name, letters) \
  WRAP_PERSISTENT_C(count, Name, name, letters)             \
  WRAP_C_AS(MPI, count, Name, _c, letters, true)

PACELINE_MPI_SIGNATURES(WRAP_C, WRAP_C, WRAP_PERSISTENT_C, WRAP_LARGE_C, WRAP_LARGE_PERSISTENT_C)

// MPI_Init and MPI_Finalize do more than others: mpi_session.h.
PACELINE_EXPORT int MPI_Init(WORDS_2) {
  before_init();
  static constexpr MpiRow row(MpiId::Init, "..");
  static constinit RealFunction real{"PMPI_Init"};
  const Word words[most_words] = {NAMES_2};
  const int result = call_mpi(real, row, words, false);
  if (result == 0) after_init();
  return result;
}
PACELINE_EXPORT int MPI_Init_thread(WORDS_4) {
  before_init();
  static constexpr MpiRow row(MpiId::Init_thread, "....");
  static constinit RealFunction real{"PMPI_Init_thread"};
  const Word words[most_words] = {NAMES_4};
  const int result = call_mpi(real, row, words, false);
  if (result == 0) after_init();
  return result;
}
PACELINE_EXPORT int MPI_Session_init(WORDS_3) {
  before_init();
  static constexpr MpiRow row(MpiId::Session_init, "...");
  static constinit RealFunction real{"PMPI_Session_init"};
  const Word words[most_words] = {NAMES_3};
  const int result = call_mpi(real, row, words, false);
  if (result == 0) after_session_init();
  return result;
}
PACELINE_EXPORT int MPI_Finalize() {
  before_finalize();
  static constexpr MpiRow row(MpiId::Finalize, "");
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
