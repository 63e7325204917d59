import { nvshmemx_init_status, nvshmemx_init_status_t } from '@shoal/nvshmem-sys'

/**
 * How far NVSHMEM is in this process. `limited-sharing` and `full-sharing` mean that it runs with several PEs on one
 * device, the latter with all of NVSHMEM.
 */
export type NvshmemStatus = 'not-initialized' | 'bootstrapped' | 'initialized' | 'limited-sharing' | 'full-sharing'

const names = new Map<number, NvshmemStatus>([
  [nvshmemx_init_status_t.NVSHMEM_STATUS_NOT_INITIALIZED, 'not-initialized'],
  [nvshmemx_init_status_t.NVSHMEM_STATUS_IS_BOOTSTRAPPED, 'bootstrapped'],
  [nvshmemx_init_status_t.NVSHMEM_STATUS_IS_INITIALIZED, 'initialized'],
  [nvshmemx_init_status_t.NVSHMEM_STATUS_LIMITED_MPG, 'limited-sharing'],
  [nvshmemx_init_status_t.NVSHMEM_STATUS_FULL_MPG, 'full-sharing'],
])

/** How far NVSHMEM is in this process, whoever started it (`nvshmemx_init_status`). May be asked at any time. */
export function nvshmemStatus(): NvshmemStatus {
  return names.get(nvshmemx_init_status()) ?? 'not-initialized'
}

/** Whether NVSHMEM runs in this process, whoever started it. */
export function isRunning(): boolean {
  const status = nvshmemStatus()
  return status !== 'not-initialized' && status !== 'bootstrapped'
}
