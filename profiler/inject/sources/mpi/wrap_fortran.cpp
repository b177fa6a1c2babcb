// MPI's functions for Fortran programs (mpif.h, the modules mpi and mpi_f08). Open MPI's Fortran functions call PMPI,
// so they need wrappers of their own. MPICH's call the C functions; the nested call is not recorded a second time.
//
// Fortran passes all arguments by reference, with the error code at the end. A handle of mpi_f08 is a structure with
// one integer, so it has the same layout.
#include "profiler/inject/core/control.h"
#include "profiler/inject/sources/mpi/call.h"
#include "profiler/inject/sources/mpi/session.h"
#include "profiler/inject/sources/mpi/signatures.h"
#include "profiler/inject/sources/mpi/words.h"

namespace paceline::inject {

#define WRAP_FORTRAN_AS(prefix, Name, symbol, more_words, more_names, ...)                     \
  PACELINE_EXPORT void prefix##_##symbol(PACELINE_WORDS(__VA_ARGS__), Word error more_words) { \
    using enum MpiRole;                                                                        \
    static constexpr MpiRow row(MpiId::Name, {__VA_ARGS__});                                   \
    static constinit RealFunction real{"p" #prefix "_" #symbol};                               \
    const Word words[most_words] = {PACELINE_NAMES(__VA_ARGS__), error more_names};            \
    call_mpi(real, row, words, true);                                                          \
  }
#define NOTHING
#define COMMA ,
#define WRAP_FORTRAN(Name, name, ...)                                \
  WRAP_FORTRAN_AS(mpi, Name, name##_, NOTHING, NOTHING, __VA_ARGS__) \
  WRAP_FORTRAN_AS(mpi, Name, name##_f08_, NOTHING, NOTHING, __VA_ARGS__)
// The lengths of up to two texts follow. Of a function with one text the second word is arbitrary and passed on.
#define WRAP_FORTRAN_TEXT(Name, name, ...)                                                                         \
  WRAP_FORTRAN_AS(mpi, Name, name##_, COMMA Word length COMMA Word second, COMMA length COMMA second, __VA_ARGS__) \
  WRAP_FORTRAN_AS(mpi, Name, name##_f08_, COMMA Word length COMMA Word second, COMMA length COMMA second, __VA_ARGS__)
#define WRAP_PERSISTENT_FORTRAN(Name, name, ...)                      \
  WRAP_FORTRAN(Name, name, __VA_ARGS__)                               \
  WRAP_FORTRAN_AS(mpix, Name, name##_, NOTHING, NOTHING, __VA_ARGS__) \
  WRAP_FORTRAN_AS(mpix, Name, name##_f08_, NOTHING, NOTHING, __VA_ARGS__)

// MPICH has functions with large counts only in C, and Open MPI 4 and 5 have none.
PACELINE_MPI_SIGNATURES(WRAP_FORTRAN, WRAP_FORTRAN_TEXT, WRAP_PERSISTENT_FORTRAN, WRAP_FORTRAN, WRAP_PERSISTENT_FORTRAN)

#define FORTRAN_SESSION(suffix)                                                                        \
  PACELINE_EXPORT void mpi_init_##suffix(Word error) {                                                 \
    const SessionCall session_call;                                                                    \
    if (session_call.is_outermost()) before_init();                                                    \
    static constexpr MpiRow row(MpiId::Init, {});                                                      \
    static constinit RealFunction real{"pmpi_init_" #suffix};                                          \
    const Word words[most_words] = {error};                                                            \
    call_mpi(real, row, words, true);                                                                  \
    if (session_call.is_outermost() && Arguments{row, words, true}.succeeded(0)) after_init();         \
  }                                                                                                    \
  PACELINE_EXPORT void mpi_init_thread_##suffix(Word required, Word provided, Word error) {            \
    const SessionCall session_call;                                                                    \
    if (session_call.is_outermost()) before_init();                                                    \
    static constexpr MpiRow row(MpiId::Init_thread, {MpiRole::_, MpiRole::_});                         \
    static constinit RealFunction real{"pmpi_init_thread_" #suffix};                                   \
    const Word words[most_words] = {required, provided, error};                                        \
    call_mpi(real, row, words, true);                                                                  \
    if (session_call.is_outermost() && Arguments{row, words, true}.succeeded(0)) after_init();         \
  }                                                                                                    \
  PACELINE_EXPORT void mpi_session_init_##suffix(Word info, Word handler, Word session, Word error) {  \
    const SessionCall session_call;                                                                    \
    if (session_call.is_outermost()) before_init();                                                    \
    static constexpr MpiRow row(MpiId::Session_init, {MpiRole::_, MpiRole::_, MpiRole::_});            \
    static constinit RealFunction real{"pmpi_session_init_" #suffix};                                  \
    const Word words[most_words] = {info, handler, session, error};                                    \
    call_mpi(real, row, words, true);                                                                  \
    if (session_call.is_outermost() && Arguments{row, words, true}.succeeded(0)) after_session_init(); \
  }                                                                                                    \
  PACELINE_EXPORT void mpi_finalize_##suffix(Word error) {                                             \
    const SessionCall session_call;                                                                    \
    if (session_call.is_outermost()) before_finalize();                                                \
    static constexpr MpiRow row(MpiId::Finalize, {});                                                  \
    static constinit RealFunction real{"pmpi_finalize_" #suffix};                                      \
    const Word words[most_words] = {error};                                                            \
    call_mpi(real, row, words, true);                                                                  \
    if (session_call.is_outermost()) after_finalize();                                                 \
  }
FORTRAN_SESSION()
FORTRAN_SESSION(f08_)

PACELINE_EXPORT void mpi_pcontrol_(const int* level) { set_recording(*level != 0); }
PACELINE_EXPORT void mpi_pcontrol_f08_(const int* level) { set_recording(*level != 0); }

}  // namespace paceline::inject
