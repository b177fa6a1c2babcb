// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/mpi/library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

namespace paceline::inject {

std::atomic<MpiDepth> mpi_depth{MpiDepth::nothing};
MpiLibrary mpi;

namespace {

struct Search {
  const char* symbol;
  void* found;
};

// Searches every loaded library whose file name contains MPI. RTLD_NEXT does not search a library that a Python module
// has loaded.
int look_into(dl_phdr_info* object, std::size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  const char* slash = strrchr(object->dlpi_name, '/');
  const char* name = slash != nullptr ? slash + 1 : object->dlpi_name;
  if (strncmp(name, "libmpi", 6) != 0 && strncmp(name, "libpmpi", 7) != 0) return 0;
  void* library = dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return 0;
  search->found = dlsym(library, search->symbol);
  dlclose(library);
  return search->found != nullptr;
}

template <class Function>
bool find(Function& function, const char* symbol) {
  function = reinterpret_cast<Function>(find_in_mpi(symbol));
  return function != nullptr;
}

// Finds an object of the library. A program that is not position-independent has its own copy, which is then in use.
void* find_object(const char* symbol) {
  void* found = dlsym(RTLD_DEFAULT, symbol);
  return found != nullptr ? found : find_in_mpi(symbol);
}

bool find_functions() {
  return find(mpi.comm_size, "PMPI_Comm_size") && find(mpi.comm_remote_size, "PMPI_Comm_remote_size") &&
         find(mpi.comm_rank, "PMPI_Comm_rank") && find(mpi.comm_test_inter, "PMPI_Comm_test_inter") &&
         find(mpi.comm_group, "PMPI_Comm_group") && find(mpi.comm_remote_group, "PMPI_Comm_remote_group") &&
         find(mpi.comm_get_name, "PMPI_Comm_get_name") && find(mpi.group_size, "PMPI_Group_size") &&
         find(mpi.group_translate_ranks, "PMPI_Group_translate_ranks") && find(mpi.group_free, "PMPI_Group_free") &&
         find(mpi.type_size, "PMPI_Type_size") && find(mpi.topo_test, "PMPI_Topo_test") &&
         find(mpi.cartdim_get, "PMPI_Cartdim_get") && find(mpi.graph_neighbors_count, "PMPI_Graph_neighbors_count") &&
         find(mpi.dist_graph_neighbors_count, "PMPI_Dist_graph_neighbors_count");
}

// Open MPI's predefined handles, such as MPI_COMM_WORLD, are the addresses of these objects.
bool take_open_mpi() {
  const auto object = [](Handle& handle, const char* symbol) {
    handle = reinterpret_cast<Handle>(find_object(symbol));
    return handle != 0;
  };
  static const void* in_place = nullptr;
  in_place = find_object("mpi_fortran_in_place_");
  if (in_place != nullptr) mpi.fortran_in_place = &in_place;
  mpi.c_in_place = reinterpret_cast<const void*>(1);
  object(mpi.complete_request, "ompi_request_empty");
  find(mpi.request_c2f, "PMPI_Request_c2f");
  mpi.any_source = -1;
  mpi.proc_null = -2;
  mpi.root = -4;
  mpi.cartesian = 1;
  mpi.graph = 2;
  mpi.dist_graph = 3;
  return find(mpi.comm_f2c, "PMPI_Comm_f2c") && find(mpi.type_f2c, "PMPI_Type_f2c") &&
         object(mpi.world, "ompi_mpi_comm_world") && object(mpi.self, "ompi_mpi_comm_self") &&
         object(mpi.null_comm, "ompi_mpi_comm_null") && object(mpi.null_type, "ompi_mpi_datatype_null") &&
         object(mpi.null_request, "ompi_request_null");
}

// The values are those of mpi.h of MPICH 3.1 and newer, which all members of the ABI initiative share.
bool take_mpich() {
  mpi.int_handles = true;
  mpi.fortran_in_place = static_cast<const void* const*>(find_object("MPIR_F_MPI_IN_PLACE"));
  mpi.c_in_place = reinterpret_cast<const void*>(-1);
  mpi.any_source = -2;
  mpi.proc_null = -1;
  mpi.root = -3;
  mpi.graph = 1;
  mpi.cartesian = 2;
  mpi.dist_graph = 3;
  mpi.world = 0x44000000;
  mpi.self = 0x44000001;
  mpi.null_comm = 0x04000000;
  mpi.null_type = 0x0c000000;
  mpi.null_request = 0x2c000000;
  return true;
}

bool says_mpich(const char* version) {
  for (const char* word : {"MPICH", "Intel(R) MPI", "MVAPICH"}) {
    if (strstr(version, word) != nullptr) return true;
  }
  return false;
}

// True for a library with the standard ABI of MPI 5, which is neither of the two, whatever name the library gives.
bool has_standard_abi() {
  int (*get_version)(int*, int*) = nullptr;
  int major = -1, minor = -1;
  return find(get_version, "PMPI_Abi_get_version") && get_version(&major, &minor) == 0 && major > 0;
}

// An MPICH handle has the kind of its object in bits 26 to 29 and its storage class (1 to 3) in bits 30 and 31.
bool is_mpich_handle(Handle handle, unsigned kind) {
  return handle >> 32 == 0 && (handle >> 26 & 15) == kind && handle >> 30 != 0;
}

}  // namespace

bool MpiLibrary::is_type(Handle type) const {
  return int_handles ? is_mpich_handle(type, 3) : type != 0 && type != null_type;
}

bool MpiLibrary::is_comm(Handle comm) const {
  return int_handles ? is_mpich_handle(comm, 1) : comm != 0 && comm != null_comm;
}

void* find_in_mpi(const char* symbol) {
  if (void* next = dlsym(RTLD_NEXT, symbol)) return next;
  Search search{symbol, nullptr};
  dl_iterate_phdr(look_into, &search);
  return search.found;
}

void* find_in_tool(const char* symbol, const char* pmpi_symbol) {
  void* function = find_in_mpi(symbol);
  return function != find_in_mpi(pmpi_symbol) ? function : nullptr;
}

MpiDepth open_mpi_library(char* version, std::size_t capacity) {
  char text[8192] = "";  // MPI_MAX_LIBRARY_VERSION_STRING of MPICH, the longest
  int length = 0;
  int (*get_version)(char*, int*) = nullptr;
  if (find(get_version, "PMPI_Get_library_version")) get_version(text, &length);
  const bool mpich = says_mpich(text);
  text[strcspn(text, "\n")] = '\0';
  for (char* at = text; *at != '\0'; ++at) {
    if (*at == '\t') *at = ' ';
  }
  snprintf(version, capacity, "%s", text);
  if (!find_functions() || has_standard_abi()) return MpiDepth::times;
  if (find_object("ompi_mpi_comm_world") != nullptr) return take_open_mpi() ? MpiDepth::full : MpiDepth::times;
  if (mpich) return take_mpich() ? MpiDepth::full : MpiDepth::times;
  return MpiDepth::times;
}

}  // namespace paceline::inject
