#include "window.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "buffer.h"
#include "problem.h"

namespace shoal::nccl {

namespace {

struct WindowRegistry {
  std::mutex mutex;
  std::unordered_map<uint64_t, std::shared_ptr<Window>> windows;
  uint64_t next = (uint64_t{9} << 44) + 0x1000;  // handles are never reused
};

WindowRegistry& windowRegistry() {
  static WindowRegistry* shared = new WindowRegistry;
  return *shared;
}

// Windows that a stream used last, and that no thread could be started to delete.
std::vector<Window*>& left() {
  static auto* windows = new std::vector<Window*>;
  return *windows;
}

void deleteLeft() {
  std::vector<Window*> all;
  {
    std::lock_guard lock(windowRegistry().mutex);
    all.swap(left());
  }
  for (Window* window : all) delete window;
}

// Stream work may hold the last reference, and deleting the window there would make the stream wait for itself. So a
// thread deletes it, or the next call that makes a window.
void drop(Window* window) {
  if (!isOnStream()) {
    delete window;
    return;
  }
  try {
    std::thread([window] { delete window; }).detach();
  } catch (const std::exception&) {
    std::lock_guard lock(windowRegistry().mutex);
    left().push_back(window);
  }
}

}  // namespace

enum class Sharing : uint32_t { none = 0, legacy = 1, mapped = 2, impossible = 3 };

struct Window::Shared {
  uint64_t address, bytes;
  int32_t flags, process;
  int32_t status;
  Sharing sharing;
  int32_t descriptor;  // of mapped memory, in the owning process
  uint64_t offset;     // of the window in the shared memory
  uint64_t sharedBytes;
  CUipcMemHandle legacy;
};

Window::Window(const Communicator& communicator, void* buffer_, size_t bytes_, int flags_)
    : buffer(static_cast<char*>(buffer_)),
      bytes(bytes_),
      flags(flags_),
      ranks(communicator.ranks()),
      rank(communicator.rank()),
      owner_(&communicator),
      context_(communicator.context),
      device_(communicator.device),
      peers_(static_cast<size_t>(communicator.ranks())) {}

Window::~Window() {
  ScopedContext scope(context_);
  for (Peer& peer : peers_) {
    if (peer.opened != 0) cuIpcCloseMemHandle(peer.opened);
    if (peer.reserved != 0) {
      cuMemUnmap(peer.reserved, peer.reservedBytes);
      cuMemAddressFree(peer.reserved, peer.reservedBytes);
    }
  }
}

// Finds a way for other processes to map the memory.
void Window::offer(Shared& shared, int& descriptor) const {
  const auto begin = reinterpret_cast<CUdeviceptr>(buffer);
  CUdeviceptr start = 0;
  size_t size = 0;
  if (cuMemGetAddressRange_v2(&start, &size, begin) == CUDA_SUCCESS &&
      cuIpcGetMemHandle(&shared.legacy, begin) == CUDA_SUCCESS) {
    shared.sharing = Sharing::legacy;
    shared.offset = begin - start;
    shared.sharedBytes = size;
    return;
  }
  shared.sharing = Sharing::impossible;
  CUmemGenericAllocationHandle memory = 0;
  if (cuMemRetainAllocationHandle(&memory, buffer) != CUDA_SUCCESS) return;
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, CU_POINTER_ATTRIBUTE_MAPPING_SIZE};
  void* answers[] = {&start, &size};
  const bool isWhole =
      cuPointerGetAttributes(2, wanted, answers, begin) == CUDA_SUCCESS && begin - start + bytes <= size;
  if (isWhole &&
      cuMemExportToShareableHandle(&descriptor, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) == CUDA_SUCCESS) {
    shared.sharing = Sharing::mapped;
    shared.descriptor = descriptor;
    shared.offset = begin - start;
    shared.sharedBytes = size;
  }
  cuMemRelease(memory);
}

ncclResult_t Window::open(const char* function, int other, const Shared& shared) {
  Peer& peer = peers_[static_cast<size_t>(other)];
  if (shared.sharing == Sharing::legacy) {
    const CUresult status = cuIpcOpenMemHandle_v2(&peer.opened, shared.legacy, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    if (status != CUDA_SUCCESS) return cudaProblem(status, "cuIpcOpenMemHandle");
    peer.address = reinterpret_cast<char*>(peer.opened + shared.offset);
    return ncclSuccess;
  }
  char link[64];
  snprintf(link, sizeof link, "/proc/%d/fd/%d", shared.process, shared.descriptor);
  const int descriptor = ::open(link, O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return problem(ncclRemoteError, "%s: the memory of rank %d cannot be opened", function, other);
  CUmemGenericAllocationHandle memory = 0;
  CUresult status = cuMemImportFromShareableHandle(&memory, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)),
                                                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  close(descriptor);
  if (status != CUDA_SUCCESS) return cudaProblem(status, "cuMemImportFromShareableHandle");
  status = cuMemAddressReserve(&peer.reserved, shared.sharedBytes, 0, 0, 0);
  if (status == CUDA_SUCCESS) {
    peer.reservedBytes = shared.sharedBytes;
    status = cuMemMap(peer.reserved, shared.sharedBytes, 0, memory, 0);
  } else {
    peer.reserved = 0;
  }
  cuMemRelease(memory);
  CUmemAccessDesc access = {};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device_}};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (status == CUDA_SUCCESS) status = cuMemSetAccess(peer.reserved, shared.sharedBytes, &access, 1);
  if (status != CUDA_SUCCESS) return cudaProblem(status, "mapping a window");
  peer.address = reinterpret_cast<char*>(peer.reserved + shared.offset);
  return ncclSuccess;
}

ncclResult_t Window::make(Communicator& communicator, const char* function, void* buffer, size_t bytes, int flags,
                          std::shared_ptr<Window>& made, ncclResult_t before) {
  ScopedContext scope(communicator.context);
  if (scope.status != CUDA_SUCCESS) return cudaProblem(scope.status, "making the communicator's context current");
  Endpoint& endpoint = communicator.endpoint();
  std::shared_ptr<Window> window(new Window(communicator, buffer, bytes, flags), drop);
  deleteLeft();
  Shared own = {};
  own.address = reinterpret_cast<uint64_t>(buffer);
  own.bytes = bytes;
  own.flags = flags;
  own.process = static_cast<int32_t>(getpid());
  int descriptor = -1;
  own.status = before;
  if (!endpoint.isDirect && before == ncclSuccess) window->offer(own, descriptor);
  std::vector<Shared> all(static_cast<size_t>(endpoint.ranks));
  static_assert(sizeof(Shared) <= kExchangeBytes);
  ncclResult_t result = endpoint.exchange(&own, sizeof own, all.data(), function);
  for (int rank = 0; rank < endpoint.ranks && result == ncclSuccess; ++rank) {
    const Shared& shared = all[static_cast<size_t>(rank)];
    Peer& peer = window->peers_[static_cast<size_t>(rank)];
    peer.bytes = shared.bytes;
    if (before != ncclSuccess) {
      result = before;
    } else if (shared.status != ncclSuccess) {
      result = problem(static_cast<ncclResult_t>(shared.status), "%s: rank %d could not make its part", function, rank);
    } else if (shared.flags != flags) {
      result = problem(ncclInvalidUsage, "%s: rank %d has flags 0x%x, rank %d 0x%x", function, endpoint.rank, flags,
                       rank, shared.flags);
    } else if (window->isSymmetric() && shared.bytes != bytes) {
      result = problem(ncclInvalidUsage,
                       "%s: a symmetric window has the same size everywhere, rank %d has %zu bytes, rank %d %zu",
                       function, endpoint.rank, bytes, rank, static_cast<size_t>(shared.bytes));
    } else if (shared.sharing == Sharing::impossible) {
      result = problem(ncclInvalidArgument, "%s: the buffer of rank %d cannot be shared with other processes", function,
                       rank);
    } else if (endpoint.isInThisProcess(rank)) {
      peer.address = reinterpret_cast<char*>(shared.address);
    } else {
      result = window->open(function, rank, shared);
    }
  }
  if (!endpoint.isDirect) {
    // Each rank has opened the memory it needs. Exchange the results, so that all ranks know whether all succeeded.
    int32_t status = result;
    std::vector<int32_t> statuses(static_cast<size_t>(endpoint.ranks));
    const ncclResult_t heard = endpoint.exchange(&status, sizeof status, statuses.data(), function);
    if (descriptor >= 0) close(descriptor);
    if (result == ncclSuccess) result = heard;
    for (int rank = 0; rank < endpoint.ranks && result == ncclSuccess; ++rank) {
      const auto theirs = static_cast<ncclResult_t>(statuses[static_cast<size_t>(rank)]);
      if (theirs != ncclSuccess) result = problem(theirs, "%s: rank %d could not make the window", function, rank);
    }
  }
  if (result == ncclSuccess && window->isSymmetric() && endpoint.ranks > 1) {
    result = Multicast::make(communicator, function, buffer, window->multicast_);
  }
  if (result != ncclSuccess) return result;
  WindowRegistry& known = windowRegistry();
  std::lock_guard lock(known.mutex);
  window->handle_ = known.next;
  known.next += 16;
  known.windows[window->handle_] = window;
  made = std::move(window);
  return ncclSuccess;
}

ncclResult_t Window::find(ncclWindow_t handle, const char* function, std::shared_ptr<Window>& window) {
  WindowRegistry& known = windowRegistry();
  std::lock_guard lock(known.mutex);
  auto found = known.windows.find(reinterpret_cast<uint64_t>(handle));
  if (found == known.windows.end()) {
    return problem(ncclInvalidArgument, "%s: %p is not a window, or it has been deregistered", function,
                   static_cast<void*>(handle));
  }
  window = found->second;
  return ncclSuccess;
}

void Window::withdraw() {
  WindowRegistry& known = windowRegistry();
  std::lock_guard lock(known.mutex);
  known.windows.erase(handle_);
}

bool Window::covers(const void* address, size_t length) const {
  const auto* start = static_cast<const char*>(address);
  return start >= buffer && length <= bytes && static_cast<size_t>(start - buffer) <= bytes - length;
}

}  // namespace shoal::nccl
