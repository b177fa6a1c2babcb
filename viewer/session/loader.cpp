#include "viewer/session/loader.h"

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
    const auto rank = [&](const std::string& name, double share) {
      Q_EMIT rank_progressed(QString::fromStdString(name), static_cast<int>(share * 100));
    };
    auto opened = open_run(path_, {whole, rank});
    if (!cancelled_) Q_EMIT loaded(std::move(opened));
  } catch (const std::exception& error) {  // Error, or no memory for so large a run
    if (!cancelled_) Q_EMIT failed(QString::fromUtf8(error.what()));
  }
}

}  // namespace paceline::viewer
