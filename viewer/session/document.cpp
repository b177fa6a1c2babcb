#include "viewer/session/document.h"

namespace paceline::viewer {

Document::Document(std::shared_ptr<const Run> run) : run_(std::move(run)) {
  analysis_.start([run = run_](const Ticket&) { return std::make_shared<const Insight>(examine(*run)); },
                  [this](std::shared_ptr<const Insight> found) {
                    insight_ = std::move(found);
                    Q_EMIT analysed();
                  });
}

}  // namespace paceline::viewer
