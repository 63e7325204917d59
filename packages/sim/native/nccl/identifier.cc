#include "identifier.h"

#include <cstring>

#include "problem.h"

namespace shoal::nccl {

namespace {
constexpr char kMagic[] = "SHOALSIM";  // eight bytes
static_assert(sizeof(Identifier) <= NCCL_UNIQUE_ID_BYTES);
}  // namespace

ncclResult_t makeIdentifier(ncclUniqueId& id) {
  Identifier made = {};
  std::string reason;
  memcpy(made.magic, kMagic, sizeof made.magic);
  if (!Rendezvous::own(made.rendezvous, reason))
    return problem(ncclSystemError, "a unique id cannot be made: %s", reason.c_str());
  made.key = randomNumber();
  memset(id.internal, 0, sizeof id.internal);
  memcpy(id.internal, &made, sizeof made);
  return ncclSuccess;
}

ncclResult_t readIdentifier(const ncclUniqueId& id, Identifier& identifier) {
  memcpy(&identifier, id.internal, sizeof identifier);
  const bool isOurs = memcmp(identifier.magic, kMagic, sizeof identifier.magic) == 0 && identifier.key != 0 &&
                      identifier.rendezvous.process > 0;
  if (!isOurs) return problem(ncclInvalidArgument, "the unique id does not come from ncclGetUniqueId of this library");
  return ncclSuccess;
}

}  // namespace shoal::nccl
