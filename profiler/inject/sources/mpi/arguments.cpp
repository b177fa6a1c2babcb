// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/mpi/arguments.h"

#include <string.h>

namespace paceline::inject {

Handle Arguments::comm_in(MpiRole role) const {
  if (!has(role)) return 0;
  return fortran ? mpi.comm_of_fortran(integer(role)) : mpi.load(pointer<const void>(role));
}

Handle Arguments::type_in(MpiRole role, std::uint32_t index) const {
  if (fortran) return mpi.type_of_fortran(pointer<const int>(role)[index]);
  return mpi.int_handles ? pointer<const std::uint32_t>(role)[index] : pointer<const Handle>(role)[index];
}

Handle Arguments::key(MpiRole role, bool file) const {
  if (fortran) return mpi.key_of_fortran(integer(role), file);
  return file ? word(role) : mpi.handle(word(role));
}

Handle Arguments::key_in(MpiRole role, int index, bool file) const {
  if (fortran) return mpi.key_of_fortran(pointer<const int>(role)[index], file);
  return mpi.int_handles && !file ? pointer<const std::uint32_t>(role)[index] : pointer<const Handle>(role)[index];
}

std::string_view Arguments::text(MpiRole role) const {
  const char* characters = pointer<const char>(role);
  if (characters == nullptr) return {};
  if (!fortran) return {characters, strlen(characters)};
  // The length is a hidden parameter after the error code, and blanks pad the text.
  std::string_view filled(characters, static_cast<std::uint32_t>(words[row.parameters + 1]));
  return filled.substr(0, filled.find_last_not_of(' ') + 1);
}

}  // namespace paceline::inject
