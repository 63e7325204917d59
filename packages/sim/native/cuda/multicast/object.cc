#include "object.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>

#include "core/state.h"
#include "ipc/exchange.h"
#include "vmm/physical.h"

namespace shoal {

namespace {

constexpr uint32_t kMaxBindings = 1024;
// For this long, a process is assumed to be still alive.
constexpr std::chrono::milliseconds kTrusted(100);

struct Known {
  std::mutex mutex;
  std::map<SharedFile::Identity, std::weak_ptr<MulticastObject>> byFile;
};

Known& known() {
  static Known* all = new Known;
  return *all;
}

}  // namespace

struct MulticastObject::Binding {
  uint64_t number;  // 0: unused entry
  int32_t device;
  uint64_t offset;  // offset in the object
  uint64_t size;
  uint64_t memoryOffset;  // offset in the memory's file
  Ticket memory;          // for other processes, to fetch the memory
};

struct MulticastObject::Shared {
  pthread_mutex_t mutex;
  uint64_t size;
  uint64_t flags;
  uint32_t handleTypes;
  uint32_t numDevices;
  std::atomic<uint64_t> devices;  // one bit per ordinal
  std::atomic<uint32_t> isShared;
  uint64_t nextNumber;
  Binding bindings[kMaxBindings];
};

// A process can end while it holds the mutex. The table stays consistent, because an entry gets its number last.
class MulticastObject::Lock {
 public:
  explicit Lock(Shared& shared) : shared_(shared) {
    if (pthread_mutex_lock(&shared_.mutex) == EOWNERDEAD) pthread_mutex_consistent(&shared_.mutex);
  }
  ~Lock() { pthread_mutex_unlock(&shared_.mutex); }

 private:
  Shared& shared_;
};

MulticastObject::MulticastObject(std::shared_ptr<SharedFile> file)
    : file_(std::move(file)), shared_(static_cast<Shared*>(file_->map(0, file_->size(), PROT_READ | PROT_WRITE))) {}

std::shared_ptr<MulticastObject> MulticastObject::create(const CUmulticastObjectProp& properties) {
  auto file = SharedFile::create(Content::multicast, sizeof(Shared), &properties, sizeof properties);
  auto object = std::make_shared<MulticastObject>(std::move(file));
  Shared& shared = *object->shared_;
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&shared.mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
  shared.size = properties.size;
  shared.flags = properties.flags;
  shared.handleTypes = static_cast<uint32_t>(properties.handleTypes);
  shared.numDevices = properties.numDevices;
  shared.nextNumber = 1;
  std::lock_guard lock(known().mutex);
  known().byFile[object->file_->identity()] = object;
  return object;
}

CUresult MulticastObject::open(std::shared_ptr<SharedFile> file, std::shared_ptr<MulticastObject>& object) {
  if (file->size() < sizeof(Shared)) return CUDA_ERROR_INVALID_VALUE;
  CUmulticastObjectProp properties;
  memcpy(&properties, file->label(), sizeof properties);
  // The creator did not allow sharing, so the caller has guessed a descriptor.
  if (properties.handleTypes == 0) return CUDA_ERROR_UNKNOWN;
  std::lock_guard lock(known().mutex);
  auto& slot = known().byFile[file->identity()];
  object = slot.lock();
  if (!object) {
    object = std::make_shared<MulticastObject>(std::move(file));
    slot = object;
  }
  object->markShared();
  return CUDA_SUCCESS;
}

MulticastObject::~MulticastObject() {
  withdraw(TicketKind::fabric, file_->identity().inode);
  {
    std::lock_guard lock(known().mutex);
    auto found = known().byFile.find(file_->identity());
    if (found != known().byFile.end() && found->second.expired()) known().byFile.erase(found);
  }
  {
    Lock lock(*shared_);
    for (auto& binding : shared_->bindings) {
      if (binding.number != 0 && own_.count(binding.number) != 0) binding.number = 0;
    }
  }
  munmap(shared_, file_->size());
}

size_t MulticastObject::size() const { return shared_->size; }
unsigned MulticastObject::handleTypes() const { return shared_->handleTypes; }
void MulticastObject::markShared() { shared_->isShared = 1; }

bool MulticastObject::hasDevice(int device) const {
  return device >= 0 && device < 64 && (shared_->devices.load() >> device & 1) != 0;
}

CUresult MulticastObject::addDevice(int device) {
  Lock lock(*shared_);
  const uint64_t devices = shared_->devices;
  if (hasDevice(device) || __builtin_popcountll(devices) >= static_cast<int>(shared_->numDevices))
    return CUDA_ERROR_INVALID_VALUE;
  shared_->devices = devices | uint64_t{1} << device;
  return CUDA_SUCCESS;
}

CUresult MulticastObject::waitForTeam() const {
  auto isComplete = [&] { return __builtin_popcountll(shared_->devices) == static_cast<int>(shared_->numDevices); };
  if (isComplete()) return CUDA_SUCCESS;
  if (shared_->isShared == 0) return CUDA_ERROR_ILLEGAL_STATE;
  using Clock = std::chrono::steady_clock;
  const double seconds = state().timeoutSeconds;
  const auto start = Clock::now();
  do {
    if (isComplete()) return CUDA_SUCCESS;
    usleep(500);
  } while (seconds == 0 || std::chrono::duration<double>(Clock::now() - start).count() < seconds);
  return isComplete() ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
}

CUresult MulticastObject::bind(size_t offset, size_t size, Memory memory) {
  std::lock_guard own(mutex_);
  Binding made = {};
  made.device = memory.device;
  made.offset = offset;
  made.size = size;
  made.memoryOffset = memory.offset;
  if (shared_->handleTypes != 0) made.memory = offerFile(memory.file);
  Lock lock(*shared_);
  Binding* free = nullptr;
  for (auto& binding : shared_->bindings) {
    if (binding.number == 0) {
      if (free == nullptr) free = &binding;
    } else if (binding.device == memory.device && offset < binding.offset + binding.size &&
               binding.offset < offset + size) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (free == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t number = shared_->nextNumber++;
  own_[number] = std::move(memory);
  *free = made;
  free->number = number;
  return CUDA_SUCCESS;
}

CUresult MulticastObject::unbind(int device, size_t offset, size_t size) {
  std::lock_guard own(mutex_);
  Lock lock(*shared_);
  for (auto& binding : shared_->bindings) {
    if (binding.number == 0 || binding.device != device || binding.offset != offset || binding.size != size) continue;
    own_.erase(binding.number);
    binding.number = 0;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

std::shared_ptr<SharedFile> MulticastObject::fileOf(const Binding& binding) {
  std::lock_guard lock(mutex_);
  auto own = own_.find(binding.number);
  if (own != own_.end()) return own->second.file;
  const auto now = std::chrono::steady_clock::now();
  auto known = fetched_.find(binding.number);
  if (known != fetched_.end()) {
    if (now - known->second.seenAlive < kTrusted) return known->second.file;
    if (isReachable(binding.memory.process)) {
      known->second.seenAlive = now;
      return known->second.file;
    }
    fetched_.erase(known);
  } else if (auto file = fetch(binding.memory)) {
    fetched_[binding.number] = {file, now};
    return file;
  }
  // The binding process has ended or the memory was freed. Release the range for other bindings.
  Lock shared(*shared_);
  for (auto& each : shared_->bindings) {
    if (each.number == binding.number) each.number = 0;
  }
  return nullptr;
}

// Drops memory of other processes that is not bound any more.
void MulticastObject::forgetUnbound(const std::vector<uint64_t>& bound) {
  std::lock_guard lock(mutex_);
  for (auto each = fetched_.begin(); each != fetched_.end();) {
    each = std::find(bound.begin(), bound.end(), each->first) != bound.end() ? std::next(each) : fetched_.erase(each);
  }
}

bool MulticastObject::pass(size_t offset, const char* data, size_t length) {
  std::vector<Binding> reached;
  std::vector<uint64_t> bound;
  {
    Lock lock(*shared_);
    for (auto& binding : shared_->bindings) {
      if (binding.number != 0) bound.push_back(binding.number);
      if (binding.number != 0 && offset < binding.offset + binding.size && binding.offset < offset + length)
        reached.push_back(binding);
    }
  }
  forgetUnbound(bound);
  bool isDone = true;
  for (auto& binding : reached) {
    std::shared_ptr<SharedFile> file;
    try {
      file = fileOf(binding);
    } catch (const std::system_error&) {
      isDone = false;
      continue;
    }
    if (!file) continue;
    const size_t from = std::max<size_t>(offset, binding.offset);
    const size_t until = std::min<size_t>(offset + length, binding.offset + binding.size);
    isDone =
        file->write(binding.memoryOffset + (from - binding.offset), data + (from - offset), until - from) && isDone;
  }
  return isDone;
}

}  // namespace shoal
