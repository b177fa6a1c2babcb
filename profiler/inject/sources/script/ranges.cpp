// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/script/ranges.h"
#include "profiler/inject/process/lifecycle.h"

#include <pthread.h>
#include <string.h>

#include "profiler/inject/buffer/hot.h"
#include "profiler/inject/process/starts.h"
#include "profiler/inject/sources/nvtx/payload.h"
#include "profiler/inject/sources/nvtx/ranges.h"
#include "profiler/inject/sources/nvtx/schemas.h"
#include "profiler/inject/sources/sources.h"
#include "profiler/inject/sources/watch/hang.h"

namespace paceline::inject {
namespace {

constexpr std::uint32_t most_script_categories = 64;

pthread_mutex_t script_lock = PTHREAD_MUTEX_INITIALIZER;
PACELINE_HOT std::atomic<bool> script_attached{false};
nvtxDomainHandle_t torch_domain = nullptr;
PACELINE_HOT std::uint32_t torch_domain_number = 0;    // domain_of(torch_domain)
PACELINE_HOT std::uint32_t own_domain_number = 0;      // of the domain "script"
std::uint32_t category_names[most_script_categories];  // name id by category - 1
std::uint32_t categories_used = 0;

struct CollectiveFields {
  std::uint64_t communicator, bytes, sequence, members, request;
};
struct MessageFields {
  std::uint64_t communicator, bytes;
  std::int64_t peer, tag;
  std::uint64_t request;
};
struct WaitFields {
  std::uint64_t request, last_request;
};
std::uint64_t collective_schema = 0, message_schema = 0, wait_schema = 0;

// All fields have eight bytes, one after the other.
template <std::size_t count>
std::uint64_t schema_of(const char* name, const char* const (&fields)[count], std::uint64_t signed_fields = 0) {
  nvtxPayloadSchemaEntry_t entries[count] = {};
  for (std::size_t i = 0; i < count; ++i) {
    entries[i].type = (signed_fields >> i & 1) != 0 ? NVTX_PAYLOAD_ENTRY_TYPE_INT64 : NVTX_PAYLOAD_ENTRY_TYPE_UINT64;
    if (strcmp(fields[i], "communicator") == 0) entries[i].type = NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE;
    entries[i].name = fields[i];
    entries[i].offset = 8 * i;
  }
  nvtxPayloadSchemaAttr_t attributes{};
  attributes.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                         NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                         NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE;
  attributes.name = name;
  attributes.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  attributes.entries = entries;
  attributes.numEntries = count;
  attributes.payloadStaticSize = 8 * count;
  return register_schema(number_of(domain_of(torch_domain)), attributes);
}

nvtxEventAttributes_t attributes_of(std::uint64_t kind) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.category = static_cast<std::uint32_t>(kind >> 32);
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = to_handle<nvtxStringHandle_t>(static_cast<std::uint32_t>(kind));
  return attributes;
}

// The kind's attributes with the fields as payload.
struct WithFields {
  template <class Fields>
  WithFields(std::uint64_t kind, std::uint64_t schema, const Fields& fields)
      : payload{schema, sizeof fields, &fields}, attributes(attributes_of(kind)) {
    attributes.payloadType = NVTX_PAYLOAD_TYPE_EXT;
    attributes.reserved0 = 1;
    attributes.payload.ullValue = reinterpret_cast<std::uintptr_t>(&payload);
  }
  WithFields(const WithFields&) = delete;

  nvtxPayloadData_t payload;
  nvtxEventAttributes_t attributes;
};

bool is_attached() { return script_attached.load(std::memory_order_relaxed); }

std::uint64_t scope_of(std::uint64_t kind) {
  return format::pack_scope(static_cast<std::uint32_t>(kind), narrow(static_cast<std::uint32_t>(kind >> 32)),
                            number_of(torch_domain_number));
}

std::uint64_t own_scope(std::uint64_t kind) {
  return format::pack_scope(static_cast<std::uint32_t>(kind), 0, number_of(own_domain_number));
}

constexpr std::uint64_t name_in(std::uint64_t kind) { return static_cast<std::uint32_t>(kind); }

}  // namespace

void note_rank(std::int32_t rank, std::int32_t ranks) {
  if (is_attached() && file_is_open()) record_rank(rank, ranks, false);
}

void mark_kind(std::uint64_t kind) {
  if (!is_attached()) return;
  const nvtxEventAttributes_t attributes = attributes_of(kind);
  domain_mark(torch_domain, &attributes);
}

void mark_value(std::uint64_t kind, double value) {
  if (!is_attached()) return;
  nvtxEventAttributes_t attributes = attributes_of(kind);
  attributes.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
  attributes.payload.dValue = value;
  domain_mark(torch_domain, &attributes);
}

void push_collective(std::uint64_t kind, std::uint64_t communicator, std::uint64_t bytes, std::uint64_t sequence,
                     std::uint64_t members) {
  if (!is_attached()) return;
  const CollectiveFields fields{name_in(communicator), bytes, sequence, members, 0};
  const WithFields event(kind, collective_schema, fields);
  domain_push(torch_domain, &event.attributes);
}

std::uint64_t start_collective(std::uint64_t kind, std::uint64_t communicator, std::uint64_t bytes,
                               std::uint64_t sequence, std::uint64_t members, std::uint64_t request) {
  if (!is_attached()) return left_out_range;
  const CollectiveFields fields{name_in(communicator), bytes, sequence, members, request};
  const WithFields event(kind, collective_schema, fields);
  return domain_start(torch_domain, &event.attributes);
}

std::uint64_t start_message(std::uint64_t kind, std::uint64_t communicator, std::uint64_t bytes, std::int64_t peer,
                            std::int64_t tag, std::uint64_t request) {
  if (!is_attached()) return left_out_range;
  const MessageFields fields{name_in(communicator), bytes, peer, tag, request};
  const WithFields event(kind, message_schema, fields);
  return domain_start(torch_domain, &event.attributes);
}

void end_range(std::uint64_t range) {
  if (is_attached()) domain_end(torch_domain, range);
}

void push_wait(std::uint64_t kind, std::uint64_t first, std::uint64_t last) {
  if (!is_attached()) return;
  const WaitFields fields{first, last};
  const WithFields event(kind, wait_schema, fields);
  domain_push(torch_domain, &event.attributes);
}

bool open_for_script() {
  if (script_attached.load(std::memory_order_acquire)) return file_is_open();
  const StartInProgress start;
  if (!open_recorder()) return false;
  pthread_mutex_lock(&script_lock);
  if (!script_attached.load(std::memory_order_relaxed)) {
    torch_domain = create_domain("torch");
    torch_domain_number = domain_of(torch_domain);
    own_domain_number = domain_of(create_domain("script"));
    collective_schema = schema_of("collective", {"communicator", "bytes", "sequence", "members", "request"});
    message_schema = schema_of("message", {"communicator", "bytes", "peer", "tag", "request"}, 0b1100);
    wait_schema = schema_of("wait", {"request", "last_request"});
    note_script_collectives(number_of(torch_domain_number), schema_number(collective_schema));
    note_progress();  // the watch begins
    script_attached.store(true, std::memory_order_release);
  }
  pthread_mutex_unlock(&script_lock);
  return true;
}

// A kind holds the id of the name in its lower half, and the category in its upper half.
std::uint64_t kind_of(const char* name, const char* category) {
  if (name == nullptr || !script_attached.load(std::memory_order_acquire) || !file_is_open()) return 0;
  const std::uint32_t name_id = intern_text(name), category_id = category != nullptr ? intern_text(category) : 0;
  std::uint32_t number = 0;
  pthread_mutex_lock(&script_lock);
  while (category_id != 0 && number < categories_used && category_names[number] != category_id) ++number;
  if (category_id != 0 && number == categories_used && number < most_script_categories) {
    category_names[categories_used++] = category_id;
    name_category(torch_domain, number + 1, category);
  }
  pthread_mutex_unlock(&script_lock);
  if (category_id != 0 && number < most_script_categories) ++number;
  return std::uint64_t{number} << 32 | name_id;
}

void push_kind(std::uint64_t kind) {
  if (is_attached()) push_scope(torch_domain_number, scope_of(kind));
}

void push_number(std::uint64_t kind, std::int64_t number) {
  if (is_attached()) push_scope(torch_domain_number, scope_of(kind), number);
}

void pop_kind() {
  if (is_attached()) pop_scope(torch_domain_number);
}

std::uint64_t own_kind(const char* name) { return is_attached() && file_is_open() ? intern_text(name) : 0; }
void push_own(std::uint64_t kind) {
  if (is_attached()) push_scope(own_domain_number, own_scope(kind));
}
void push_own_number(std::uint64_t kind, std::int64_t number) {
  if (is_attached()) push_scope(own_domain_number, own_scope(kind), number);
}
void pop_own() {
  if (is_attached()) pop_scope(own_domain_number);
}

namespace {

void reset_in_child() { pthread_mutex_init(&script_lock, nullptr); }

}  // namespace

const Source script_source = {.reset_in_child = reset_in_child};

}  // namespace paceline::inject
