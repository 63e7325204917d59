// Several processes as the PEs of a job. The test makes the unique id and its children are the PEs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "process.h"
#include "shoal/nvshmem.h"

namespace pes {

struct Place {
  nvshmemx_uniqueid_t id;
  int pe;
  int size;
};

// Starts NVSHMEM with the parent's settings, and finalizes it at the end of the scope.
class Running {
 public:
  explicit Running(process::Peer& parent) : place(parent.receive<Place>()), primary(place.pe % 2) {
    nvshmemx_init_attr_t attributes = {};
    OK(nvshmemx_set_attr_uniqueid_args(place.pe, place.size, &place.id, &attributes));
    OK(nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes));
  }
  ~Running() { nvshmemx_hostlib_finalize(); }
  Place place;
  check::Primary primary;
};

class Job {
 public:
  Job(const char* role, int size) {
    Place place = {};
    OK(nvshmemx_get_uniqueid(&place.id));
    place.size = size;
    for (place.pe = 0; place.pe < size; ++place.pe) {
      children_.push_back(std::make_unique<process::Child>(role));
      children_.back()->send(place);
    }
  }
  process::Child& operator[](int pe) { return *children_[static_cast<size_t>(pe)]; }
  int size() const { return static_cast<int>(children_.size()); }
  void succeed() {
    for (auto& child : children_) EQUAL(child->wait(), 0);
  }

 private:
  std::vector<std::unique_ptr<process::Child>> children_;
};

// Silences standard error, because the messages of expected failures do not belong in the test's output.
inline void beQuiet() {
  if (freopen("/dev/null", "w", stderr) == nullptr) throw check::Failure("no /dev/null");
}

template <class Value>
std::vector<Value> fetch(const void* symmetric, size_t count) {
  std::vector<Value> values(count);
  OK(cuMemcpyDtoH_v2(values.data(), reinterpret_cast<CUdeviceptr>(symmetric), count * sizeof(Value)));
  return values;
}

template <class Value>
void store(void* symmetric, const std::vector<Value>& values) {
  OK(cuMemcpyHtoD_v2(reinterpret_cast<CUdeviceptr>(symmetric), values.data(), values.size() * sizeof(Value)));
}

}  // namespace pes
