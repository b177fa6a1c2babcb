// SPDX-License-Identifier: Apache-2.0
// Wrong options of communicators and their error messages. Needs neither MPI nor a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/comm/communicator.h"
#include "trainer/comm/nccl_options.h"
#include "trainer/comm/ring_order.h"
#include "trainer/core/error.h"

namespace paceline::train {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// The message of the usage error that the call throws; empty if it throws nothing.
template <typename Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.status, Status::usage) << error.what();
    EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
    return error.what();
  }
  return "";
}

TEST(RingOrder, NamesEachRankOnce) {
  EXPECT_THAT(parse_ring_order("0,2,1,3", 4), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(parse_ring_order("0", 1), ElementsAre(0));
  EXPECT_THAT(parse_ring_order("", 3), IsEmpty());
  const auto wrong = [](const char* text, int size) { return refusal([&] { parse_ring_order(text, size); }); };
  EXPECT_THAT(wrong("0,2,1", 4), AllOf(HasSubstr("‹ring-order› 0,2,1"), HasSubstr("3 of 4 ranks")));
  EXPECT_THAT(wrong("0,1,1", 3), HasSubstr("rank 1 is there twice"));
  EXPECT_THAT(wrong("0,1,3", 3), HasSubstr("there is no rank 3"));
  EXPECT_THAT(wrong("0,-1", 2), HasSubstr("there is no rank -1"));
  for (const char* text : {"0 1", "0,1,", ",0,1", "0,x", "0,1;", "99999999999,0"}) {
    EXPECT_THAT(wrong(text, 2), HasSubstr("is not a list of ranks")) << text;
  }
}

TEST(RingOrder, GivesEachRankItsPlace) {
  const std::vector<int> order{2, 0, 3, 1};
  for (int place = 0; place < 4; ++place) {
    EXPECT_EQ(place_in_ring(order, order[static_cast<std::size_t>(place)]), place);
  }
  EXPECT_EQ(place_in_ring({}, 3), 3);
}

TEST(NcclOptions, ParseCtasAsMostOrLeastAndMost) {
  const auto same = [](nccl::Ctas ctas, int least, int most) { return ctas.least == least && ctas.most == most; };
  EXPECT_TRUE(same(nccl::parse_ctas("8"), 0, 8));
  EXPECT_TRUE(same(nccl::parse_ctas("4:8"), 4, 8));
  EXPECT_TRUE(same(nccl::parse_ctas("64:64"), 64, 64));
  for (const char* text : {"", "0", "65", "8:4", "4:", ":4", "4:8:16", "four", "4 ", "-1", "0:4"}) {
    EXPECT_THAT(refusal([&] { nccl::parse_ctas(text); }), HasSubstr(std::string("‹nccl-ctas› ") + text)) << text;
  }
}

TEST(NcclOptions, RefuseASharedGpuAndNameAnAlternative) {
  const auto wrong = [](const std::vector<nccl::Placement>& ranks) {
    return refusal([&] { nccl::check_placement("pure_nccl", ranks); });
  };
  EXPECT_EQ(wrong({{"a", "uuid0"}, {"a", "uuid1"}, {"b", "uuid2"}}), "");
  EXPECT_THAT(
      wrong({{"a", "uuid0"}, {"b", "uuid1"}, {"b", "uuid1"}}),
      AllOf(HasSubstr("pure_nccl"), HasSubstr("ranks 1 and 2 share one GPU of b"), HasSubstr("‹communicator› mpi")));
  EXPECT_THAT(wrong({{"a", "uuid0"}, {"b", ""}}), HasSubstr("rank 1 on b has no GPU"));
}

TEST(NcclOptions, DescribeAFailureInOneLineWithARemedy) {
  EXPECT_EQ(
      nccl::failure("ncclAllReduce", 6, "remote process exited or there was a network error",
                    "socketProgress:  Connection\nclosed by remote peer \n"),
      "NCCL: ncclAllReduce: remote process exited or there was a network error (socketProgress: Connection closed "
      "by remote peer): see what the other ranks report, and check the network between the hosts");
  EXPECT_EQ(nccl::failure("ncclMemAlloc", 5, "invalid usage", ""),
            "NCCL: ncclMemAlloc: invalid usage: NCCL_DEBUG=WARN prints more");
  EXPECT_THAT(nccl::timeout("ncclCommInitRankConfig", 60, ""),
              AllOf(HasSubstr("ncclCommInitRankConfig did not end within 60 s"), HasSubstr("another rank is missing"),
                    HasSubstr("‹comm-timeout›")));
}

TEST(NcclOptions, OfferNamesThatNeedAGpuOnlyAsChoices) {
  std::vector<std::string> choices;
  for (const CommunicatorName& choice : communicator_choices()) choices.push_back(choice.name);
  EXPECT_THAT(choices, testing::IsSupersetOf(communicator_names()));
  EXPECT_THAT(choices, testing::Contains("pure_nccl"));
  EXPECT_THAT(communicator_names(), Not(testing::Contains("pure_nccl")));
  for (const char* name : {"pure_nccl", "single_node", "hierarchical", "two_dimensional", "non_cuda_aware"}) {
    EXPECT_TRUE(nccl::uses_nccl(name)) << name;
  }
  for (const char* name : {"mpi", "naive", "flat", "ring", "halving_doubling", "three_phase"}) {
    EXPECT_FALSE(nccl::uses_nccl(name)) << name;
  }
}

}  // namespace
}  // namespace paceline::train
