#include "bootstrap.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "../shared/localSocket.h"
#include "report.h"

namespace shoal::nvshmem {

namespace {

constexpr char kIdMagic[8] = {'S', 'H', 'O', 'A', 'L', 'S', 'I', 'M'};
constexpr char kJobPrefix[] = "shoal-nvshmem-";

struct Identifier {
  char magic[8];
  unsigned char key[8];  // a 64-bit number at an unaligned offset
  char name[108];
};
static_assert(sizeof(Identifier) == sizeof nvshmemx_uniqueid_t::internal);

// Set if processes of the job ask this process for the shared memory: it made the id, or it is PE 0 of a launcher.
struct Hosting {
  std::mutex mutex;
  Exchange exchange;
  bool isListening = false;
  std::map<uint64_t, int> files;
};

Hosting& hosting() {
  static Hosting* own = new Hosting;
  return *own;
}

bool isWholeNumber(const char* text, int& value) {
  char* end = nullptr;
  const long number = text == nullptr ? -1 : strtol(text, &end, 10);
  if (text == nullptr || *text == '\0' || *end != '\0' || number < 0 || number > INT_MAX) return false;
  value = static_cast<int>(number);
  return true;
}

// The environment variables of launchers that start one process per PE.
struct Launcher {
  const char* rank;
  const char* size;
  const char* jobs[3];
};
constexpr Launcher kLaunchers[] = {
    {"OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid"}},
    {"PMI_RANK", "PMI_SIZE", {"PMI_JOBID", "PMI_ID_STRING", "HYDRA_JOBID"}},
    {"SLURM_PROCID", "SLURM_NTASKS", {"SLURM_JOB_ID", "SLURM_STEP_ID", nullptr}},
};

struct Place {
  int pe = 0;
  int size = 1;
  std::string name;
};

bool readLauncher(Place& place, std::string& problem) {
  for (const Launcher& launcher : kLaunchers) {
    const char* rank = getenv(launcher.rank);
    const char* size = getenv(launcher.size);
    if (rank == nullptr || size == nullptr) continue;
    if (!isWholeNumber(rank, place.pe) || !isWholeNumber(size, place.size)) {
      problem = std::string(launcher.rank) + "=" + rank + " and " + launcher.size + "=" + size +
                " are not a PE and a number of PEs";
      return false;
    }
    std::string job;
    for (const char* variable : launcher.jobs) {
      const char* value = variable == nullptr ? nullptr : getenv(variable);
      if (value != nullptr) job += std::string("-") + value;
    }
    // If no variable names the job, assume that its processes are the children of one launcher.
    if (job.empty()) job = "-of-" + std::to_string(getppid());
    place.name = kJobPrefix + std::to_string(geteuid()) + job;
    place.name.resize(std::min<size_t>(place.name.size(), 100));
    return true;
  }
  return true;
}

bool checkPlace(int pe, int size, std::string& problem) {
  if (size >= 1 && size <= kMaxPes && pe >= 0 && pe < size) return true;
  problem = "PE " + std::to_string(pe) + " of " + std::to_string(size) + ": there are 1 to " + std::to_string(kMaxPes) +
            " PEs, counted from 0";
  return false;
}

std::shared_ptr<Job> join(int file, int pe, int size, std::string& problem) {
  const auto control = Control::open(file, problem);
  return control ? Job::join(control, pe, size, problem) : nullptr;
}

int byUniqueId(const nvshmemx_init_attr_t* attributes, std::shared_ptr<Job>& job, std::string& problem) {
  if (attributes == nullptr || attributes->args.uid_args.id == nullptr) {
    problem = "a start by unique id needs attributes with an id";
    return NVSHMEMX_ERROR_INVALID_VALUE;
  }
  const nvshmemx_uniqueid_args_t& given = attributes->args.uid_args;
  if (!checkPlace(given.myrank, given.nranks, problem)) return NVSHMEMX_ERROR_INVALID_VALUE;
  Identifier id;
  memcpy(&id, given.id->internal, sizeof id);
  if (memcmp(id.magic, kIdMagic, sizeof kIdMagic) != 0 || memchr(id.name, 0, sizeof id.name) == nullptr ||
      strncmp(id.name, kJobPrefix, sizeof kJobPrefix - 1) != 0) {
    problem = "the unique id does not come from nvshmemx_get_uniqueid of this library";
    return NVSHMEMX_ERROR_INVALID_VALUE;
  }
  uint64_t key = 0;
  memcpy(&key, id.key, sizeof key);
  const int file = Exchange::fetch(id.name, key);
  if (file < 0) {
    problem = "nobody answers for the unique id: the process that made it has ended, or it was used before";
    return NVSHMEMX_ERROR_INTERNAL;
  }
  job = join(file, given.myrank, given.nranks, problem);
  close(file);
  // All PEs have come.
  Hosting& own = hosting();
  std::lock_guard lock(own.mutex);
  if (own.isListening && own.exchange.name() == id.name) {
    own.exchange.withdraw(key);
    auto found = own.files.find(key);
    if (found != own.files.end()) {
      close(found->second);
      own.files.erase(found);
    }
  }
  return job ? NVSHMEMX_SUCCESS : NVSHMEMX_ERROR_INTERNAL;
}

int byLauncher(std::shared_ptr<Job>& job, std::string& problem) {
  Place place;
  if (!readLauncher(place, problem) || !checkPlace(place.pe, place.size, problem)) return NVSHMEMX_ERROR_INVALID_VALUE;
  int file = -1;
  if (place.pe == 0) {
    file = Control::createFile(problem);
    if (file < 0) return NVSHMEMX_ERROR_INTERNAL;
    if (place.size > 1) {
      // Never destroyed, because the file is offered as long as the process lives.
      static auto* exchange = new Exchange;
      exchange->offerAs(1, file);
      if (!exchange->listen(place.name, problem)) {
        close(file);
        return NVSHMEMX_ERROR_INTERNAL;
      }
    }
  } else {
    const uint64_t start = nanosecondsNow(), limit = timeoutNanoseconds();
    while ((file = Exchange::fetch(place.name, 1)) < 0) {
      if (limit != 0 && nanosecondsNow() - start >= limit) {
        problem = "PE 0 was not found on this machine, and all PEs of the software device must be on one";
        return NVSHMEMX_ERROR_INTERNAL;
      }
      usleep(10000);
    }
  }
  job = join(file, place.pe, place.size, problem);
  if (place.pe != 0 || place.size == 1) close(file);
  return job ? NVSHMEMX_SUCCESS : NVSHMEMX_ERROR_INTERNAL;
}

}  // namespace

int bootstrap(unsigned flags, const nvshmemx_init_attr_t* attributes, std::shared_ptr<Job>& job, std::string& problem) {
  return (flags & NVSHMEMX_INIT_WITH_UNIQUEID) != 0 ? byUniqueId(attributes, job, problem) : byLauncher(job, problem);
}

}  // namespace shoal::nvshmem

using namespace shoal::nvshmem;

int nvshmemx_get_uniqueid(nvshmemx_uniqueid_t* uniqueid) {
  return withStatus("nvshmemx_get_uniqueid", [&]() -> int {
    if (uniqueid == nullptr) return NVSHMEMX_ERROR_INVALID_VALUE;
    Hosting& own = hosting();
    std::lock_guard lock(own.mutex);
    std::string problem;
    if (!own.isListening && !own.exchange.listen(shoal::nameOf(kJobPrefix, shoal::randomBytes()), problem)) {
      report("nvshmemx_get_uniqueid: %s", problem.c_str());
      return NVSHMEMX_ERROR_INTERNAL;
    }
    own.isListening = true;
    const int file = Control::createFile(problem);
    if (file < 0) {
      report("nvshmemx_get_uniqueid: %s", problem.c_str());
      return NVSHMEMX_ERROR_INTERNAL;
    }
    Identifier id = {};
    memcpy(id.magic, kIdMagic, sizeof kIdMagic);
    const uint64_t key = own.exchange.offer(file);
    memcpy(id.key, &key, sizeof key);
    own.files[key] = file;
    snprintf(id.name, sizeof id.name, "%s", own.exchange.name().c_str());
    uniqueid->version = (1 << 16) + static_cast<int>(sizeof *uniqueid);
    memcpy(uniqueid->internal, &id, sizeof id);
    return NVSHMEMX_SUCCESS;
  });
}

int nvshmemx_set_attr_uniqueid_args(int myrank, int nranks, const nvshmemx_uniqueid_t* uniqueid,
                                    nvshmemx_init_attr_t* attr) {
  if (attr == nullptr) return NVSHMEMX_ERROR_INVALID_VALUE;
  attr->args.uid_args.id = const_cast<nvshmemx_uniqueid_t*>(uniqueid);
  attr->args.uid_args.myrank = myrank;
  attr->args.uid_args.nranks = nranks;
  return NVSHMEMX_SUCCESS;
}

int nvshmemx_set_attr_mpi_comm_args(void* mpi_comm, nvshmemx_init_attr_t* attr) {
  if (attr == nullptr) return -1;
  attr->mpi_comm = mpi_comm;
  return NVSHMEMX_SUCCESS;
}
