// SPDX-License-Identifier: Apache-2.0
// Winograd's code for processors with AVX2.
#if defined(__x86_64__)

#define PACELINE_WINOGRAD_CODE avx2_blocks_of_8
#define PACELINE_WINOGRAD_NAME "winograd:avx2"
#define PACELINE_WINOGRAD_TARGET "avx2,fma"
#define PACELINE_WINOGRAD_VECTOR __m256
#define PACELINE_WINOGRAD_NUMBER float
#define PACELINE_WINOGRAD_RUNS_HERE (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#include "trainer/backend/cpu/winograd_code.h"

// The codes for AVX-512 with other vectors. The tests run them on processors that have no AVX-512.
#define PACELINE_WINOGRAD_CODE avx2_blocks_of_16
#define PACELINE_WINOGRAD_NAME "winograd:avx2"
#define PACELINE_WINOGRAD_TARGET "avx2,fma"
#define PACELINE_WINOGRAD_VECTOR TwoVectors
#define PACELINE_WINOGRAD_NUMBER float
#define PACELINE_WINOGRAD_RUNS_HERE (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#include "trainer/backend/cpu/winograd_code.h"

#define PACELINE_WINOGRAD_CODE avx2_bf16_blocks_of_16
#define PACELINE_WINOGRAD_NAME "winograd:avx2_bf16"
#define PACELINE_WINOGRAD_TARGET "avx2,fma"
#define PACELINE_WINOGRAD_VECTOR TwoVectors
#define PACELINE_WINOGRAD_NUMBER Bf16
#define PACELINE_WINOGRAD_RUNS_HERE (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#include "trainer/backend/cpu/winograd_code.h"

#endif
