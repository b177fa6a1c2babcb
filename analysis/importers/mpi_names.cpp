// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/mpi_names.h"

#include <algorithm>
#include <iterator>

namespace paceline::analysis {

std::string_view mpi_category(format::MpiKind kind) {
  switch (kind) {
    case format::MpiKind::management:
      return "management";
    case format::MpiKind::point_to_point:
      return "point-to-point";
    case format::MpiKind::wait:
      return "wait";
    case format::MpiKind::collective:
      return "collective";
    case format::MpiKind::one_sided:
      return "one-sided";
    case format::MpiKind::file:
      return "file";
  }
  return "";
}

std::string_view mpi_category(std::string_view function) {
  if (function.starts_with("PMPI_")) function.remove_prefix(1);
  const auto* const found = std::ranges::find(format::mpi_functions, function, &format::MpiFunction::name);
  if (found == std::end(format::mpi_functions)) return function.starts_with("MPI_File_") ? "file" : "";
  return mpi_category(found->kind);
}

}  // namespace paceline::analysis
