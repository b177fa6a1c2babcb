// SPDX-License-Identifier: Apache-2.0
#include "viewer/session/loader.h"

#include <QElapsedTimer>
#include <exception>

namespace paceline::viewer {

Loader::~Loader() {
  cancel();
  wait();
}

void Loader::run() {
  try {
    int shown = -1;
    const auto whole = [&](double share) {
      if (const int percent = static_cast<int>(share * 100); percent != shown) Q_EMIT progressed(shown = percent);
      return !cancelled_;
    };
    // Drawing the progress takes time from loading, so a rank's begin and end are shown, and little between them.
    constexpr qint64 least_ms = 100;
    QElapsedTimer timer;
    timer.start();
    std::atomic<qint64> rank_shown_ms = 0;
    const auto rank = [&](const std::string& name, double share) {
      const int percent = static_cast<int>(share * 100);
      const qint64 now_ms = timer.elapsed();
      if (percent > 0 && percent < 100 && now_ms < rank_shown_ms + least_ms) return;
      rank_shown_ms = now_ms;
      Q_EMIT rank_progressed(QString::fromStdString(name), percent);
    };
    auto opened = open_source(source_, {whole, rank});
    if (!cancelled_) Q_EMIT loaded(std::move(opened));
  } catch (const std::exception& error) {  // Error, or no memory for so large a run
    if (!cancelled_) Q_EMIT failed(QString::fromUtf8(error.what()));
  }
}

}  // namespace paceline::viewer
