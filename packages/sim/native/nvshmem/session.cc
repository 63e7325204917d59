#include "session.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bootstrap.h"
#include "fault.h"
#include "report.h"

namespace shoal::nvshmem {

namespace {

struct Process {
  std::mutex mutex;
  std::shared_ptr<Job> job;  // never ends: a later start joins the same job, whatever its arguments
  std::shared_ptr<Session> session;
  int starts = 0;  // starts without a matching end
};

Process& process() {
  static Process* own = new Process;
  return *own;
}

constexpr uint32_t kStarting = 200;

// The caller holds the mutex. Also returns true if no device is chosen yet, and the session is therefore postponed.
bool startSession(Process& own, std::string& problem) {
  CUcontext context = nullptr;
  CUdevice device = 0;
  if (cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr || cuCtxGetDevice(&device) != CUDA_SUCCESS)
    return true;
  auto session = std::make_shared<Session>(own.job, context, device);
  if (!session->start(problem)) return false;
  own.session = std::move(session);
  return true;
}

int begin(unsigned flags, const nvshmemx_init_attr_t* attributes) {
  return withStatus("nvshmemx_hostlib_init_attr", [&]() -> int {
    Process& own = process();
    std::lock_guard lock(own.mutex);
    std::string problem;
    if (own.starts == 0) {
      const bool isFirst = !own.job;
      if (isFirst) {
        const int status = bootstrap(flags, attributes, own.job, problem);
        if (status != 0) {
          report("%s", problem.c_str());
          return status;
        }
      }
      if (!startSession(own, problem)) {
        report("%s", problem.c_str());
        if (isFirst) Job::keep(std::move(own.job));
        return NVSHMEMX_ERROR_INTERNAL;
      }
    }
    ++own.starts;
    return NVSHMEMX_SUCCESS;
  });
}

void finish() {
  Process& own = process();
  std::shared_ptr<Session> ending;
  {
    std::lock_guard lock(own.mutex);
    if (own.starts == 0 || --own.starts > 0) return;
    ending = own.session;
  }
  if (ending) ending->end();
  std::lock_guard lock(own.mutex);
  own.session.reset();
}

int status() {
  Process& own = process();
  std::lock_guard lock(own.mutex);
  if (!own.job || own.starts == 0) return NVSHMEM_STATUS_NOT_INITIALIZED;
  if (!own.session) return NVSHMEM_STATUS_IS_BOOTSTRAPPED;
  return own.session->areDevicesShared ? NVSHMEM_STATUS_FULL_MPG : NVSHMEM_STATUS_IS_INITIALIZED;
}

// Reads a size as NVSHMEM does, with the suffix K, M, G or T.
uint64_t sizeFromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  char* unit = nullptr;
  const double number = strtod(text, &unit);
  constexpr const char* units = "kmgt";
  const char* found = *unit == '\0' ? nullptr : strchr(units, tolower(*unit));
  if (unit == text || !(number >= 0) || number > 1e15 || (*unit != '\0' && found == nullptr)) {
    report("%s=%s is no size", name, text);
    return otherwise;
  }
  return static_cast<uint64_t>(number *
                               static_cast<double>(found == nullptr ? 1 : uint64_t{1} << 10 * (found - units + 1)));
}

}  // namespace

bool Session::start(std::string& problem) {
  job->isEnding = false;
  PeSlot& slot = job->control->pe(job->pe);
  slot.device = device;
  slot.state = static_cast<uint32_t>(PeState::attached);
  size_t bytes = 0;
  // The first work of a stream starts its thread. Queue some now, so that a failure to start it is reported here;
  // blocking transfers have no status.
  const auto nothing = [](void*) { return CUDA_SUCCESS; };
  const bool isFine = cuDeviceTotalMem_v2(&bytes, device) == CUDA_SUCCESS &&
                      cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
                      shoalSimEnqueue(stream, nothing, nullptr, nullptr, nullptr, 0) == CUDA_SUCCESS;
  const Group all = job->everybody(kStartSlot);
  std::vector<Description> told;
  bytes = std::min<uint64_t>(bytes, sizeFromEnvironment("NVSHMEM_MAX_MEMORY_PER_GPU", bytes));
  const uint64_t ownStep = sizeFromEnvironment("NVSHMEM_CUMEM_GRANULARITY", 0);
  if (!job->tell(all, "the start", Description{kStarting, 0, 0, device, bytes, ownStep, 0, isFine}, told)) {
    const char* failure = job->control->failure();
    problem = failure != nullptr ? failure : "the start has failed";
    return false;
  }
  uint64_t limit = bytes, step = 0;
  for (int pe = 0; pe < job->size; ++pe) {
    const Description& each = told[static_cast<size_t>(pe)];
    if (each.value != 1) {
      problem = "PE " + std::to_string(pe) + " cannot use its device";
      return false;
    }
    limit = std::min(limit, each.count);
    step = std::max(step, each.destination);
    for (int before = 0; before < pe; ++before)
      areDevicesShared = areDevicesShared || told[static_cast<size_t>(before)].root == each.root;
  }
  if (!heap.open(limit, step, problem)) return false;
  for (const Description& each : told) devices.push_back(each.root);
  teams.open(devices);
  return job->sync(all, "the start");
}

void Session::end() {
  injectFault("nvshmemx_hostlib_finalize", job->pe, device);
  {
    // Queued work still uses the heap.
    InContext scope(*this);
    cuCtxSynchronize();
  }
  teams.close();
  job->sync(job->everybody(kManagementSlot), "nvshmemx_hostlib_finalize");
  job->control->pe(job->pe).state = static_cast<uint32_t>(PeState::left);
  job->isEnding = true;
}

Session::~Session() {
  if (stream == nullptr) return;
  InContext scope(*this);
  kernels.close();
  cuStreamDestroy_v2(stream);
}

std::shared_ptr<Session> running() {
  Process& own = process();
  std::lock_guard lock(own.mutex);
  return own.session;
}

std::shared_ptr<Job> joined() {
  Process& own = process();
  std::lock_guard lock(own.mutex);
  return own.job;
}

namespace {

bool isQueued(const char* function) {
  constexpr char ending[] = "_on_stream";
  const size_t length = strlen(function), most = sizeof ending - 1;
  return length > most && strcmp(function + length - most, ending) == 0;
}

}  // namespace

std::shared_ptr<Session> require(const char* function) {
  Process& own = process();
  std::unique_lock lock(own.mutex);
  if (!own.session && own.starts > 0) {
    std::string problem;
    if (!startSession(own, problem)) leave("%s: %s", function, problem.c_str());
  }
  if (!own.session) leaveUninitialised(function);
  const auto session = own.session;
  lock.unlock();
  // Queued operations inject their faults when they run.
  if (!isQueued(function)) injectFault(function, session->job->pe, session->device);
  return session;
}

void mustSucceed(const Session& session, CUresult status, const char* function) {
  if (status == CUDA_SUCCESS || session.job->control->failure() != nullptr) return;
  const char* name = nullptr;
  cuGetErrorName(status, &name);
  leave("%s: %s (%d)", function, name == nullptr ? "unknown error of the driver" : name, static_cast<int>(status));
}

namespace {

struct Work {
  std::shared_ptr<Session> session;
  const char* function;
  std::function<CUresult()> body;
};

}  // namespace

CUresult enqueue(const std::shared_ptr<Session>& session, const char* function, cudaStream_t stream,
                 std::function<CUresult()> body, const std::vector<ShoalSimRange>& ranges) {
  auto* work = new Work{session, function, std::move(body)};
  InContext scope(*session);
  const auto run = [](void* data) {
    std::unique_ptr<Work> own(static_cast<Work*>(data));
    injectFault(own->function, own->session->job->pe, own->session->device);
    return own->body();
  };
  const auto discard = [](void* data) { delete static_cast<Work*>(data); };
  const auto again = [](void* data) -> void* { return new Work(*static_cast<Work*>(data)); };
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult status = cuStreamIsCapturing(stream, &capture);
  if (status == CUDA_SUCCESS) {
    status = capture == CU_STREAM_CAPTURE_STATUS_NONE
                 ? shoalSimEnqueue(stream, run, discard, work, ranges.data(), ranges.size())
                 : shoalSimCapture(stream, again, run, discard, discard, work, ranges.data(), ranges.size());
  }
  if (status != CUDA_SUCCESS) delete work;
  return status;
}

}  // namespace shoal::nvshmem

using namespace shoal::nvshmem;

int nvshmemx_hostlib_init_attr(unsigned flags, nvshmemx_init_attr_t* attr) { return begin(flags, attr); }

void nvshmemx_hostlib_finalize(void) { finish(); }

int nvshmemid_hostlib_init_attr(int, int* provided, unsigned flags, nvshmemx_init_attr_t* attr,
                                nvshmemi_version_t version, nvshmemx_device_lib_init_cb) {
  if (version.major != NVSHMEM_VENDOR_MAJOR_VERSION) {
    report("the device library is of version %d.%d.%d", version.major, version.minor, version.patch);
    return NVSHMEMX_ERROR_NOT_SUPPORTED;
  }
  const int status = begin(flags, attr);
  if (status == 0 && provided != nullptr) *provided = NVSHMEM_THREAD_SERIALIZED;
  return status;
}

void nvshmemid_hostlib_finalize(void*, void*) { finish(); }

int nvshmemx_init_status(void) { return status(); }
int nvshmemid_init_status(void) { return status(); }

void nvshmem_query_thread(int* provided) {
  if (provided != nullptr) *provided = NVSHMEM_THREAD_SERIALIZED;
}

int nvshmem_my_pe(void) {
  const auto job = joined();
  return job ? job->pe : 0;
}

int nvshmem_n_pes(void) {
  const auto job = joined();
  return job ? job->size : 0;
}

void nvshmem_global_exit(int exitStatus) {
  if (const auto job = joined()) {
    for (int pe = 0; pe < job->size; ++pe) {
      if (pe != job->pe) Exchange::askToExit(job->control->pe(pe).exchange, exitStatus);
    }
  }
  _exit(exitStatus);
}

const char* shoalSimNvshmemFailure(void) {
  const auto job = joined();
  return job ? job->control->failure() : nullptr;
}
