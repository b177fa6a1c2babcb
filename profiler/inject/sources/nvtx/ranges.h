// The recorder's implementations of NVTX's functions (nvtx.cpp, names.cpp), for a second caller: script_ranges.cpp.
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

// In a forked child: resets a lock that another thread of the parent may have held.
void reset_script_ranges_in_child();

}  // namespace paceline::inject
