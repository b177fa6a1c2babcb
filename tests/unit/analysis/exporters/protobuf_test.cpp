// SPDX-License-Identifier: Apache-2.0
// The expected bytes are those of protobuf's own guide (https://protobuf.dev/programming-guides/encoding/).
#include "analysis/exporters/protobuf.h"

#include <gtest/gtest.h>

namespace paceline::analysis {
namespace {

using namespace std::string_view_literals;

TEST(ProtoMessage, EncodesAsTheGuideDoes) {
  ProtoMessage integer;
  integer.integer(1, 150);
  EXPECT_EQ(integer.bytes(), "\x08\x96\x01"sv);
  ProtoMessage text;
  text.text(2, "testing");
  EXPECT_EQ(text.bytes(), "\x12\x07testing"sv);
  ProtoMessage inner;
  inner.message(3, integer);
  EXPECT_EQ(inner.bytes(), "\x1a\x03\x08\x96\x01"sv);
}

TEST(ProtoMessage, EncodesTheLargestNumbers) {
  ProtoMessage message;
  message.integer(1, ~std::uint64_t{0});  // -1 as an int64
  message.fixed64(47, 0x0102030405060708);
  message.real(5, 1.0);
  EXPECT_EQ(message.bytes(),
            "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
            "\xf9\x02\x08\x07\x06\x05\x04\x03\x02\x01"
            "\x29\x00\x00\x00\x00\x00\x00\xf0\x3f"sv);
}

}  // namespace
}  // namespace paceline::analysis
