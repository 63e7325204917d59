#include "thread.h"

#include <pthread.h>

#include "context.h"
#include "stream.h"

namespace shoal {

namespace {

// A plain pointer and a thread-exit hook instead of a thread_local object. Calls during process exit, after the
// destructors of thread_local objects, still find a usable state.
thread_local ThreadState* current = nullptr;

pthread_key_t exitKey() {
  static const pthread_key_t key = [] {
    pthread_key_t created;
    pthread_key_create(&created, [](void* thread) {
      current = nullptr;
      delete static_cast<ThreadState*>(thread);
    });
    return created;
  }();
  return key;
}

}  // namespace

ThreadState::~ThreadState() {
  for (auto& own : defaultStreams) own.stream->close();
}

ThreadState& threadState() {
  if (current == nullptr) {
    current = new ThreadState;
    pthread_setspecific(exitKey(), current);
  }
  return *current;
}

std::vector<std::shared_ptr<Context>>& contextStack() { return threadState().contexts; }

}  // namespace shoal
