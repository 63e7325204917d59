// The API of windows.
#include "buffer.h"
#include "communicator.h"
#include "group.h"
#include "guard.h"
#include "problem.h"
#include "window.h"

using namespace shoal::nccl;

namespace {

// Finds a rank's window in this process. `whose` is "lsaRank" or "peer".
ncclResult_t addressOf(const char* function, ncclWindow_t handle, size_t offset, const char* whose, int rank,
                       void** out) {
  std::shared_ptr<Window> window;
  if (out == nullptr) return problem(ncclInvalidArgument, "%s: outPtr is NULL", function);
  if (const ncclResult_t result = Window::find(handle, function, window)) return result;
  if (rank < 0 || rank >= window->ranks) {
    return problem(ncclInvalidArgument, "%s: %s is %d, there are %d ranks", function, whose, rank, window->ranks);
  }
  if (offset >= window->bytesOf(rank)) {
    return problem(ncclInvalidArgument, "%s: offset is %zu, the window of rank %d has %zu bytes", function, offset,
                   rank, window->bytesOf(rank));
  }
  *out = window->at(rank) + offset;
  return ncclSuccess;
}

// Null if the ranks' memory has no multicast address.
ncclResult_t multimemOf(const char* function, ncclWindow_t handle, size_t offset, void** out) {
  std::shared_ptr<Window> window;
  if (out == nullptr) return problem(ncclInvalidArgument, "%s: outPtr is NULL", function);
  if (const ncclResult_t result = Window::find(handle, function, window)) return result;
  if (offset >= window->bytes)
    return problem(ncclInvalidArgument, "%s: offset is %zu, the window has %zu bytes", function, offset, window->bytes);
  *out = window->multicast() == nullptr ? nullptr : window->multicast() + offset;
  return ncclSuccess;
}

}  // namespace

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win, int winFlags) {
  return guarded([&]() -> ncclResult_t {
    constexpr char function[] = "ncclCommWindowRegister";
    std::shared_ptr<Communicator> communicator;
    if (const ncclResult_t result = Communicator::findReady(comm, function, communicator)) return noteError(result);
    if (win == nullptr) return noteError(problem(ncclInvalidArgument, "%s: win is NULL", function));
    *win = nullptr;
    if (buff == nullptr || size == 0)
      return noteError(problem(ncclInvalidArgument, "%s: buff is %p and size %zu", function, buff, size));
    if ((winFlags & ~(NCCL_WIN_COLL_SYMMETRIC | NCCL_WIN_STRICT_ORDERING)) != 0) {
      return noteError(problem(ncclInvalidArgument, "%s: flags are 0x%x", function, winFlags));
    }
    if (reinterpret_cast<uintptr_t>(buff) % NCCL_WIN_REQUIRED_ALIGNMENT != 0) {
      return noteError(problem(ncclInvalidArgument, "%s: buff is %p, it must be aligned to %d bytes", function, buff,
                               NCCL_WIN_REQUIRED_ALIGNMENT));
    }
    if (const ncclResult_t result = checkBuffer(*communicator, function, "buff", buff, size)) return noteError(result);
    Job job;
    job.communicators = {communicator};
    job.saysSuccess = true;
    job.run = [=] {
      std::shared_ptr<Window> window;
      ncclResult_t before = ncclSuccess;
      if ((winFlags & NCCL_WIN_COLL_SYMMETRIC) != 0 && !isMapped(buff)) {
        before = problem(ncclUnhandledCudaError,
                         "%s: a symmetric window takes memory of ncclMemAlloc or cuMemMap, buff is neither", function);
      }
      const ncclResult_t result = Window::make(*communicator, function, buff, size, winFlags, window, before);
      if (result != ncclSuccess) return result;
      communicator->addWindow(window);
      return communicator->handOut([&] { *win = window->handle(); }) ? ncclSuccess : ncclInternalError;
    };
    return noteError(submitJob(std::move(job)));
  });
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win) {
  return guarded([&]() -> ncclResult_t {
    constexpr char function[] = "ncclCommWindowDeregister";
    std::shared_ptr<Communicator> communicator;
    std::shared_ptr<Window> window;
    if (const ncclResult_t result = Communicator::findSettled(comm, function, communicator)) return result;
    if (win == nullptr) return ncclSuccess;
    if (Window::find(win, function, window) != ncclSuccess) {
      return problem(ncclInternalError, "%s: %p is not a window, or it has been deregistered", function,
                     static_cast<void*>(win));
    }
    if (!window->isOf(*communicator))
      return problem(ncclInvalidArgument, "%s: the window is of another communicator", function);
    communicator->removeWindow(window);
    return ncclSuccess;
  });
}

ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void** outUserPtr) {
  return guarded([&]() -> ncclResult_t {
    constexpr char function[] = "ncclWinGetUserPtr";
    std::shared_ptr<Communicator> communicator;
    std::shared_ptr<Window> window;
    if (const ncclResult_t result = Communicator::findSettled(comm, function, communicator)) return result;
    if (outUserPtr == nullptr) return problem(ncclInvalidArgument, "%s: outUserPtr is NULL", function);
    if (const ncclResult_t result = Window::find(win, function, window)) return result;
    if (!window->isOf(*communicator))
      return problem(ncclInvalidArgument, "%s: the window is of another communicator", function);
    *outUserPtr = window->buffer;
    return ncclSuccess;
  });
}

ncclResult_t ncclGetLsaDevicePointer(ncclWindow_t window, size_t offset, int lsaRank, void** outPtr) {
  return guarded([&] { return addressOf("ncclGetLsaDevicePointer", window, offset, "lsaRank", lsaRank, outPtr); });
}

ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t window, size_t offset, int peer, void** outPtr) {
  return guarded([&] { return addressOf("ncclGetPeerDevicePointer", window, offset, "peer", peer, outPtr); });
}

ncclResult_t ncclGetLsaMultimemDevicePointer(ncclWindow_t window, size_t offset, void** outPtr) {
  return guarded([&] { return multimemOf("ncclGetLsaMultimemDevicePointer", window, offset, outPtr); });
}

// All windows belong to one team, so the handle only says whether multicast is available.
ncclResult_t ncclGetMultimemDevicePointer(ncclWindow_t window, size_t offset, ncclMultimemHandle_t multimem,
                                          void** outPtr) {
  return guarded([&] {
    const ncclResult_t result = multimemOf("ncclGetMultimemDevicePointer", window, offset, outPtr);
    if (result == ncclSuccess && multimem.mcBasePtr == nullptr) *outPtr = nullptr;
    return result;
  });
}
