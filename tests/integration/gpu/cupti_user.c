// SPDX-License-Identifier: Apache-2.0
// Stands for a library that uses CUPTI itself, as PyTorch's profiler does: it is linked with CUPTI, loaded by dlopen,
// and makes Kineto's calls in Kineto's order.
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>

static int kernels, buffers_of_others;
static uint8_t* mine;

static void CUPTIAPI request(uint8_t** buffer, size_t* size, size_t* most) {
  *size = 1 << 20;
  *most = 0;
  *buffer = mine = malloc(*size);
  for (size_t i = 0; i < *size; ++i) mine[i] = 0xff;  // CUPTI is not told that they are zeroed
}

static void CUPTIAPI complete(CUcontext context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid) {
  (void)context, (void)stream, (void)size;
  if (buffer != mine) {
    ++buffers_of_others;
    return;
  }
  CUpti_Activity* record = NULL;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    kernels += record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  }
  free(buffer);
}

static void CUPTIAPI ignore(void* data, CUpti_CallbackDomain domain, CUpti_CallbackId what, const void* about) {
  (void)data, (void)domain, (void)what, (void)about;
}

// Two profiles, of `launches` launches each, with a second between them. Prints what a user would see.
__attribute__((visibility("default"))) void profile_twice(void (*launch)(unsigned), unsigned launches,
                                                          void (*rest)(void)) {
  static CUpti_SubscriberHandle subscriber;
  const CUptiResult subscribed = cuptiSubscribe(&subscriber, ignore, NULL);
  for (int profile = 0; profile < 2; ++profile) {
    kernels = 0;
    const CUptiResult registered = cuptiActivityRegisterCallbacks(request, complete);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME);
    launch(launches);
    cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    cuptiActivityDisable(CUPTI_ACTIVITY_KIND_RUNTIME);
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    printf("subscribed %d, registered %d, %d kernels, %d buffers of others\n", (int)subscribed, (int)registered,
           kernels, buffers_of_others);
    rest();
  }
}
