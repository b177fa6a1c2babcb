// SPDX-License-Identifier: Apache-2.0
// The recorder's implementations of NVTX's functions (nvtx.cpp, names.cpp), for a second caller: script/ranges.cpp.
#pragma once

#include "profiler/inject/sources/nvtx/handles.h"

namespace paceline::inject {

void NVTX_API domain_mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* given);
int NVTX_API domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* given);
int NVTX_API domain_pop(nvtxDomainHandle_t domain);
nvtxRangeId_t NVTX_API domain_start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* given);
void NVTX_API domain_end(nvtxDomainHandle_t domain, nvtxRangeId_t range);

nvtxDomainHandle_t NVTX_API create_domain(const char* text);
void NVTX_API name_category(nvtxDomainHandle_t domain, std::uint32_t category, const char* text);

// The same for a range whose scope (format::pack_scope) is known, with and without a number. `domain` is
// domain_of(handle). A script makes its ranges with these, because they touch less memory than the functions above.
[[gnu::hot]] void push_scope(std::uint32_t domain, std::uint64_t scope);
[[gnu::hot]] void push_scope(std::uint32_t domain, std::uint64_t scope, std::int64_t number);
[[gnu::hot]] void pop_scope(std::uint32_t domain);

}  // namespace paceline::inject
