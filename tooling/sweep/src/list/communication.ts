// The questions for NCCL and NVSHMEM.
import type { Spec } from '../spec.js'
import { type Group, GroupBuilder, handle, integer, out, presence, text, use } from './steps.js'

const parameters = ['NCCL_DEBUG', 'DEBUG', 'NCCL_NVLS_ENABLE', 'NVLS_ENABLE', 'NCCL_NO_SUCH_PARAMETER']

export function ncclGroups(spec: Spec): Group[] {
  const plain = new GroupBuilder(spec, 'nccl', { devices: 0 }).ask('ncclGetVersion', out('int'))
  for (const code of [...spec.values('ncclResult_t'), 20, 1000, -1]) plain.ask('ncclGetErrorString', integer(code))
  plain.ask('ncclGetLastError', integer(0))
  if (spec.functions.has('ncclParamGetAllParameterKeys')) {
    plain.ask(
      'ncclParamGetAllParameterKeys',
      out('const char **', { follow: { count: 1 }, compare: presence('an address of this process') }),
      out('int'),
    )
    for (const name of parameters)
      plain.ask('ncclParamGetParameter', text(name), out('const char *', { follow: 'text' }), out('int'))
  }
  const communicator = new GroupBuilder(spec, 'nccl-communicator')
    .setUp('ncclCommInitAll', handle('ncclComm_t', 'communicator'), integer(1), { kind: 'null' })
    .ask('ncclCommCount', use('communicator'), out('int'))
    .ask('ncclCommCuDevice', use('communicator'), out('int'))
    .ask('ncclCommUserRank', use('communicator'), out('int'))
    .ask('ncclCommGetAsyncError', use('communicator'), out('ncclResult_t'))
    .setUp('ncclCommDestroy', use('communicator'))
  return [plain.build(), communicator.build()]
}

export function nvshmemGroups(spec: Spec): Group[] {
  const group = new GroupBuilder(spec, 'nvshmem', { devices: 0 })
    .ask('nvshmem_info_get_version', out('int'), out('int'))
    .ask('nvshmem_info_get_name', out('char', { count: 256 }))
    .ask('nvshmemx_vendor_get_version_info', out('int'), out('int'), out('int'))
    .ask('nvshmemx_init_status')
  return [group.build()]
}
