/* libpaceline-nvtx.so: what NVTX loads (NVTX_INJECTION64_PATH). It passes NVTX on to the recorder if that is in the program.
 *
 * A static program, or one of another C library, loads this file, too: NVTX calls dlopen there as anywhere. The recorder
 * itself needs the C library of the program and thread-local storage, and would end such a program with SIGSEGV. So this
 * library needs nothing: no other library, no thread-local storage, no constructor. Its references are weak, and null where
 * the program has no such function. */
#include <stddef.h>

#define RTLD_NOW_ 2 /* of the GNU C library, the only one that the recorder is loaded into */

typedef int Initialize(const void* get_export_table);

/* In the recorder. It is found if the recorder was preloaded. */
extern Initialize paceline_initialize_nvtx __attribute__((weak));

extern const char* gnu_get_libc_version(void) __attribute__((weak));
extern char* getenv(const char* name) __attribute__((weak));
extern void* dlopen(const char* file, int mode) __attribute__((weak));
extern void* dlsym(void* library, const char* name) __attribute__((weak));

/* For a program that lost LD_PRELOAD, and for a namespace of dlmopen. */
static Initialize* load_recorder(void) {
  if (!gnu_get_libc_version || !getenv || !dlopen || !dlsym) return NULL;
  const char* path = getenv("PACELINE_RECORDER");
  void* recorder = path != NULL ? dlopen(path, RTLD_NOW_) : NULL;
  return recorder != NULL ? (Initialize*)dlsym(recorder, "paceline_initialize_nvtx") : NULL;
}

/* Called by NVTX at a program's first NVTX call. 1: the calls are recorded; 0: they do nothing. */
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(const void* get_export_table) {
  Initialize* const initialize = paceline_initialize_nvtx != NULL ? paceline_initialize_nvtx : load_recorder();
  return initialize != NULL ? initialize(get_export_table) : 0;
}
