// SPDX-License-Identifier: Apache-2.0
// Winograd's code for processors with AVX-512.
#if defined(__x86_64__)

#define PACELINE_WINOGRAD_CODE avx512_blocks_of_16
#define PACELINE_WINOGRAD_NAME "winograd:avx512"
#define PACELINE_WINOGRAD_TARGET "avx512f"
#define PACELINE_WINOGRAD_VECTOR __m512
#define PACELINE_WINOGRAD_NUMBER float
#define PACELINE_WINOGRAD_RUNS_HERE __builtin_cpu_supports("avx512f")
#include "trainer/backend/cpu/winograd_code.h"

#define PACELINE_WINOGRAD_CODE avx512_bf16_blocks_of_16
#define PACELINE_WINOGRAD_NAME "winograd:avx512_bf16"
#define PACELINE_WINOGRAD_TARGET "avx512f,avx512bf16"
#define PACELINE_WINOGRAD_VECTOR __m512
#define PACELINE_WINOGRAD_NUMBER Bf16
#define PACELINE_WINOGRAD_RUNS_HERE (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bf16"))
#include "trainer/backend/cpu/winograd_code.h"

#endif
