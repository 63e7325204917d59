// Objects made with a communicator: reduction operations and registrations.
#include "buffer.h"
#include "communicator.h"
#include "guard.h"
#include "problem.h"

using namespace shoal::nccl;

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
                                      ncclScalarResidence_t residence, ncclComm_t comm) {
  return guarded([&]() -> ncclResult_t {
    constexpr char function[] = "ncclRedOpCreatePreMulSum";
    std::shared_ptr<Communicator> communicator;
    if (const ncclResult_t result = Communicator::findReady(comm, function, communicator)) return result;
    if (op == nullptr || scalar == nullptr) return problem(ncclInvalidArgument, "%s: op or scalar is NULL", function);
    if (datatype < 0 || datatype >= ncclNumTypes)
      return problem(ncclInternalError, "%s: %d is not a data type", function, datatype);
    if (residence != ncclScalarDevice && residence != ncclScalarHostImmediate) {
      return problem(ncclInvalidArgument, "%s: %d is not a residence", function, residence);
    }
    if (residence == ncclScalarDevice) {
      if (const ncclResult_t result = checkBuffer(*communicator, function, "scalar", scalar, bytesOf(datatype)))
        return result;
    }
    int made = 0;
    const ncclResult_t result = communicator->createPreMulSum(datatype, scalar, residence, made);
    *op = static_cast<ncclRedOp_t>(made);
    return result;
  });
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  return guarded([&]() -> ncclResult_t {
    std::shared_ptr<Communicator> communicator;
    if (const ncclResult_t result = Communicator::find(comm, "ncclRedOpDestroy", communicator)) return result;
    return communicator->destroyPreMulSum(static_cast<int>(op));
  });
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle) {
  return guarded([&]() -> ncclResult_t {
    std::shared_ptr<Communicator> communicator;
    if (const ncclResult_t result = Communicator::findReady(comm, "ncclCommRegister", communicator)) return result;
    if (handle == nullptr) return problem(ncclInvalidArgument, "ncclCommRegister: handle is NULL");
    *handle = nullptr;
    if (size == 0) return ncclSuccess;  // nothing to register
    if (const ncclResult_t result = checkBuffer(*communicator, "ncclCommRegister", "buff", buff, size)) return result;
    return communicator->registerBuffer(buff, size, handle);
  });
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle) {
  return guarded([&]() -> ncclResult_t {
    std::shared_ptr<Communicator> communicator;
    if (const ncclResult_t result = Communicator::find(comm, "ncclCommDeregister", communicator)) return result;
    return handle == nullptr ? ncclSuccess : communicator->deregisterBuffer(handle);
  });
}
