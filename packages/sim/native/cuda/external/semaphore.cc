#include "semaphore.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "core/context.h"
#include "core/workers.h"
#include "core/entry.h"
#include "graph/capture.h"

using namespace shoal;

namespace {

// A binary semaphore: an eventfd that is signalled or not.
class BinarySemaphore : public ExternalSemaphore {
 public:
  explicit BinarySemaphore(int descriptor) : descriptor_(descriptor) {}
  ~BinarySemaphore() override { close(descriptor_); }
  void signal(uint64_t) override {
    const uint64_t one = 1;
    [[maybe_unused]] const auto written = write(descriptor_, &one, sizeof one);
  }
  bool take(uint64_t) override {
    uint64_t value = 0;
    return read(descriptor_, &value, sizeof value) == sizeof value;
  }

 private:
  const int descriptor_;
};

// A timeline semaphore: a value that only grows, in the first eight bytes of a memory file.
class TimelineSemaphore : public ExternalSemaphore {
 public:
  TimelineSemaphore(int descriptor, uint64_t* value) : descriptor_(descriptor), value_(value) {}
  ~TimelineSemaphore() override {
    munmap(value_, sizeof *value_);
    close(descriptor_);
  }
  void signal(uint64_t value) override { __atomic_store_n(value_, value, __ATOMIC_SEQ_CST); }
  bool take(uint64_t value) override { return __atomic_load_n(value_, __ATOMIC_SEQ_CST) >= value; }

 private:
  const int descriptor_;
  uint64_t* const value_;
};

HandleTable<ExternalSemaphore>& semaphores() {
  static auto* table = new HandleTable<ExternalSemaphore>(16, "external semaphores");
  return *table;
}

bool isEventDescriptor(int descriptor) {
  char path[64], target[64] = {};
  snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  return readlink(path, target, sizeof target - 1) > 0 && strcmp(target, "anon_inode:[eventfd]") == 0;
}

CUresult openBinary(int descriptor, std::shared_ptr<ExternalSemaphore>& semaphore) {
  if (!isEventDescriptor(descriptor)) return CUDA_ERROR_INVALID_VALUE;
  // A wait polls the descriptor, so that it can stop early.
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  semaphore = std::make_shared<BinarySemaphore>(descriptor);
  return CUDA_SUCCESS;
}

CUresult openTimeline(int descriptor, std::shared_ptr<ExternalSemaphore>& semaphore) {
  struct stat file;
  if (fstat(descriptor, &file) != 0 || !S_ISREG(file.st_mode) || static_cast<size_t>(file.st_size) < sizeof(uint64_t))
    return CUDA_ERROR_INVALID_VALUE;
  void* value = mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (value == MAP_FAILED) return CUDA_ERROR_INVALID_VALUE;
  semaphore = std::make_shared<TimelineSemaphore>(descriptor, static_cast<uint64_t*>(value));
  return CUDA_SUCCESS;
}

CUresult import(CUexternalSemaphore* out, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC* described) {
  if (out == nullptr || described == nullptr || described->flags != 0) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<ExternalSemaphore> semaphore;
  CUresult opened = CUDA_ERROR_NOT_SUPPORTED;
  if (described->type == CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD)
    opened = openBinary(described->handle.fd, semaphore);
  else if (described->type == CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD)
    opened = openTimeline(described->handle.fd, semaphore);
  else if (described->type < CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD ||
           described->type > CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32)
    opened = CUDA_ERROR_INVALID_VALUE;
  if (opened != CUDA_SUCCESS) return opened;
  const uint64_t number = semaphores().reserve();
  semaphores().put(number, std::move(semaphore));
  *out = reinterpret_cast<CUexternalSemaphore>(number);
  return CUDA_SUCCESS;
}

void run(ExternalSemaphore& semaphore, const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS& parameters, const Context*) {
  semaphore.signal(parameters.params.fence.value);
}

void run(ExternalSemaphore& semaphore, const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS& parameters, const Context* context) {
  const Workers::Waiting waiting;
  long pause = 1000;
  while (!semaphore.take(parameters.params.fence.value)) {
    if (context != nullptr && (context->isEnding || context->error != CUDA_SUCCESS)) return;
    const timespec nap = {0, pause};
    nanosleep(&nap, nullptr);
    pause = std::min(pause * 2, 200000L);
  }
}

template <class Parameters>
CUresult queue(const CUexternalSemaphore* handles, const Parameters* parameters, unsigned count, CUstream handle,
               bool perThread) {
  return onStream(handle, perThread, [&](auto& stream, auto&) -> CUresult {
    if (const CUresult status = checkImplicit(stream)) return status;
    std::shared_ptr<SemaphoreWork<Parameters>> work;
    if (const CUresult status = SemaphoreWork<Parameters>::create(handles, parameters, count, work)) return status;
    return submit(stream, std::move(work));
  });
}

}  // namespace

std::shared_ptr<ExternalSemaphore> shoal::findSemaphore(CUexternalSemaphore handle) {
  return semaphores().find(handle);
}

template <class Parameters>
CUresult SemaphoreWork<Parameters>::create(const CUexternalSemaphore* handles, const Parameters* parameters,
                                           unsigned count, std::shared_ptr<SemaphoreWork>& work) {
  if (count == 0 || handles == nullptr || parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  work = std::make_shared<SemaphoreWork>();
  for (unsigned index = 0; index < count; ++index) {
    work->semaphores_.push_back(findSemaphore(handles[index]));
    if (!work->semaphores_.back()) return CUDA_ERROR_INVALID_HANDLE;
    if (parameters[index].flags != 0) return CUDA_ERROR_INVALID_VALUE;
  }
  work->handles.assign(handles, handles + count);
  work->parameters.assign(parameters, parameters + count);
  return CUDA_SUCCESS;
}

template <>
CUgraphNodeType SignalWork::type() const {
  return CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL;
}
template <>
CUgraphNodeType WaitWork::type() const {
  return CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT;
}

template <class Parameters>
CUresult SemaphoreWork<Parameters>::prepare(const std::shared_ptr<Stream>& stream, Operation& operation) const {
  auto self = std::static_pointer_cast<const SemaphoreWork>(shared_from_this());
  operation.run = [self, context = stream ? stream->context : nullptr] {
    for (size_t index = 0; index < self->semaphores_.size(); ++index)
      run(*self->semaphores_[index], self->parameters[index], context.get());
    return CUDA_SUCCESS;
  };
  return CUDA_SUCCESS;
}

template class shoal::SemaphoreWork<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS>;
template class shoal::SemaphoreWork<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS>;

CUresult cuImportExternalSemaphore(CUexternalSemaphore* extSem_out,
                                   const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC* semHandleDesc) {
  return inContext([&](auto&) { return import(extSem_out, semHandleDesc); });
}

CUresult cuDestroyExternalSemaphore(CUexternalSemaphore extSem) {
  return inContext([&](auto&) {
    return semaphores().take(reinterpret_cast<uint64_t>(extSem)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}

SHOAL_TWIN(cuSignalExternalSemaphoresAsync, _ptsz,
           (const CUexternalSemaphore* extSemArray, const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS* paramsArray,
            unsigned int numExtSems, CUstream stream),
           queue(extSemArray, paramsArray, numExtSems, stream, perThread))
SHOAL_TWIN(cuWaitExternalSemaphoresAsync, _ptsz,
           (const CUexternalSemaphore* extSemArray, const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS* paramsArray,
            unsigned int numExtSems, CUstream stream),
           queue(extSemArray, paramsArray, numExtSems, stream, perThread))
