// SPDX-License-Identifier: Apache-2.0
// Checks of the actions that select slices and ranges, and step from one to another.
#include <QMenu>

#include "analysis/trace/builder.h"
#include "tests/unit/viewer/user.h"
#include "viewer/session/colour_choices.h"

namespace paceline::viewer {
namespace check_slices {

// A call of NCCL and the collective that it started.
std::shared_ptr<const Run> run_with_nccl() {
  analysis::TraceBuilder builder;
  analysis::RankBuilder& rank = builder.add_rank(0);
  analysis::TrackBuilder& main = rank.add_main_thread();
  main.add_slice(1'000'000, 1'100'000, "ncclAllReduce", "NCCL");
  main.argument("call", 7);
  analysis::TrackBuilder& nccl = rank.add_track(analysis::TrackKind::nccl, "NCCL data parallel");
  nccl.add_slice(2'000'000, 2'500'000, "ncclAllReduce", "nccl", "collective");
  nccl.argument("call", 7);
  return index_run("nccl", builder.finish());
}

double start_of(User& user, const SliceRef& slice) {
  return double(slices_of(user.page->run(), slice).start_ns[slice.slice]);
}
double end_of(User& user, const SliceRef& slice) {
  return double(slices_of(user.page->run(), slice).end_ns(slice.slice));
}

// From the slice of one name to that of another on the same thread.
void check_step(const QString& keys, const char* from, const char* to) {
  User user;
  user.select(from, 1);
  user.press(keys);
  EXPECT_EQ(user.selected_name(), to);
  EXPECT_EQ(user.state().selection.slice()->rank, 1u);
}

void check_rank(const QString& keys, std::size_t to) {
  User user;
  user.select("backward", 1);
  user.press(keys);
  ASSERT_TRUE(user.state().selection.slice());
  EXPECT_EQ(user.state().selection.slice()->rank, to);
  EXPECT_EQ(user.selected_name(), "backward");
}

void check_row(const QString& keys, SliceRef from, std::size_t to_track) {
  User user;
  user.state().selection.reveal(from);
  user.press(keys);
  ASSERT_TRUE(user.state().selection.slice());
  EXPECT_EQ(user.state().selection.slice()->rank, from.rank);
  EXPECT_EQ(user.state().selection.slice()->track, to_track);
}

void check_same_name(const QString& keys, bool next) {
  User user;
  const SliceRef first = user.first_named("forward", 1);
  user.state().selection.reveal(first);
  Q_EMIT user.state().commands.step_wanted(Commands::Step::next_same);
  const SliceRef second = *user.state().selection.slice();
  ASSERT_NE(first, second);
  user.state().selection.reveal(next ? first : second);
  user.press(keys);
  EXPECT_EQ(user.state().selection.slice(), next ? second : first);
}

void check_colour(const QString& keys, bool of_phase) {
  User user;
  user.select("forward", 2);
  user.press(keys);
  auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
  ASSERT_NE(menu, nullptr);
  menu->actions().front()->trigger();
  menu->close();
  EXPECT_EQ(chosen_colours()->names.contains("forward"), !of_phase);
  EXPECT_EQ(chosen_colours()->phases[static_cast<std::size_t>(analysis::Phase::forward)] != 0, of_phase);
  choose_colours({});
}

const ActionChecks all{
    {"R",
     [](const QString& keys) {
       User user;
       const SliceRef slice = user.select("backward", 2);
       user.press(keys);
       EXPECT_EQ(user.state().selection.range(), (TimeRange{start_of(user, slice), end_of(user, slice)}));
     }},
    {"Z",
     [](const QString& keys) {
       User user;
       user.state().selection.select_range(TimeRange{2e8, 2.5e8});
       user.press(keys);
       EXPECT_EQ(user.view(), (TimeRange{2e8, 2.5e8}));
     }},
    {"Return Enter",
     [](const QString& keys) {
       User user;
       const SliceRef slice = user.select("backward", 2);
       user.press(keys);
       EXPECT_LE(user.view().begin_ns, start_of(user, slice));
       EXPECT_GE(user.view().end_ns, end_of(user, slice));
       EXPECT_NEAR(user.length(), 1.5 * (end_of(user, slice) - start_of(user, slice)), 2);
     }},
    {"Left", [](const QString& keys) { check_step(keys, "backward", "forward"); }},
    {"Right", [](const QString& keys) { check_step(keys, "forward", "backward"); }},
    {"Up", [](const QString& keys) { check_step(keys, "forward", "iteration"); }},
    {"Down", [](const QString& keys) { check_step(keys, "allreduce", "MPI_Allreduce"); }},
    {"Shift+Down", [](const QString& keys) { check_row(keys, {.rank = 1, .track = 0, .slice = 8}, 1); }},
    {"Shift+Up", [](const QString& keys) { check_row(keys, {.rank = 1, .track = 1, .slice = 1}, 0); }},
    {"Ctrl+Down", [](const QString& keys) { check_rank(keys, 2); }},
    {"Ctrl+Up", [](const QString& keys) { check_rank(keys, 0); }},
    {",", [](const QString& keys) { check_same_name(keys, false); }},
    {".", [](const QString& keys) { check_same_name(keys, true); }},
    {"J",
     [](const QString& keys) {
       User user(run_with_nccl());
       const SliceRef call{.rank = 0, .track = 0, .slice = 0}, work{.rank = 0, .track = 1, .slice = 0};
       user.state().selection.select(call);
       user.press(keys);
       EXPECT_EQ(user.state().selection.slice(), work);
       user.press(keys);
       EXPECT_EQ(user.state().selection.slice(), call);
     }},
    {"C",
     [](const QString& keys) {
       User user;
       user.press(keys);
       EXPECT_TRUE(user.state().arrangement.path_shown());
       user.press(keys);
       EXPECT_FALSE(user.state().arrangement.path_shown());
     }},
    {"P",
     [](const QString& keys) {
       User user;
       user.select("forward", 2);
       user.press(keys);
       EXPECT_TRUE(user.state().arrangement.pinned(2));
       EXPECT_EQ(user.timeline->rows().ranks().front().rank, 2u);
       user.press(keys);
       EXPECT_FALSE(user.state().arrangement.pinned(2));
     }},
    {"Shift+P",
     [](const QString& keys) {
       User user;
       user.select("forward", 2);
       user.press(keys);
       EXPECT_TRUE(user.state().arrangement.row_pinned(2, "main thread"));
       user.press(keys);
       EXPECT_TRUE(user.state().arrangement.pinned_rows().empty());
     }},
    {"K", [](const QString& keys) { check_colour(keys, false); }},
    {"Shift+K", [](const QString& keys) { check_colour(keys, true); }},
    {"Esc",
     [](const QString& keys) {
       User user;
       user.select("forward", 2);
       user.state().selection.select_range(TimeRange{1e8, 2e8});
       user.press(keys);
       EXPECT_FALSE(user.state().selection.slice());
       EXPECT_FALSE(user.state().selection.range());
     }},
};

}  // namespace check_slices

const ActionChecks& checks_of_slices() { return check_slices::all; }

}  // namespace paceline::viewer
