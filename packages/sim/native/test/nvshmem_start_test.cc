// Start by unique id and by a launcher's variables, and finalize.
#include <dirent.h>
#include <sys/stat.h>

#include <iterator>

#include "pes.h"

namespace {

void ring(process::Peer& parent) {
  EQUAL(nvshmemx_init_status(), NVSHMEM_STATUS_NOT_INITIALIZED);
  EQUAL(nvshmem_my_pe(), 0);
  EQUAL(nvshmem_n_pes(), 0);
  pes::Running running(parent);
  const int me = nvshmem_my_pe(), all = nvshmem_n_pes();
  EQUAL(me, running.place.pe);
  EQUAL(all, running.place.size);
  EQUAL(nvshmemx_init_status(), all > 2 ? NVSHMEM_STATUS_FULL_MPG : NVSHMEM_STATUS_IS_INITIALIZED);
  int* cells = static_cast<int*>(nvshmem_malloc(16 * sizeof(int)));
  CHECK(cells != nullptr);
  pes::store(cells, std::vector<int>(16, -1));
  nvshmem_barrier_all();
  std::vector<int> mine(16, 100 + me), theirs(16);
  nvshmem_putmem(cells, mine.data(), 16 * sizeof(int), (me + 1) % all);
  nvshmem_barrier_all();
  CHECK(pes::fetch<int>(cells, 16) == std::vector<int>(16, 100 + (me + all - 1) % all));
  nvshmem_getmem(theirs.data(), cells, 16 * sizeof(int), (me + 1) % all);
  CHECK(theirs == mine);
  nvshmem_barrier_all();
  nvshmem_free(cells);
}

int exchangeOnce() {
  int* cell = static_cast<int*>(nvshmem_malloc(sizeof(int)));
  if (cell == nullptr) return -1;
  nvshmem_int_p(cell, nvshmem_my_pe(), (nvshmem_my_pe() + 1) % nvshmem_n_pes());
  nvshmem_barrier_all();
  const int found = nvshmem_int_g(cell, nvshmem_my_pe());
  nvshmem_free(cell);
  return found;
}

// A second start joins the same job, whatever its arguments.
void startAgain(process::Peer& parent) {
  const auto place = parent.receive<pes::Place>();
  check::Primary primary(place.pe);
  nvshmemx_init_attr_t attributes = {};
  nvshmemx_uniqueid_t id = place.id;
  OK(nvshmemx_set_attr_uniqueid_args(place.pe, place.size, &id, &attributes));
  OK(nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes));
  EQUAL(exchangeOnce(), 1 - place.pe);
  // Starts are counted, so the first finalize does not end the session.
  OK(nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes));
  nvshmemx_hostlib_finalize();
  EQUAL(exchangeOnce(), 1 - place.pe);
  nvshmemx_hostlib_finalize();
  EQUAL(nvshmemx_init_status(), NVSHMEM_STATUS_NOT_INITIALIZED);
  OK(nvshmemx_set_attr_uniqueid_args(7, 9, &id, &attributes));
  for (int round = 0; round < 3; ++round) {
    OK(nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes));
    EQUAL(nvshmem_my_pe(), place.pe);
    EQUAL(nvshmem_n_pes(), 2);
    EQUAL(exchangeOnce(), 1 - place.pe);
    nvshmemx_hostlib_finalize();
  }
  nvshmemx_hostlib_finalize();
}

// Without a device, the job exists but has no memory yet.
void chooseDeviceLate(process::Peer& parent) {
  const auto place = parent.receive<pes::Place>();
  OK(cuInit(0));
  nvshmemx_init_attr_t attributes = {};
  nvshmemx_uniqueid_t id = place.id;
  OK(nvshmemx_set_attr_uniqueid_args(place.pe, place.size, &id, &attributes));
  OK(nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes));
  EQUAL(nvshmemx_init_status(), NVSHMEM_STATUS_IS_BOOTSTRAPPED);
  EQUAL(nvshmem_my_pe(), place.pe);
  EQUAL(nvshmem_n_pes(), 2);
  EQUAL(nvshmem_team_my_pe(NVSHMEM_TEAM_WORLD), place.pe);
  EQUAL(nvshmem_team_n_pes(NVSHMEM_TEAM_WORLD), 2);
  check::Primary primary(place.pe);
  EQUAL(exchangeOnce(), 1 - place.pe);
  EQUAL(nvshmemx_init_status(), NVSHMEM_STATUS_IS_INITIALIZED);
  nvshmemx_hostlib_finalize();
}

struct Wanted {
  nvshmemx_uniqueid_t id;
  int pe;
  int size;
  int status;
};

void startWrong(process::Peer& parent) {
  pes::beQuiet();
  auto wanted = parent.receive<Wanted>();
  check::Primary primary(0);
  nvshmemx_init_attr_t attributes = {};
  OK(nvshmemx_set_attr_uniqueid_args(wanted.pe, wanted.size, &wanted.id, &attributes));
  EQUAL(nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes), wanted.status);
  EQUAL(nvshmemx_init_status(), NVSHMEM_STATUS_NOT_INITIALIZED);
  EQUAL(nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, nullptr), NVSHMEMX_ERROR_INVALID_VALUE);
  nvshmemx_hostlib_finalize();
}

// Starts as under a launcher: only environment variables describe the job.
void underLauncher(process::Peer& parent) {
  const auto place = parent.receive<pes::Place>();
  setenv(place.id.version == 0 ? "OMPI_COMM_WORLD_RANK" : "PMI_RANK", std::to_string(place.pe).c_str(), 1);
  setenv(place.id.version == 0 ? "OMPI_COMM_WORLD_SIZE" : "PMI_SIZE", std::to_string(place.size).c_str(), 1);
  setenv("PMIX_NAMESPACE", "a job of a test", 1);
  check::Primary primary(place.pe % 2);
  nvshmemx_init_attr_t attributes = {};
  void* communicator = nullptr;
  EQUAL(nvshmemx_set_attr_mpi_comm_args(&communicator, nullptr), -1);
  OK(nvshmemx_set_attr_mpi_comm_args(&communicator, &attributes));
  OK(nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_WITH_MPI_COMM, &attributes));
  EQUAL(nvshmem_my_pe(), place.pe);
  EQUAL(nvshmem_n_pes(), place.size);
  EQUAL(exchangeOnce(), (place.pe + place.size - 1) % place.size);
  nvshmemx_hostlib_finalize();
}

void exitTogether(process::Peer& parent) {
  pes::Running running(parent);
  nvshmem_barrier_all();
  if (nvshmem_my_pe() == 1) nvshmem_global_exit(42);
  sleep(30);
}

// Misuses for which NVSHMEM ends the process.
void misuse(process::Peer& parent) {
  pes::beQuiet();
  const auto which = parent.receive<int>();
  if (which == 0) nvshmem_barrier_all();
  if (which == 1) nvshmem_malloc(16);
  if (which == 2) nvshmem_int_atomic_inc(nullptr, 0);
  check::Primary primary(0);
  nvshmemx_init_attr_t attributes = {};
  OK(nvshmemx_hostlib_init_attr(0, &attributes));
  int* cells = static_cast<int*>(nvshmem_malloc(64));
  int local[4] = {};
  if (which == 3) nvshmem_putmem(cells, local, 16, 1);
  if (which == 4) nvshmem_putmem(cells, local, 16, -1);
  if (which == 5) nvshmem_putmem(local, cells, 16, 0);
  if (which == 6) nvshmem_getmem(local, cells + (size_t{1} << 40), 16, 0);
  if (which == 7) nvshmem_int_iput(cells, local, 0, 1, 2, 0);
  if (which == 8) nvshmem_int_atomic_inc(reinterpret_cast<int*>(reinterpret_cast<char*>(cells) + 1), 0);
  if (which == 9) nvshmem_putmem(cells, local, size_t{1} << 40, 0);
  if (which == 10) nvshmem_team_destroy(NVSHMEM_TEAM_WORLD);
  if (which == 12) nvshmem_free(local);
  if (which == 13) {
    nvshmem_free(cells);
    nvshmem_free(cells);
  }
  // A single element never uses the stride, but an invalid stride is refused anyway.
  if (which == 14) nvshmem_int_iput(cells, local, 1, -1, 1, 0);
  if (which == 15) nvshmem_int_iput(cells, local, -1, 1, 1, 0);
  if (which == 16) nvshmem_int_iget(local, cells, -1, 1, 1, 0);
  if (which == 17) nvshmem_int_iget(local, cells, 1, 0, 1, 0);
  nvshmemx_hostlib_finalize();
  if (which == 11) nvshmem_quiet();
}

int sharedMemoryFiles() {
  int count = 0;
  if (DIR* folder = opendir("/dev/shm")) {
    while (const dirent* entry = readdir(folder)) count += strstr(entry->d_name, "nvshmem") != nullptr;
    closedir(folder);
  }
  return count;
}

// Each launcher has one variable for the rank and another for the number of ranks.
constexpr int kInvalid = NVSHMEMX_ERROR_INVALID_VALUE;
constexpr char ompi[] = "OMPI_COMM_WORLD_RANK", ompiSize[] = "OMPI_COMM_WORLD_SIZE", pmi[] = "PMI_RANK",
               pmiSize[] = "PMI_SIZE";
constexpr char slurm[] = "SLURM_PROCID", slurmSize[] = "SLURM_NTASKS";
constexpr struct {
  const char *rankName, *rank, *sizeName, *size;
  int status;
} kLaunched[] = {
    {ompi, "0", ompiSize, "1", 0},
    {pmi, "0", pmiSize, "1", 0},
    {slurm, "0", slurmSize, "1", 0},
    {slurm, "1", slurmSize, "1", kInvalid},
    {ompi, "1", ompiSize, nullptr, 0},
    {ompi, nullptr, ompiSize, "7", 0},
    {ompi, "0", ompiSize, "0", kInvalid},
    {ompi, "64", ompiSize, "65", kInvalid},
    {ompi, "64", ompiSize, "64", kInvalid},
    {ompi, "-1", ompiSize, "1", kInvalid},
    {ompi, "", ompiSize, "1", kInvalid},
    {ompi, "0", ompiSize, "", kInvalid},
    {ompi, "0x", ompiSize, "1", kInvalid},
    {ompi, "0", ompiSize, "1 ", kInvalid},
    {ompi, "0", ompiSize, "4294967297", kInvalid},
};

// Starts with one launcher's variables, and without those of other launchers.
void startAlone(process::Peer& parent) {
  pes::beQuiet();
  const auto& wanted = kLaunched[parent.receive<size_t>()];
  if (wanted.rank != nullptr) setenv(wanted.rankName, wanted.rank, 1);
  if (wanted.size != nullptr) setenv(wanted.sizeName, wanted.size, 1);
  check::Primary primary(0);
  nvshmemx_init_attr_t attributes = {};
  EQUAL(nvshmemx_hostlib_init_attr(0, &attributes), wanted.status);
  if (wanted.status != 0) return;
  EQUAL(nvshmem_my_pe(), 0);
  EQUAL(nvshmem_n_pes(), 1);
  nvshmemx_hostlib_finalize();
}

int openDescriptors() {
  int count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

// PEs pass descriptors to each other. A descriptor may be 0, which must not count as missing, and none must leak.
void withoutStandardStreams(process::Peer& parent) {
  for (int descriptor = 0; descriptor < 3; ++descriptor) close(descriptor);
  pes::Running running(parent);
  const int before = openDescriptors(), me = nvshmem_my_pe();
  for (int round = 0; round < 3; ++round) {
    // More than the heap has, so that it grows.
    int* cells = static_cast<int*>(nvshmem_malloc(size_t{70} << 20));
    CHECK(cells != nullptr);
    nvshmem_int_p(cells, 100 + me, 1 - me);
    nvshmem_barrier_all();
    EQUAL(nvshmem_int_g(cells, me), 101 - me);
  }
  // Each round adds one mapped file per PE. Another thread closes the sockets soon.
  const int expected = before + 3 * 2;
  for (int millisecond = 0; openDescriptors() > expected && millisecond < 60000; ++millisecond) usleep(1000);
  EQUAL(openDescriptors(), expected);
}

int statusOf(const Wanted& wanted) {
  process::Child child("start wrong");
  child.send(wanted);
  return child.wait();
}

}  // namespace

ROLES({"ring", ring}, {"start again", startAgain}, {"choose device late", chooseDeviceLate},
      {"start wrong", startWrong}, {"under launcher", underLauncher}, {"exit together", exitTogether},
      {"misuse", misuse}, {"start alone", startAlone}, {"without standard streams", withoutStandardStreams});

TEST(processes_put_into_the_next_process) {
  const int files = sharedMemoryFiles();
  for (const int size : {1, 2, 4, 8}) {
    pes::Job job("ring", size);
    job.succeed();
  }
  EQUAL(sharedMemoryFiles(), files);
}

TEST(a_second_start_is_in_the_same_job) { pes::Job("start again", 2).succeed(); }
TEST(the_device_may_be_chosen_after_the_start) { pes::Job("choose device late", 2).succeed(); }

TEST(a_wrong_start_is_refused) {
  nvshmemx_uniqueid_t id = {};
  OK(nvshmemx_get_uniqueid(&id));
  EQUAL(id.version, (1 << 16) + 128);
  EQUAL(nvshmemx_get_uniqueid(nullptr), NVSHMEMX_ERROR_INVALID_VALUE);
  EQUAL(statusOf({id, 2, 2, NVSHMEMX_ERROR_INVALID_VALUE}), 0);
  EQUAL(statusOf({id, -1, 2, NVSHMEMX_ERROR_INVALID_VALUE}), 0);
  EQUAL(statusOf({id, 0, 0, NVSHMEMX_ERROR_INVALID_VALUE}), 0);
  EQUAL(statusOf({id, 0, 1000, NVSHMEMX_ERROR_INVALID_VALUE}), 0);
  nvshmemx_uniqueid_t wrong = id;
  memset(wrong.internal, 0, sizeof wrong.internal);
  EQUAL(statusOf({wrong, 0, 1, NVSHMEMX_ERROR_INVALID_VALUE}), 0);
  for (const size_t place : {0, 7, 16, 29}) {  // the mark at the start, and the prefix of the name
    wrong = id;
    wrong.internal[place] ^= 1;
    EQUAL(statusOf({wrong, 0, 1, NVSHMEMX_ERROR_INVALID_VALUE}), 0);
  }
  wrong = id;
  for (char& each : wrong.internal) each = each == 0 ? 'x' : each;  // a name without a terminator
  EQUAL(statusOf({wrong, 0, 1, NVSHMEMX_ERROR_INVALID_VALUE}), 0);
  wrong = id;
  wrong.internal[40] ^= 1;  // in the name, which no process serves then
  EQUAL(statusOf({wrong, 0, 1, NVSHMEMX_ERROR_INTERNAL}), 0);
  wrong = id;
  wrong.internal[8] ^= 64;  // in the key
  EQUAL(statusOf({wrong, 0, 1, NVSHMEMX_ERROR_INTERNAL}), 0);
}

TEST(unique_ids_differ_and_each_is_a_job) {
  pes::Job one("ring", 2), other("ring", 2);
  one.succeed();
  other.succeed();
}

TEST(a_launcher_says_who_is_who) {
  for (const auto& [launcher, size] : {std::pair{0, 3}, {1, 3}, {0, 2}, {1, 2}, {0, 1}}) {
    std::vector<std::unique_ptr<process::Child>> children;
    // The last PE starts first, so the others have to wait for PE 0.
    for (int pe = size - 1; pe >= 0; --pe) {
      children.push_back(std::make_unique<process::Child>("under launcher"));
      pes::Place place = {};
      place.id.version = launcher;
      place.pe = pe;
      place.size = size;
      children.back()->send(place);
    }
    for (auto& child : children) EQUAL(child->wait(), 0);
  }
}

TEST(variables_of_launchers_are_whole_numbers) {
  for (size_t index = 0; index < std::size(kLaunched); ++index) {
    process::Child child("start alone");
    child.send(index);
    const auto& each = kLaunched[index];
    if (child.wait() != 0)
      throw check::Failure(std::string(each.rankName) + "=" + (each.rank == nullptr ? "" : each.rank) + ", " +
                           (each.size == nullptr ? "" : each.size));
  }
}

TEST(descriptors_are_closed_and_may_be_the_first) { pes::Job("without standard streams", 2).succeed(); }

TEST(a_global_exit_ends_all_processes) {
  pes::Job job("exit together", 3);
  for (int pe = 0; pe < 3; ++pe) EQUAL(job[pe].wait(), 42);
}

TEST(misuse_ends_the_process_with_words) {
  for (int which = 0; which <= 17; ++which) {
    process::Child child("misuse");
    child.send(which);
    const int status = child.wait();
    if (status != 255)
      throw check::Failure("misuse " + std::to_string(which) + " ended with " + std::to_string(status));
  }
}

TEST(versions_and_names_need_no_start) {
  int major = 0, minor = 0, patch = 0;
  nvshmemx_vendor_get_version_info(&major, &minor, &patch);
  EQUAL(major * 10000 + minor * 100 + patch, 30405);
  nvshmem_info_get_version(&major, &minor);
  EQUAL(major * 100 + minor, 103);
  char name[NVSHMEM_MAX_NAME_LEN];
  nvshmem_info_get_name(name);
  EQUAL(strcmp(name, "NVSHMEM v3.4.5"), 0);
  CHECK(nvshmem_ptr(name, 0) == nullptr);
  CHECK(shoalSimNvshmemFailure() == nullptr);
}
