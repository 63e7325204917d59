#include "sharedevent.h"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstring>

#include "exchange.h"

namespace shoal {

SharedEvent::SharedEvent(std::shared_ptr<SharedFile> shared)
    : file(std::move(shared)), page_(static_cast<Page*>(file->map(0, sizeof(Page), PROT_READ | PROT_WRITE))) {}

SharedEvent::~SharedEvent() { munmap(page_, sizeof(Page)); }

std::shared_ptr<SharedEvent> SharedEvent::create() {
  // Creates the name by which other processes check whether this process is alive.
  processName();
  return std::make_shared<SharedEvent>(SharedFile::create(Content::event, sizeof(Page), "", 0));
}

std::shared_ptr<SharedEvent> SharedEvent::open(std::shared_ptr<SharedFile> file) {
  if (!file || file->content() != Content::event || file->size() < sizeof(Page)) return nullptr;
  processName();
  return std::make_shared<SharedEvent>(std::move(file));
}

uint64_t SharedEvent::record() {
  const ProcessName name = processName();
  uint64_t halves[2];
  memcpy(halves, name.bytes, sizeof halves);
  page_->recorder[0] = halves[0];
  page_->recorder[1] = halves[1];
  return page_->recorded.fetch_add(1) + 1;
}

void SharedEvent::pass(uint64_t recording) {
  uint64_t before = page_->passed;
  while (before < recording && !page_->passed.compare_exchange_weak(before, recording)) {
  }
}

uint64_t SharedEvent::last() const { return page_->recorded; }

bool SharedEvent::isRecorderGone() const {
  ProcessName name;
  const uint64_t halves[2] = {page_->recorder[0], page_->recorder[1]};
  memcpy(name.bytes, halves, sizeof halves);
  return !isReachable(name);
}

bool SharedEvent::hasPassed(uint64_t recording) const { return page_->passed >= recording || isRecorderGone(); }

void SharedEvent::waitFor(uint64_t recording, const std::function<bool()>& givesUp) const {
  long pause = 10000;
  for (int round = 1; page_->passed < recording && !givesUp(); ++round) {
    if (round % 64 == 0 && isRecorderGone()) return;
    const timespec interval = {0, pause};
    nanosleep(&interval, nullptr);
    pause = std::min(pause * 2, 500000L);
  }
}

}  // namespace shoal
