// SPDX-License-Identifier: Apache-2.0
#include "viewer/comparison/pair_loader.h"

#include <utility>

namespace paceline::viewer {

PairLoader::PairLoader(RunToOpen a, RunToOpen b, QObject* parent)
    : QObject(parent), sides_{{std::move(a), "A"}, {std::move(b), "B"}} {}

void PairLoader::start() { QMetaObject::invokeMethod(this, &PairLoader::load_next, Qt::QueuedConnection); }

void PairLoader::cancel() {
  if (loader_) loader_->cancel();
}

void PairLoader::load_next() {
  for (int i = 0; i < 2; ++i) {
    Side& side = sides_[i];
    if (side.wanted.run != nullptr) continue;
    // The second of two paths that are the same is the first run.
    if (i == 1 && side.wanted.path == sides_[0].wanted.path) {
      side.wanted.run = sides_[0].wanted.run;
      continue;
    }
    loader_ = std::make_unique<Loader>(side.wanted.path);
    connect(loader_.get(), &Loader::progressed, this,
            [this, i](int percent) { Q_EMIT progressed((100 * i + percent) / 2); });
    connect(loader_.get(), &Loader::rank_progressed, this, [this, &side](const QString& name, int percent) {
      Q_EMIT rank_progressed(side.letter + ": " + name, percent);
    });
    connect(
        loader_.get(), &Loader::loaded, this,
        [this, &side](std::shared_ptr<const Run> run) {
          side.wanted.run = std::move(run);
          load_next();
        },
        Qt::QueuedConnection);
    connect(loader_.get(), &Loader::failed, this, &PairLoader::failed);
    loader_->start();
    return;
  }
  Q_EMIT loaded(sides_[0].wanted.run, sides_[1].wanted.run);
}

}  // namespace paceline::viewer
