// SPDX-License-Identifier: Apache-2.0
// The functions that Python calls through ctypes for NVTX ranges, and that a program calls in several copies of this
// library, each in a namespace of its own (dlmopen). -DWITH_MPI: it uses MPI, too.
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#ifdef WITH_MPI
#include <mpi.h>
#endif

static pthread_key_t key;
__attribute__((constructor)) static void make_key(void) { pthread_key_create(&key, NULL); }

void make_ranges(const char* name, int count) {
#ifdef WITH_MPI
  int initialized = 0;
  MPI_Initialized(&initialized);
#endif
  for (int i = 0; i < count; ++i) {
    nvtxRangePushA(name);
    nvtxRangePop();
  }
}

void begin_range(const char* name) { nvtxRangePushA(name); }
void end_range(void) { nvtxRangePop(); }

static void* thread(void* name) {
  make_ranges(name, 3);
  return pthread_getspecific(key);
}

// Makes 3 ranges in this thread and 3 in another one. Returns 0 if both find their values of the key as they left them.
int make_ranges_in_threads(const char* name) {
  pthread_t other;
  void* found = NULL;
  if (pthread_getspecific(key) != NULL) return 1;
  pthread_setspecific(key, &key);
  make_ranges(name, 3);
  const int kept = pthread_getspecific(key) == &key;
  pthread_setspecific(key, NULL);  // the C library keeps one value for the first keys of all namespaces
  if (!kept || pthread_create(&other, NULL, thread, (void*)name) != 0) return 1;
  pthread_join(other, &found);
  return found != NULL;
}
