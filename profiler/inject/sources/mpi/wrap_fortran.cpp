// SPDX-License-Identifier: Apache-2.0
// MPI's functions for Fortran programs (mpif.h, the modules mpi and mpi_f08), under their MPI and their PMPI names.
// Open MPI's Fortran functions call PMPI, MPICH's call the C functions; the nested call is not recorded a second time.
//
// Fortran passes all arguments by reference, with the error code at the end. A handle of mpi_f08 is a structure with
// one integer, so it has the same layout.
#include "profiler/inject/process/control.h"
#include "profiler/inject/sources/mpi/call.h"
#include "profiler/inject/sources/mpi/session.h"
#include "profiler/inject/sources/mpi/signatures.h"
#include "profiler/inject/sources/mpi/words.h"

namespace paceline::inject {

#define WRAP_FORTRAN_AS(prefix, Name, symbol, more_words, more_names, ...)                        \
  PACELINE_EXPORT void prefix##_##symbol(PACELINE_WORDS(__VA_ARGS__), Word error more_words) {    \
    using enum MpiRole;                                                                           \
    static constexpr MpiRow row(MpiId::Name, {__VA_ARGS__});                                      \
    static constinit RealFunction real{#prefix "_" #symbol};                                      \
    const Word words[most_words] = {PACELINE_NAMES(__VA_ARGS__), error more_names};               \
    call_mpi(real, row, words, true);                                                             \
  }                                                                                               \
  PACELINE_EXPORT void p##prefix##_##symbol(PACELINE_WORDS(__VA_ARGS__), Word error more_words) { \
    using enum MpiRole;                                                                           \
    static constexpr MpiRow row(MpiId::Name, {__VA_ARGS__});                                      \
    static constinit RealFunction real{"p" #prefix "_" #symbol};                                  \
    if (void* straight = straight_to(real)) {                                                     \
      using Real = void(PACELINE_WORDS(__VA_ARGS__), Word error more_words);                      \
      return reinterpret_cast<Real*>(straight)(PACELINE_NAMES(__VA_ARGS__), error more_names);    \
    }                                                                                             \
    const Word words[most_words] = {PACELINE_NAMES(__VA_ARGS__), error more_names};               \
    call_pmpi(real, row, words, true, PACELINE_CALL_SITE);                                        \
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

#define WRAP_INIT_FORTRAN(symbol, row, after, parameters, ...)          \
  PACELINE_EXPORT void symbol parameters {                              \
    const bool outermost = !is_nested();                                \
    if (outermost) before_init();                                       \
    static constinit RealFunction real{#symbol};                        \
    const Word words[most_words] = {__VA_ARGS__};                       \
    call_mpi(real, row, words, true);                                   \
    if (outermost && Arguments{row, words, true}.succeeded(0)) after(); \
  }
#define WRAP_FINALIZE_FORTRAN(symbol)            \
  PACELINE_EXPORT void symbol(Word error) {      \
    const bool outermost = !is_nested();         \
    if (outermost) before_finalize();            \
    static constinit RealFunction real{#symbol}; \
    const Word words[most_words] = {error};      \
    call_mpi(real, finalize_row, words, true);   \
    if (outermost) after_finalize();             \
  }
#define FORTRAN_SESSION(prefix, suffix)                                                                 \
  WRAP_INIT_FORTRAN(prefix##_init_##suffix, init_row, after_init, (Word error), error)                  \
  WRAP_INIT_FORTRAN(prefix##_init_thread_##suffix, init_thread_row, after_init,                         \
                    (Word required, Word provided, Word error), required, provided, error)              \
  WRAP_INIT_FORTRAN(prefix##_session_init_##suffix, session_init_row, after_session_init,               \
                    (Word info, Word handler, Word session, Word error), info, handler, session, error) \
  WRAP_FINALIZE_FORTRAN(prefix##_finalize_##suffix)
constexpr MpiRow init_row(MpiId::Init, {}), finalize_row(MpiId::Finalize, {}),
    init_thread_row(MpiId::Init_thread, {MpiRole::_, MpiRole::_}),
    session_init_row(MpiId::Session_init, {MpiRole::_, MpiRole::_, MpiRole::_});
FORTRAN_SESSION(mpi, )
FORTRAN_SESSION(pmpi, )
FORTRAN_SESSION(mpi, f08_)
FORTRAN_SESSION(pmpi, f08_)

// As MPI_Pcontrol of C.
#define WRAP_PCONTROL_FORTRAN(symbol)                                                                         \
  PACELINE_EXPORT void mpi_##symbol(const int* level) {                                                       \
    set_recording(*level != 0);                                                                               \
    const auto tools = reinterpret_cast<void (*)(const int*)>(find_in_tool("mpi_" #symbol, "pmpi_" #symbol)); \
    if (tools != nullptr) tools(level);                                                                       \
  }                                                                                                           \
  PACELINE_EXPORT void pmpi_##symbol(const int* level) { set_recording(*level != 0); }
WRAP_PCONTROL_FORTRAN(pcontrol_)
WRAP_PCONTROL_FORTRAN(pcontrol_f08_)

}  // namespace paceline::inject
