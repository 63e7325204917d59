/**
 * First NCCL version of each function, as NCCL counts versions (2402 is 2.4.2, 22803 is 2.28.3). The headers do not say.
 *
 * Where it comes from: what the libraries 2.22.3 and 2.29.7 of Debian and 2.28.9 and 2.30.7 of NVIDIA's wheels export, which
 * `abi` lists and a test compares; the headers of 2.30.7, which say what exists; and for the releases between and before
 * those, NVIDIA's release notes, user guides and repository as far as they are known, which no test here can compare. A
 * version is meant to be the first release that has the function; patch releases that were never published do not count
 * (2.19.3 is the first of 2.19, 2.24.3 of 2.24). What is known least:
 *
 * - `ncclBroadcast`: the first release of 2.2, after NVIDIA's list of releases. `ncclGetVersion`: from CuPy's
 *   documentation, which names 2.3.4. `ncclRedOp...`: the first release of 2.11.
 * - `ncclCommInitRankScalable`: not in the library 2.22.3; 2.23.4 is the release whose user guide has a chapter on several
 *   unique ids.
 * - `ncclLsaBarrierCreateRequirement`: in the library 2.28.9; 2.28.3 brought the rest of the device API.
 * - `ncclResetDebugInitInternal`, `ncclGin(Outbox|InboxA2A)CreateRequirement`: no header has them; not in the library
 *   before (2.22.3, 2.28.9), in the one named. Releases in between may have them.
 * - `ncclParam...`: not in the library 2.29.7, in the library 2.30.7. 2.30.3 is the first release of 2.30.
 */
export const ncclSince: Readonly<Record<string, number>> = {
  // 2.0, the first release of this interface
  ncclAllGather: 2000,
  ncclAllReduce: 2000,
  ncclBcast: 2000,
  ncclCommCount: 2000,
  ncclCommCuDevice: 2000,
  ncclCommDestroy: 2000,
  ncclCommInitAll: 2000,
  ncclCommInitRank: 2000,
  ncclCommUserRank: 2000,
  ncclGetErrorString: 2000,
  ncclGetUniqueId: 2000,
  ncclGroupEnd: 2000,
  ncclGroupStart: 2000,
  ncclReduce: 2000,
  ncclReduceScatter: 2000,
  // 2.2.12
  ncclBroadcast: 2212,
  // 2.3.4
  ncclGetVersion: 2304,
  // 2.4.2
  ncclCommAbort: 2402,
  ncclCommGetAsyncError: 2402,
  // 2.7.3
  ncclRecv: 2703,
  ncclSend: 2703,
  // 2.11.4
  ncclRedOpCreatePreMulSum: 21104,
  ncclRedOpDestroy: 21104,
  // 2.13.4
  ncclGetLastError: 21304,
  // 2.14.3
  ncclCommFinalize: 21403,
  ncclCommInitRankConfig: 21403,
  // 2.18.1
  ncclCommSplit: 21801,
  // 2.19.3
  ncclCommDeregister: 21903,
  ncclCommRegister: 21903,
  ncclMemAlloc: 21903,
  ncclMemFree: 21903,
  // 2.22.3
  ncclGroupSimulateEnd: 22203,
  // 2.23.4
  ncclCommInitRankScalable: 22304,
  // 2.24.3
  ncclResetDebugInit: 22403,
  // 2.27.3
  ncclCommShrink: 22703,
  ncclCommWindowDeregister: 22703,
  ncclCommWindowRegister: 22703,
  // 2.28.3
  ncclAlltoAll: 22803,
  ncclDevCommCreate: 22803,
  ncclDevCommDestroy: 22803,
  ncclGather: 22803,
  ncclLLA2ACalcSlots: 22803,
  ncclLLA2ACreateRequirement: 22803,
  ncclLsaBarrierCreateRequirement: 22803,
  ncclScatter: 22803,
  ncclTeamLsa: 22803,
  ncclTeamRail: 22803,
  ncclTeamRankToLsa: 22803,
  ncclTeamRankToWorld: 22803,
  ncclTeamWorld: 22803,
  // 2.28.7
  ncclCommRevoke: 22807,
  ncclGinBarrierCreateRequirement: 22807,
  // 2.28.9
  ncclResetDebugInitInternal: 22809,
  // 2.29.2
  ncclCommGetUniqueId: 22902,
  ncclCommGrow: 22902,
  ncclCommQueryProperties: 22902,
  ncclGetLsaDevicePointer: 22902,
  ncclGetLsaMultimemDevicePointer: 22902,
  ncclGetMultimemDevicePointer: 22902,
  ncclGetPeerDevicePointer: 22902,
  ncclPutSignal: 22902,
  ncclSignal: 22902,
  ncclWaitSignal: 22902,
  ncclWinGetUserPtr: 22902,
  // 2.29.7
  ncclCommMemStats: 22907,
  ncclCommResume: 22907,
  ncclCommSuspend: 22907,
  ncclGinInboxA2ACreateRequirement: 22907,
  ncclGinOutboxCreateRequirement: 22907,
  // 2.30.3
  ncclParamBind: 23003,
  ncclParamDumpAll: 23003,
  ncclParamGet: 23003,
  ncclParamGetAllParameterKeys: 23003,
  ncclParamGetI16: 23003,
  ncclParamGetI32: 23003,
  ncclParamGetI64: 23003,
  ncclParamGetI8: 23003,
  ncclParamGetParameter: 23003,
  ncclParamGetStr: 23003,
  ncclParamGetU16: 23003,
  ncclParamGetU32: 23003,
  ncclParamGetU64: 23003,
  ncclParamGetU8: 23003,
}
