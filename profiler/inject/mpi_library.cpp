#include "profiler/inject/mpi_library.h"

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

// Looks into every loaded library whose file name says MPI: where a Python module brought the library along, it is not
// in the scope that RTLD_NEXT searches.
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

// An object of the library: a program that is not position-independent has its own copy, which then is the one in use.
template <class Object>
bool find_object(Object& object, const char* symbol) {
  object = reinterpret_cast<Object>(dlsym(RTLD_DEFAULT, symbol));
  return object != nullptr || find(object, symbol);
}

bool find_open_mpi() {
  find_object(mpi.fortran_in_place, "mpi_fortran_in_place_");
  return find(mpi.comm_size, "PMPI_Comm_size") && find(mpi.comm_remote_size, "PMPI_Comm_remote_size") &&
         find(mpi.comm_rank, "PMPI_Comm_rank") && find(mpi.comm_test_inter, "PMPI_Comm_test_inter") &&
         find(mpi.comm_group, "PMPI_Comm_group") && find(mpi.comm_get_name, "PMPI_Comm_get_name") &&
         find(mpi.group_size, "PMPI_Group_size") && find(mpi.group_translate_ranks, "PMPI_Group_translate_ranks") &&
         find(mpi.group_free, "PMPI_Group_free") && find(mpi.type_size, "PMPI_Type_size") &&
         find(mpi.comm_f2c, "PMPI_Comm_f2c") && find(mpi.type_f2c, "PMPI_Type_f2c") &&
         find_object(mpi.world, "ompi_mpi_comm_world") && find_object(mpi.self, "ompi_mpi_comm_self") &&
         find_object(mpi.null_comm, "ompi_mpi_comm_null") && find_object(mpi.null_type, "ompi_mpi_datatype_null");
}

}  // namespace

void* find_in_mpi(const char* symbol) {
  if (void* next = dlsym(RTLD_NEXT, symbol)) return next;
  Search search{symbol, nullptr};
  dl_iterate_phdr(look_into, &search);
  return search.found;
}

MpiDepth open_mpi_library(char* version, std::size_t capacity) {
  char text[8192] = "";  // MPI_MAX_LIBRARY_VERSION_STRING of MPICH, the longest
  int length = 0;
  int (*get_version)(char*, int*) = nullptr;
  if (find(get_version, "PMPI_Get_library_version")) get_version(text, &length);
  text[strcspn(text, "\n")] = '\0';
  snprintf(version, capacity, "%s", text);
  if (strncmp(text, "Open MPI", 8) == 0 && find_open_mpi()) return MpiDepth::full;
  return MpiDepth::times;
}

}  // namespace paceline::inject
