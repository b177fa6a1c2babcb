// SPDX-License-Identifier: Apache-2.0
// Lets the library load on systems with glibc 2.28 (RHEL 8) and newer, though it is built with a newer one.
//
// glibc 2.34 moved libpthread and libdl into libc and gave their functions new version tags. The linker takes the
// newest tag, which older systems lack. Here each of these functions is replaced by one that is visible in this library
// only and calls the function with the oldest tag, which every glibc has. The replacement also serves the linked
// archives (zstd). On old systems those functions are in libpthread.so.0 and libdl.so.2, so the library lists both as
// needed.
#include <features.h>

#if defined(__GLIBC__) && defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#define SINCE_2_12 "GLIBC_2.12"
#define STAT_VERSION 1
#elif defined(__GLIBC__) && defined(__aarch64__)
#define OLDEST "GLIBC_2.17"
#define SINCE_2_12 "GLIBC_2.17"
#define STAT_VERSION 0
#endif

#ifdef OLDEST

// Parameters (at most four, in registers) and results pass through unchanged, so they need no types here.
#define OLD_SYMBOL(name, symbol, version)             \
  extern "C" long old_##name(long, long, long, long); \
  __asm__(".symver old_" #name ", " symbol "@" version);
#define HERE(name)                                                                                          \
  extern "C" __attribute__((visibility("hidden"))) long here_##name(long, long, long, long) __asm__(#name); \
  extern "C" long here_##name([[maybe_unused]] long a, [[maybe_unused]] long b, [[maybe_unused]] long c,    \
                              [[maybe_unused]] long d)
#define FORWARD(name, version)     \
  OLD_SYMBOL(name, #name, version) \
  HERE(name) { return old_##name(a, b, c, d); }

FORWARD(pthread_attr_setstacksize, OLDEST)
FORWARD(pthread_create, OLDEST)
FORWARD(pthread_detach, OLDEST)
FORWARD(pthread_getcpuclockid, OLDEST)
FORWARD(pthread_getspecific, OLDEST)
FORWARD(pthread_join, OLDEST)
FORWARD(pthread_key_create, OLDEST)
FORWARD(pthread_key_delete, OLDEST)
FORWARD(pthread_mutex_trylock, OLDEST)
FORWARD(pthread_once, OLDEST)
FORWARD(pthread_setname_np, SINCE_2_12)
FORWARD(pthread_setspecific, OLDEST)
FORWARD(pthread_sigmask, OLDEST)
FORWARD(dladdr, OLDEST)
FORWARD(dlclose, OLDEST)
FORWARD(dlerror, OLDEST)
FORWARD(dlopen, OLDEST)
FORWARD(dlsym, OLDEST)

// Before glibc 2.33 these functions had another name and the version of the structure as first parameter.
OLD_SYMBOL(fstat, "__fxstat", OLDEST)
OLD_SYMBOL(stat, "__xstat", OLDEST)
HERE(fstat) { return old_fstat(STAT_VERSION, a, b, 0); }
HERE(stat) { return old_stat(STAT_VERSION, a, b, 0); }

#endif
