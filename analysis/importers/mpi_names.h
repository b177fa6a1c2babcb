// SPDX-License-Identifier: Apache-2.0
// MPI's functions by their names, for trace formats that name them.
#pragma once

#include <string_view>

#include "profiler/format/mpi_functions.h"

namespace paceline::analysis {

// "collective", "point-to-point", …: the category of a slice of this kind of function.
std::string_view mpi_category(format::MpiKind kind);

// "MPI_Allreduce" and "PMPI_Allreduce" -> "collective"; "" for a function that is not known.
std::string_view mpi_category(std::string_view function);

}  // namespace paceline::analysis
