// Stops exceptions at the library's boundary.
#pragma once

#include <new>
#include <system_error>

#include "problem.h"

namespace shoal::nccl {

template <class Body>
ncclResult_t guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return problem(ncclSystemError, "out of host memory");
  } catch (const std::system_error& error) {
    return problem(ncclSystemError, "%s", error.what());
  } catch (...) {
    return problem(ncclInternalError, "unexpected exception");
  }
}

}  // namespace shoal::nccl
