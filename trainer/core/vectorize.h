// SPDX-License-Identifier: Apache-2.0
// Marks a function of plain loops to be compiled for several instruction sets; the loader of the program chooses the
// best. It has no effect under sanitizers, whose run-time library is not ready when the choice is made.
#pragma once

#if defined(__x86_64__) && defined(__ELF__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if !defined(__has_feature)
#define PACELINE_VECTORIZE __attribute__((target_clones("avx512f", "avx2", "default")))
#elif !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
#define PACELINE_VECTORIZE __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#endif
#ifndef PACELINE_VECTORIZE
#define PACELINE_VECTORIZE
#endif
