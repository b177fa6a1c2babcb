// SPDX-License-Identifier: Apache-2.0
/* libpaceline-nvtx.so: what NVTX loads (NVTX_INJECTION64_PATH). It passes NVTX on to the recorder if that is in the
 * program.
 *
 * A static program, or one of another C library, loads this file, too: NVTX calls dlopen there as anywhere. The
 * recorder itself needs the C library of the program and thread-local storage, and would end such a program with
 * SIGSEGV. So this library needs nothing: no other library, no thread-local storage, no constructor. Its references are
 * weak, and null where the program has no such function. */
#include <stddef.h>

/* RTLD_NOW and LM_ID_BASE of the GNU C library, the only one that the recorder is loaded into. */
#define RTLD_NOW_ 2
#define FIRST_NAMESPACE_ 0

typedef int Initialize(void* of_nvtx);

/* In the recorder. They are found if the recorder was preloaded. */
extern Initialize paceline_initialize_nvtx __attribute__((weak));
extern Initialize paceline_initialize_nvtx_extension __attribute__((weak));

extern const char* gnu_get_libc_version(void) __attribute__((weak));
extern char* getenv(const char* name) __attribute__((weak));
extern void* dlmopen(long namespace, const char* file, int mode) __attribute__((weak));
extern int MPI_Init(int* count, char*** arguments) __attribute__((weak));
extern void* dlsym(void* library, const char* name) __attribute__((weak));

/* The recorder in the program's first namespace, where one serves all namespaces of dlmopen: a recorder in each would
 * use up the thread-local storage that the C library keeps for them, and dlmopen would fail. It is loaded there if the
 * program lost LD_PRELOAD. */
static Initialize* in_recorder(const char* name) {
  if (!gnu_get_libc_version || !getenv || !dlmopen || !dlsym) return NULL;
  const char* path = getenv("PACELINE_RECORDER");
  void* recorder = path != NULL ? dlmopen(FIRST_NAMESPACE_, path, RTLD_NOW_) : NULL;
  if (recorder == NULL) return NULL;
  void (*report)(void) = NULL;
  if (MPI_Init) *(void**)&report = dlsym(recorder, "paceline_report_unseen_mpi");
  if (report) report();
  return (Initialize*)dlsym(recorder, name);
}

static int pass_on(Initialize* preloaded, const char* name, void* of_nvtx) {
  Initialize* const initialize = preloaded != NULL ? preloaded : in_recorder(name);
  return initialize != NULL ? initialize(of_nvtx) : 0;
}

/* Called by NVTX at a program's first NVTX call, and at the first call of an extension of NVTX. 1: the calls are
 * recorded; 0: they do nothing. */
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(void* get_export_table) {
  return pass_on(paceline_initialize_nvtx, "paceline_initialize_nvtx", get_export_table);
}
__attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(void* module) {
  return pass_on(paceline_initialize_nvtx_extension, "paceline_initialize_nvtx_extension", module);
}
