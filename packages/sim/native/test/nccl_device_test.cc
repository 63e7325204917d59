// The host side of the device API, parameters, and simulated groups.
#include "nccl_ranks.h"

using check::onRanks;
using check::Primary;
using check::Rank;

namespace {

const bool isConfigured = [] {
  setenv("SHOAL_SIM_DEVICES", "4", 1);
  setenv("SHOAL_SIM_TIMEOUT_SECONDS", "10", 1);
  return true;
}();

const char* parameter(const char* key) {
  const char* value = nullptr;
  int length = -1;
  NCCL(ncclParamGetParameter(key, &value, &length));
  EQUAL(length, strlen(value));
  return value;
}

}  // namespace

TEST(properties_and_teams) {
  onRanks(3, [](Rank& self) {
    ncclCommProperties_t properties = {};
    EQUAL(ncclCommQueryProperties(self.comm, &properties), ncclInvalidUsage);
    properties = NCCL_COMM_PROPERTIES_INITIALIZER;
    NCCL(ncclCommQueryProperties(self.comm, &properties));
    EQUAL(properties.rank, self.rank);
    EQUAL(properties.nRanks, 3);
    EQUAL(properties.cudaDev, self.rank);
    EQUAL(properties.nLsaTeams, 1);
    CHECK(properties.hostRmaSupport && properties.multimemSupport);
    EQUAL(properties.ginType, NCCL_GIN_TYPE_NONE);
    const ncclTeam_t world = ncclTeamWorld(self.comm), lsa = ncclTeamLsa(self.comm), rail = ncclTeamRail(self.comm);
    EQUAL(world.nRanks, 3);
    EQUAL(world.rank, self.rank);
    EQUAL(lsa.nRanks, 3);
    EQUAL(rail.nRanks, 1);
    EQUAL(rail.stride, 3);
    for (int rank = 0; rank < 3; ++rank) EQUAL(ncclTeamRankToWorld(self.comm, world, rank), rank);
    for (int rank = 0; rank < 3; ++rank) EQUAL(ncclTeamRankToLsa(self.comm, lsa, rank), rank);
    EQUAL(ncclTeamWorld(nullptr).nRanks, 0);
  });
}

TEST(requirements_are_as_large_as_those_of_nccl) {
  ncclDevResourceRequirements_t need;
  ncclLsaBarrierHandle_t barrier = {};
  NCCL(ncclLsaBarrierCreateRequirement({8, 1, 1}, 5, &barrier, &need));
  EQUAL(barrier.nBarriers, 5);
  EQUAL(need.bufferSize, 220);
  EQUAL(need.bufferAlign, 4);
  CHECK(need.outBufferHandle == &barrier.bufHandle && need.next == nullptr);
  ncclLLA2AHandle_t exchange = {};
  NCCL(ncclLLA2ACreateRequirement(3, 7, &exchange, &need));
  EQUAL(exchange.nSlots, 7);
  EQUAL(need.bufferSize, 720);
  EQUAL(need.bufferAlign, 16);
  EQUAL(ncclLLA2ACalcSlots(7, 9), 14);
  EQUAL(ncclLLA2ACalcSlots(100, 32), 400);
  ncclGinOutboxHandle_t outbox = {};
  NCCL(ncclGinOutboxCreateRequirement(3, 4, &outbox, &need));
  EQUAL(outbox.size_log2, 7);
  EQUAL(need.bufferSize, 25344);
  NCCL(ncclGinOutboxCreateRequirement(2, 10, &outbox, &need));
  EQUAL(need.bufferSize, 18688);
  ncclGinInboxA2AHandle_t inbox = {};
  NCCL(ncclGinInboxA2ACreateRequirement({4, 0, 1}, 3, 9, &inbox, &need));
  EQUAL(need.bufferSize, 1920);
  EQUAL(need.ginSignalCount, 6180);
  EQUAL(inbox.nPeers_rcp32, 0x55555555);
  CHECK(need.outGinSignalStart == &inbox.signals);
  EQUAL(ncclGinInboxA2ACreateRequirement({1, 0, 1}, 1, 4, &inbox, &need), ncclInvalidArgument);
  ncclGinBarrierHandle_t gin = {};
  NCCL(ncclGinBarrierCreateRequirement(nullptr, {8, 0, 1}, 3, &gin, &need));
  EQUAL(need.ginSignalCount, 24);
  EQUAL(need.bufferSize, 0);
  EQUAL(ncclLsaBarrierCreateRequirement({8, 1, 1}, 1, nullptr, &need), ncclInvalidArgument);
  EQUAL(ncclLLA2ACreateRequirement(-1, 7, &exchange, &need), ncclInvalidArgument);
}

TEST(a_device_communicator_has_its_resources_on_every_rank) {
  onRanks(2, [](Rank& self) {
    ncclDevCommRequirements_t need = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
    ncclDevResourceRequirements_t first, second;
    ncclLsaBarrierHandle_t barrier = {};
    ncclLLA2AHandle_t exchange = {};
    NCCL(ncclLsaBarrierCreateRequirement(ncclTeamLsa(self.comm), 4, &barrier, &first));
    NCCL(ncclLLA2ACreateRequirement(2, 8, &exchange, &second));
    barrier.bufHandle = exchange.bufHandle = ~0u;
    first.next = &second;
    need.resourceRequirementsList = &first;
    need.lsaBarrierCount = 2;
    need.barrierCount = 1;
    ncclDevComm_t made = {};
    NCCL(ncclDevCommCreate(self.comm, &need, &made));
    EQUAL(made.magic, NCCL_API_MAGIC);
    EQUAL(made.rank, self.rank);
    EQUAL(made.nRanks, 2);
    EQUAL(made.lsaSize, 2);
    EQUAL(made.nRanks_rcp32, 0x80000000u);
    EQUAL(made.lsaBarrier.nBarriers, 2);
    EQUAL(made.hybridLsaBarrier.nBarriers, 1);
    CHECK(barrier.bufHandle != ~0u && exchange.bufHandle > barrier.bufHandle);
    uint64_t bytes = 0;
    NCCL(ncclCommMemStats(self.comm, ncclStatGpuMemPersist, &bytes));
    CHECK(bytes >= size_t{128} * exchange.bufHandle + 2 * 17 * 16);
    // Each rank can read the other's memory.
    for (int peer = 0; peer < 2; ++peer) {
      void* there = nullptr;
      NCCL(ncclGetPeerDevicePointer(made.resourceWindow, size_t{128} * exchange.bufHandle, peer, &there));
      if (peer == self.rank) {
        CHECK(static_cast<char*>(there) == made.resourceWindow_inlined.lsaFlatBase +
                                               (static_cast<uint64_t>(self.rank) << 32) +
                                               size_t{128} * exchange.bufHandle);
      }
      unsigned value = 1;
      OK(cuMemcpyDtoH_v2(&value, reinterpret_cast<CUdeviceptr>(there), 4));
      EQUAL(value, 0);
    }
    // Synchronize, so that no rank frees memory that the other still reads.
    check::Buffer ready(4);
    NCCL(ncclAllReduce(ready.at(), ready.at(), 1, ncclInt32, ncclSum, self.comm, self.stream));
    check::finish(self);
    NCCL(ncclDevCommDestroy(self.comm, &made));
    EQUAL(ncclDevCommDestroy(self.comm, &made), ncclInvalidArgument);
    // Unsupported requirements are refused.
    ncclTeamRequirements_t team = {nullptr, {1, 0, 1}, true, nullptr};
    need.teamRequirementsList = &team;
    EQUAL(ncclDevCommCreate(self.comm, &need, &made), ncclInvalidUsage);
    // Multicast memory of all ranks is supported.
    ncclMultimemHandle_t everybody = {};
    team.team = ncclTeamWorld(self.comm);
    team.outMultimemHandle = &everybody;
    need.lsaMultimem = true;
    NCCL(ncclDevCommCreate(self.comm, &need, &made));
    CHECK(made.lsaMultimem.mcBasePtr != nullptr && everybody.mcBasePtr == made.lsaMultimem.mcBasePtr);
    NCCL(ncclDevCommDestroy(self.comm, &made));
    need.lsaMultimem = false;
    need.teamRequirementsList = nullptr;
    need.ginForceEnable = true;
    EQUAL(ncclDevCommCreate(self.comm, &need, &made), ncclInvalidUsage);
    need.ginForceEnable = false;
    need.barrierCount = -1;
    EQUAL(ncclDevCommCreate(self.comm, &need, &made), ncclInvalidArgument);
    need = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
    need.magic = 0;
    EQUAL(ncclDevCommCreate(self.comm, &need, &made), ncclInvalidUsage);
    EQUAL(ncclDevCommCreate(self.comm, nullptr, &made), ncclInvalidArgument);
    // The ranks disagree.
    need = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
    need.barrierCount = self.rank == 0 ? 1 : 1000;
    EQUAL(ncclDevCommCreate(self.comm, &need, &made), ncclInvalidUsage);
    // A device communicator that is not destroyed ends with its communicator.
    need.barrierCount = 3;
    NCCL(ncclDevCommCreate(self.comm, &need, &made));
  });
}

TEST(one_thread_makes_device_communicators_in_a_group) {
  OK(cuInit(0));
  ncclComm_t comms[2] = {};
  NCCL(ncclCommInitAll(comms, 2, nullptr));
  ncclDevComm_t made[2] = {};
  NCCL(ncclGroupStart());
  for (int rank = 0; rank < 2; ++rank) {
    ncclDevCommRequirements_t need = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
    ncclDevResourceRequirements_t list = {};
    list.bufferSize = 1000;
    need.resourceRequirementsList = &list;
    NCCL(ncclDevCommCreate(comms[rank], &need, &made[rank]));
  }
  NCCL(ncclGroupEnd());
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(made[rank].resourceWindow != nullptr);
    NCCL(ncclDevCommDestroy(comms[rank], &made[rank]));
    NCCL(ncclCommDestroy(comms[rank]));
  }
}

TEST(parameters_are_read_from_the_environment) {
  for (const char* key :
       {"NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS", "NCCL_SET_THREAD_NAME", "NCCL_PARAM_DUMP_ALL"})
    unsetenv(key);
  const char** keys = nullptr;
  int count = 0;
  NCCL(ncclParamGetAllParameterKeys(&keys, &count));
  EQUAL(count, 6);
  CHECK(strcmp(keys[0], "NCCL_DEBUG_FILE") == 0 && strcmp(keys[5], "NCCL_DEBUG") == 0);
  setenv("NCCL_PARAM_DUMP_ALL", "true", 1);
  NCCL(ncclParamGetAllParameterKeys(&keys, &count));
  EQUAL(count, 9);
  unsetenv("NCCL_PARAM_DUMP_ALL");
  const auto is = [](const char* key, const char* value) {
    if (strcmp(parameter(key), value) != 0) throw check::Failure(std::string(key) + " is " + parameter(key));
  };
  is("NCCL_DEBUG", "<unknown>");
  is("NCCL_DEBUG_SUBSYS", "INIT,ENV,BOOTSTRAP");
  is("NCCL_DEBUG_TIMESTAMP_FORMAT", "[%F %T] ");
  is("NCCL_DEBUG_TIMESTAMP_LEVELS", "WARN");
  setenv("NCCL_DEBUG", "info", 1);
  is("NCCL_DEBUG", "INFO");
  setenv("NCCL_SET_THREAD_NAME", "T", 1);
  is("NCCL_SET_THREAD_NAME", "TRUE");
  setenv("NCCL_DEBUG_SUBSYS", "^NET", 1);
  is("NCCL_DEBUG_SUBSYS",
     "INIT,COLL,P2P,SHM,GRAPH,TUNING,ENV,ALLOC,ALLOC_HOST,CALL,PROXY,NVLS,BOOTSTRAP,REG,PROFILE,RAS,DESTROY");
  ncclParamHandle_t handle = nullptr;
  NCCL(ncclParamBind(&handle, "NCCL_DEBUG_SUBSYS"));
  uint64_t wide = 0;
  NCCL(ncclParamGetU64(handle, &wide));
  EQUAL(wide, 0xffffffffffffffefu);
  setenv("NCCL_DEBUG_SUBSYS", "nothing", 1);
  NCCL(ncclParamGetU64(handle, &wide));
  EQUAL(wide, 0x1081);
  uint32_t narrow = 0;
  int64_t other = 0;
  const char* text = nullptr;
  EQUAL(ncclParamGetU32(handle, &narrow), ncclInvalidArgument);
  EQUAL(ncclParamGetI64(handle, &other), ncclInvalidArgument);
  EQUAL(ncclParamGetStr(handle, &text), ncclInvalidArgument);
  EQUAL(ncclParamGetU64(handle, nullptr), ncclInvalidArgument);
  EQUAL(ncclParamGetU64(nullptr, &wide), ncclInvalidArgument);
  EQUAL(ncclParamGetU64(reinterpret_cast<ncclParamHandle_t>(0x77), &wide), ncclInvalidArgument);
  char raw[16];
  int length = -1;
  NCCL(ncclParamGet(handle, raw, sizeof raw, &length));
  EQUAL(length, 8);
  EQUAL(ncclParamGet(handle, raw, 7, &length), ncclInvalidArgument);
  EQUAL(length, 0);
  NCCL(ncclParamBind(&handle, "NCCL_DEBUG_FILE"));
  setenv("NCCL_DEBUG_FILE", "/tmp/x", 1);
  NCCL(ncclParamGetStr(handle, &text));
  CHECK(strcmp(text, "/tmp/x") == 0);
  NCCL(ncclParamGet(handle, raw, sizeof raw, &length));
  EQUAL(length, 7);
  EQUAL(ncclParamBind(&handle, "NCCL_NOTHING"), ncclInvalidArgument);
  EQUAL(ncclParamBind(nullptr, "NCCL_DEBUG"), ncclInvalidArgument);
  EQUAL(ncclParamGetParameter("NCCL_NOTHING", &text, &length), ncclInvalidArgument);
  EQUAL(ncclParamGetAllParameterKeys(nullptr, &count), ncclInvalidArgument);
  for (const char* key : {"NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS", "NCCL_SET_THREAD_NAME"}) unsetenv(key);
}

TEST(a_simulated_group_starts_nothing) {
  Primary primary;
  ncclComm_t comm = nullptr;
  NCCL(ncclCommInitAll(&comm, 1, nullptr));
  check::Buffer buffer(4 << 20);
  CUstream stream = check::stream();
  OK(cuMemsetD32_v2(reinterpret_cast<CUdeviceptr>(buffer.at()), 9, 1));
  ncclSimInfo_t small = NCCL_SIM_INFO_INITIALIZER, large = NCCL_SIM_INFO_INITIALIZER, none = NCCL_SIM_INFO_INITIALIZER;
  EQUAL(ncclGroupSimulateEnd(&small), ncclInvalidUsage);
  const auto simulate = [&](size_t count, ncclSimInfo_t& info) {
    NCCL(ncclGroupStart());
    NCCL(ncclBroadcast(buffer.at(4), buffer.at(), count, ncclInt8, 0, comm, stream));
    NCCL(ncclGroupSimulateEnd(&info));
  };
  simulate(4, small);
  simulate(1 << 20, large);
  CHECK(small.estimatedTime > 0 && large.estimatedTime > small.estimatedTime);
  OK(cuStreamSynchronize(stream));
  EQUAL(buffer.get(1)[0], 9);
  NCCL(ncclGroupStart());
  NCCL(ncclGroupSimulateEnd(&none));
  CHECK(none.estimatedTime == -1.0f);
  NCCL(ncclGroupStart());
  NCCL(ncclGroupSimulateEnd(nullptr));
  none.magic = 1;
  NCCL(ncclGroupStart());
  EQUAL(ncclGroupSimulateEnd(&none), ncclInvalidArgument);
  EQUAL(ncclGroupEnd(), ncclInvalidUsage);
  NCCL(ncclCommDestroy(comm));
}
