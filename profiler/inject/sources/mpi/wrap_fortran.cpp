// MPI's functions for Fortran programs (mpif.h, the modules mpi and mpi_f08). Open MPI's call PMPI by themselves, so
// they are wrapped on their own; MPICH's call the C functions, inside of which the wrapper's call is not recorded
// twice.
//
// Fortran passes everything by reference, with the error code at the end. The handles of mpi_f08 are one integer in a
// structure, so they look the same.
#include "profiler/inject/core/control.h"
#include "profiler/inject/sources/mpi/call.h"
#include "profiler/inject/sources/mpi/session.h"
#include "profiler/inject/sources/mpi/signatures.h"
#include "profiler/inject/sources/mpi/words.h"

namespace paceline::inject {

#define WRAP_FORTRAN_AS(prefix, count, Name, symbol, letters, more_words, more_names) \
  PACELINE_EXPORT void prefix##_##symbol(WORDS_##count, Word error more_words) {      \
    static constexpr MpiRow row(MpiId::Name, letters);                                \
    static constinit RealFunction real{"p" #prefix "_" #symbol};                      \
    const Word words[most_words] = {NAMES_##count, error more_names};                 \
    call_mpi(real, row, words, true);                                                 \
  }
#define NOTHING
#define COMMA ,
#define WRAP_FORTRAN(count, Name, name, letters)                        \
  WRAP_FORTRAN_AS(mpi, count, Name, name##_, letters, NOTHING, NOTHING) \
  WRAP_FORTRAN_AS(mpi, count, Name, name##_f08_, letters, NOTHING, NOTHING)
// The lengths of up to two texts follow. Where there is one, the second word is whatever lies there, and passed on.
#define WRAP_FORTRAN_TEXT(count, Name, name, letters)                                                                 \
  WRAP_FORTRAN_AS(mpi, count, Name, name##_, letters, COMMA Word length COMMA Word second, COMMA length COMMA second) \
  WRAP_FORTRAN_AS(mpi, count, Name, name##_f08_, letters, COMMA Word length COMMA Word second,                        \
                  COMMA length COMMA second)
#define WRAP_PERSISTENT_FORTRAN(count, Name, name, letters)              \
  WRAP_FORTRAN(count, Name, name, letters)                               \
  WRAP_FORTRAN_AS(mpix, count, Name, name##_, letters, NOTHING, NOTHING) \
  WRAP_FORTRAN_AS(mpix, count, Name, name##_f08_, letters, NOTHING, NOTHING)

// MPICH's functions with large counts are C's; Open MPI 4 and 5 have none.
PACELINE_MPI_SIGNATURES(WRAP_FORTRAN, WRAP_FORTRAN_TEXT, WRAP_PERSISTENT_FORTRAN, WRAP_FORTRAN, WRAP_PERSISTENT_FORTRAN)

#define FORTRAN_SESSION(suffix)                                                                       \
  PACELINE_EXPORT void mpi_init_##suffix(Word error) {                                                \
    before_init();                                                                                    \
    static constexpr MpiRow row(MpiId::Init, "");                                                     \
    static constinit RealFunction real{"pmpi_init_" #suffix};                                         \
    const Word words[most_words] = {error};                                                           \
    call_mpi(real, row, words, true);                                                                 \
    if (Arguments{row, words, true}.succeeded(0)) after_init();                                       \
  }                                                                                                   \
  PACELINE_EXPORT void mpi_init_thread_##suffix(Word required, Word provided, Word error) {           \
    before_init();                                                                                    \
    static constexpr MpiRow row(MpiId::Init_thread, "..");                                            \
    static constinit RealFunction real{"pmpi_init_thread_" #suffix};                                  \
    const Word words[most_words] = {required, provided, error};                                       \
    call_mpi(real, row, words, true);                                                                 \
    if (Arguments{row, words, true}.succeeded(0)) after_init();                                       \
  }                                                                                                   \
  PACELINE_EXPORT void mpi_session_init_##suffix(Word info, Word handler, Word session, Word error) { \
    before_init();                                                                                    \
    static constexpr MpiRow row(MpiId::Session_init, "...");                                          \
    static constinit RealFunction real{"pmpi_session_init_" #suffix};                                 \
    const Word words[most_words] = {info, handler, session, error};                                   \
    call_mpi(real, row, words, true);                                                                 \
    if (Arguments{row, words, true}.succeeded(0)) after_session_init();                               \
  }                                                                                                   \
  PACELINE_EXPORT void mpi_finalize_##suffix(Word error) {                                            \
    before_finalize();                                                                                \
    static constexpr MpiRow row(MpiId::Finalize, "");                                                 \
    static constinit RealFunction real{"pmpi_finalize_" #suffix};                                     \
    const Word words[most_words] = {error};                                                           \
    call_mpi(real, row, words, true);                                                                 \
    after_finalize();                                                                                 \
  }
FORTRAN_SESSION()
FORTRAN_SESSION(f08_)

PACELINE_EXPORT void mpi_pcontrol_(const int* level) { set_recording(*level != 0); }
PACELINE_EXPORT void mpi_pcontrol_f08_(const int* level) { set_recording(*level != 0); }

}  // namespace paceline::inject
