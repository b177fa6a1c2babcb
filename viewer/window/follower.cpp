// SPDX-License-Identifier: Apache-2.0
#include "viewer/window/follower.h"

#include <QDateTime>
#include <QDirIterator>
#include <QElapsedTimer>
#include <QFileInfo>
#include <algorithm>

#include "viewer/session/view_file.h"

namespace paceline::viewer {

qint64 state_of_files(const QString& path) {
  const auto of = [](const QFileInfo& file) { return file.size() * 31 + file.lastModified().toMSecsSinceEpoch(); };
  if (!QFileInfo(path).isDir()) return of(QFileInfo(path));
  qint64 sum = 0;
  for (QDirIterator files(path, QDir::Files); files.hasNext();) {
    files.next();
    sum += of(files.fileInfo());
  }
  return sum;
}

Follower::Follower(QString path, int interval_ms, QObject* parent)
    : QObject(parent), path_(std::move(path)), interval_ms_(interval_ms), seen_(state_of_files(path_)) {
  timer_.setSingleShot(true);
  connect(&timer_, &QTimer::timeout, this, &Follower::look);
  timer_.start(interval_ms_);
}

void Follower::look() {
  const qint64 now = state_of_files(path_);
  if (now == std::exchange(seen_, now)) return timer_.start(interval_ms_);
  QElapsedTimer clock;
  clock.start();
  loader_ = std::make_unique<Loader>(path_);
  const auto again = [this, clock] { timer_.start(std::max<int>(interval_ms_, int(clock.elapsed()))); };
  connect(loader_.get(), &Loader::loaded, this, [this, again](std::shared_ptr<const Run> run) {
    Q_EMIT grown(std::move(run));
    again();
  });
  connect(loader_.get(), &Loader::failed, this, again);  // a file that is just being written; the next look may succeed
  loader_->start();
}

void carry_over(const ViewState& from, ViewState& to) {
  view_from_json(view_to_json(from, {}), "the view", to);
  const TimeRange view = from.time.axis().visible(), before = from.time.axis().whole(), now = to.time.axis().whole();
  if (view == before) return to.time.show_part(now);
  if (view.end_ns >= before.end_ns - 0.02 * view.length()) {
    to.time.show_part({now.end_ns - view.length(), now.end_ns});
  } else {
    to.time.show_part(view);
  }
}

}  // namespace paceline::viewer
