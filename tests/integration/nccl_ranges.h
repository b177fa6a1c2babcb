// SPDX-License-Identifier: Apache-2.0
/* NVTX ranges as NCCL makes them of its calls: its domain, its schemas and their numbers. For C and C++. */
#pragma once

/* NOLINTBEGIN(modernize-use-nullptr): C has none */

#define NVTX_EXT_PAYLOAD_COMPATID 0x0103 /* as NCCL has it */
#include <nvtx3/nvToolsExtPayload.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { nccl_comm_init = 0, nccl_all_reduce = 5, nccl_send = 10, nccl_reduction = 24 };
enum { nccl_sum = 0, nccl_product = 1, nccl_max = 2 };

struct nccl_reduce_payload {
  uint64_t communicator;
  size_t bytes;
  int operation;
};
struct nccl_peer_payload {
  uint64_t communicator;
  size_t bytes;
  int peer;
};
struct nccl_init_payload {
  uint64_t communicator;
  int ranks;
};

static nvtxDomainHandle_t nccl_domain;

static inline uint64_t nccl_schema(int number) {
  return (uint64_t)NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + (uint64_t)number;
}

static inline void nccl_register(int number, const nvtxPayloadSchemaEntry_t* entries, size_t count) {
  nvtxPayloadSchemaAttr_t schema;
  memset(&schema, 0, sizeof schema);
  schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
  schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  schema.entries = entries;
  schema.numEntries = count;
  schema.schemaId = nccl_schema(number);
  nvtxPayloadSchemaRegister(nccl_domain, &schema);
}

/* 0 where nobody listens to the domain. */
static inline int nccl_ranges_begin(void) {
  static const nvtxPayloadEnum_t operations[] = {
      {"Sum", nccl_sum, 0}, {"Product", nccl_product, 0}, {"Max", nccl_max, 0}};
  static const nvtxPayloadSchemaEntry_t init[] = {
      {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "NCCL communicator ID", NULL, 0, 0, NULL, NULL},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_INT, "No. of ranks", NULL, 0, 8, NULL, NULL}};
  nvtxPayloadSchemaEntry_t with_size[] = {
      {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "NCCL communicator ID", NULL, 0, 0, NULL, NULL},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_SIZE, "Message size [bytes]", NULL, 0, 8, NULL, NULL},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_INT, "Peer rank", NULL, 0, 16, NULL, NULL}};
  nvtxPayloadEnumAttr_t list;
  nccl_domain = nvtxDomainCreateA("NCCL");
  if (!nvtxDomainIsEnabled(nccl_domain)) return 0;
  memset(&list, 0, sizeof list);
  list.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
                   NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID;
  list.entries = operations;
  list.numEntries = 3;
  list.sizeOfEnum = sizeof(int);
  list.schemaId = nccl_schema(nccl_reduction);
  nvtxPayloadEnumRegister(nccl_domain, &list);
  nccl_register(nccl_comm_init, init, 2);
  nccl_register(nccl_send, with_size, 3);
  with_size[2].type = nccl_schema(nccl_reduction);
  with_size[2].name = "Reduction operation";
  nccl_register(nccl_all_reduce, with_size, 3);
  return 1;
}

/* payload may be NULL: ncclGroupStart and the like have none. */
static inline void nccl_push(const char* function, int schema, const void* payload, size_t bytes) {
  const nvtxPayloadData_t data = {nccl_schema(schema), bytes, payload};
  nvtxEventAttributes_t range;
  memset(&range, 0, sizeof range);
  range.version = NVTX_VERSION;
  range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  range.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  range.message.registered = nvtxDomainRegisterStringA(nccl_domain, function);
  if (payload != NULL) {
    range.payloadType = NVTX_PAYLOAD_TYPE_EXT;
    range.reserved0 = 1;
    range.payload.ullValue = (uint64_t)(uintptr_t)&data;
  }
  nvtxDomainRangePushEx(nccl_domain, &range);
}
static inline void nccl_pop(void) { nvtxDomainRangePop(nccl_domain); }

/* What ncclCommInitRank made is known when it ends. */
static inline void nccl_communicator_made(uint64_t communicator, int ranks) {
  const struct nccl_init_payload made = {communicator, ranks};
  const nvtxPayloadData_t data = {nccl_schema(nccl_comm_init), sizeof made, &made};
  nccl_push("ncclCommInitRank", 0, NULL, 0);
  nvtxRangePopPayload(nccl_domain, &data, 1);
}
/* NOLINTEND(modernize-use-nullptr) */
