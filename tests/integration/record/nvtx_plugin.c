// SPDX-License-Identifier: Apache-2.0
// A shared library that uses NVTX. Its own copy of NVTX disappears when the library is closed.
#include <nvtx3/nvToolsExt.h>

static nvtxDomainHandle_t domain;
static nvtxStringHandle_t string;

nvtxDomainHandle_t plugin_domain(void) { return domain = nvtxDomainCreateA("plugin"); }

nvtxStringHandle_t plugin_string(const char* text) { return string = nvtxDomainRegisterStringA(domain, text); }

void plugin_push(nvtxDomainHandle_t in, nvtxStringHandle_t name) {
  nvtxEventAttributes_t attributes = {0};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = name;
  nvtxDomainRangePushEx(in, &attributes);
}

void plugin_pop(nvtxDomainHandle_t in) { nvtxDomainRangePop(in); }

// Runs when the library is closed or after the program's end.
__attribute__((destructor)) static void closing(void) {
  nvtxMarkA("closing");
  nvtxDomainDestroy(domain);
}
