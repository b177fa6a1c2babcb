// SPDX-License-Identifier: Apache-2.0
// MPI's functions by their names, for trace formats that name them.
#pragma once

#include <cstdint>
#include <string_view>

#include "profiler/format/mpi_functions.h"

namespace paceline::analysis {

// "collective", "point-to-point", …: the category of a slice of this kind of function.
std::string_view mpi_category(format::MpiKind kind);

// "MPI_Allreduce" and "PMPI_Allreduce" -> "collective"; "" for a function that is not known.
std::string_view mpi_category(std::string_view function);

// FNV-1a, the same in every process: the identity of a communicator that has only a name.
std::uint64_t name_identity(std::string_view name);

}  // namespace paceline::analysis
