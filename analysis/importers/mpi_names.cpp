// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/mpi_names.h"

#include <algorithm>
#include <iterator>

namespace paceline::analysis {

std::string_view mpi_category(format::MpiKind kind) {
  constexpr std::string_view names[] = {"management", "point-to-point", "wait", "collective", "one-sided", "file"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view mpi_category(std::string_view function) {
  if (function.starts_with("PMPI_")) function.remove_prefix(1);
  const auto* const found = std::ranges::find(format::mpi_functions, function, &format::MpiFunction::name);
  if (found == std::end(format::mpi_functions)) return function.starts_with("MPI_File_") ? "file" : "";
  return mpi_category(found->kind);
}

}  // namespace paceline::analysis
