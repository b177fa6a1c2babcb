// usage: nvtx_ways WAY [PLUGIN …]: NVTX as programs use it. It knows nothing of Paceline.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NVTX_EXT_PAYLOAD_COMPATID 0x0103  // as NCCL has it
#include <nvtx3/nvToolsExtPayload.h>

typedef nvtxDomainHandle_t (*domain_function)(void);
typedef nvtxStringHandle_t (*string_function)(const char*);
typedef void (*push_function)(nvtxDomainHandle_t, nvtxStringHandle_t);
typedef void (*pop_function)(nvtxDomainHandle_t);

static void* function_of(void* library, const char* name) {
  void* found = library != NULL ? dlsym(library, name) : NULL;
  if (found == NULL) {
    fprintf(stderr, "%s: %s\n", name, dlerror());
    exit(9);
  }
  return found;
}

// Two libraries with NVTX, one after the other closed and opened again; handles of one are used in the other.
static int libraries(char** paths) {
  void* first = dlopen(paths[0], RTLD_NOW | RTLD_LOCAL);
  void* second = dlopen(paths[1], RTLD_NOW | RTLD_LOCAL);
  const nvtxDomainHandle_t domain = ((domain_function)function_of(first, "plugin_domain"))();
  if (((domain_function)function_of(second, "plugin_domain"))() != domain) return 2;
  char text[] = "crossing";
  const nvtxStringHandle_t name = ((string_function)function_of(first, "plugin_string"))(text);
  memset(text, 'x', sizeof text - 1);
  ((push_function)function_of(second, "plugin_push"))(domain, name);
  dlclose(first);
  ((push_function)function_of(second, "plugin_push"))(domain, name);
  for (int i = 0; i < 20; ++i) {
    first = dlopen(paths[0], RTLD_NOW | RTLD_LOCAL);
    ((push_function)function_of(first, "plugin_push"))(domain, name);
    ((pop_function)function_of(first, "plugin_pop"))(domain);
    dlclose(first);
  }
  nvtxDomainRangePop(domain);
  ((pop_function)function_of(second, "plugin_pop"))(domain);
  return 0;
}

static nvtxRangeId_t handed_over;

static void* short_lived(void* number) {
  nvtxRangePushA("short-lived");
  if (*(int*)number % 2 == 0) nvtxRangePop();  // others end with their range open
  if (*(int*)number == 0) handed_over = nvtxRangeStartA("handed over");
  nvtxMarkA("thread");
  return NULL;
}
static void* ends_it(void* unused) {
  nvtxRangeEnd(handed_over);
  return unused;
}

static int threads(void) {
  for (int number = 0; number < 100; ++number) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, short_lived, &number) != 0) return 3;
    pthread_join(thread, NULL);
  }
  pthread_t thread;
  if (pthread_create(&thread, NULL, ends_it, NULL) != 0) return 3;
  pthread_join(thread, NULL);
  return 0;
}

static void many_calls(void) {
  for (int i = 0; i < 10000; ++i) {
    nvtxRangePushA("late");
    nvtxNameOsThreadA(1, "late");
    nvtxDomainRegisterStringA(nvtxDomainCreateA("late domain"), "late string");
    nvtxRangePop();
  }
}
static void* never_stops(void* unused) {
  for (;;) {
    nvtxRangePushA("until the end");
    nvtxRangePop();
  }
  return unused;
}
__attribute__((destructor)) static void after_main(void) {
  if (handed_over == 77) many_calls();
}

// Calls from exit handlers and destructors, while another thread goes on.
static int late(void) {
  handed_over = 77;
  atexit(many_calls);
  pthread_t thread;
  if (pthread_create(&thread, NULL, never_stops, NULL) != 0) return 3;
  usleep(1000);
  nvtxMarkA("end of main");
  return 0;
}

// The layouts of NCCL's payloads, and its numbers.
enum { all_reduce = 5, send = 10, comm_init = 0, reduction = 24 };
static uint64_t own_id(int number) { return NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + (uint64_t)number; }

static void register_schema(nvtxDomainHandle_t domain, int number, const nvtxPayloadSchemaEntry_t* entries,
                            size_t count) {
  nvtxPayloadSchemaAttr_t schema = {0};
  schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
  schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  schema.entries = entries;
  schema.numEntries = count;
  schema.schemaId = own_id(number);
  nvtxPayloadSchemaRegister(domain, &schema);
}

static int nccl(void) {
  struct all_reduce_parameters {
    uint64_t communicator;
    size_t bytes;
    int operation;
  };
  struct send_parameters {
    uint64_t communicator;
    size_t bytes;
    int peer;
  };
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("NCCL");
  if (!nvtxDomainIsEnabled(domain)) return 4;
  const nvtxPayloadEnum_t operations[] = {{"Sum", 0, 0}, {"Product", 1, 0}, {"Max", 2, 0}};
  nvtxPayloadEnumAttr_t list = {0};
  list.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
                   NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID;
  list.entries = operations;
  list.numEntries = 3;
  list.sizeOfEnum = sizeof(int);
  list.schemaId = own_id(reduction);
  nvtxPayloadEnumRegister(domain, &list);
  const nvtxPayloadSchemaEntry_t reduce[] = {
      {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "NCCL communicator ID", NULL, 0, 0, NULL, NULL},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_SIZE, "Message size [bytes]", NULL, 0, 8, NULL, NULL},
      {0, own_id(reduction), "Reduction operation", NULL, 0, 16, NULL, NULL}};
  register_schema(domain, all_reduce, reduce, 3);
  const nvtxPayloadSchemaEntry_t peer[] = {
      {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "NCCL communicator ID", NULL, 0, 0, NULL, NULL},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_SIZE, "Message size [bytes]", NULL, 0, 8, NULL, NULL},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_INT, "Peer rank", NULL, 0, 16, NULL, NULL}};
  register_schema(domain, send, peer, 3);
  const nvtxPayloadSchemaEntry_t init[] = {
      {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "NCCL communicator ID", NULL, 0, 0, NULL, NULL},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_INT, "No. of ranks", NULL, 0, 8, NULL, NULL}};
  register_schema(domain, comm_init, init, 2);

  nvtxEventAttributes_t range = {0};
  range.version = NVTX_VERSION;
  range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  range.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  range.message.registered = nvtxDomainRegisterStringA(domain, "ncclCommInitRank");
  nvtxDomainRangePushEx(domain, &range);
  struct {
    uint64_t communicator;
    int ranks;
  } made = {0xfeedfacecafebeef, 8};
  const nvtxPayloadData_t result = {own_id(comm_init), sizeof made, &made};
  nvtxRangePopPayload(domain, &result, 1);

  range.payloadType = NVTX_PAYLOAD_TYPE_EXT;
  range.reserved0 = 1;
  for (int i = 0; i < 50; ++i) {
    const struct all_reduce_parameters sum = {0xfeedfacecafebeef, 4096u << (i % 10), i % 3};
    const nvtxPayloadData_t data = {own_id(all_reduce), sizeof sum, &sum};
    range.message.registered = nvtxDomainRegisterStringA(domain, "ncclAllReduce");
    range.payload.ullValue = (uint64_t)(uintptr_t)&data;
    nvtxDomainRangePushEx(domain, &range);
    nvtxDomainRangePop(domain);
  }
  const struct send_parameters to = {0xfeedfacecafebeef, 1024, 3};
  const nvtxPayloadData_t data = {own_id(send), sizeof to, &to};
  range.message.registered = nvtxDomainRegisterStringA(domain, "ncclSend");
  range.payload.ullValue = (uint64_t)(uintptr_t)&data;
  nvtxDomainRangePushEx(domain, &range);
  nvtxDomainRangePop(domain);
  return 0;
}

int main(int count, char** arguments) {
  const char* way = count > 1 ? arguments[1] : "";
  if (strcmp(way, "libraries") == 0) return libraries(arguments + 2);
  if (strcmp(way, "threads") == 0) return threads();
  if (strcmp(way, "late") == 0) return late();
  if (strcmp(way, "nccl") == 0) return nccl();
  return 8;
}
