import { nvshmemx_init_status, nvshmemx_init_status_t } from '@shoal/nvshmem-sys'

/**
 * State of NVSHMEM in this process.
 *
 * With `limited-sharing` and `full-sharing` it runs with several PEs per device; only the latter supports all
 * functions.
 */
export type NvshmemStatus = 'not-initialized' | 'bootstrapped' | 'initialized' | 'limited-sharing' | 'full-sharing'

const names = new Map<number, NvshmemStatus>([
  [nvshmemx_init_status_t.NVSHMEM_STATUS_NOT_INITIALIZED, 'not-initialized'],
  [nvshmemx_init_status_t.NVSHMEM_STATUS_IS_BOOTSTRAPPED, 'bootstrapped'],
  [nvshmemx_init_status_t.NVSHMEM_STATUS_IS_INITIALIZED, 'initialized'],
  [nvshmemx_init_status_t.NVSHMEM_STATUS_LIMITED_MPG, 'limited-sharing'],
  [nvshmemx_init_status_t.NVSHMEM_STATUS_FULL_MPG, 'full-sharing'],
])

/**
 * Returns the state of NVSHMEM in this process (`nvshmemx_init_status`).
 *
 * Callable at any time.
 */
export function nvshmemStatus(): NvshmemStatus {
  return names.get(nvshmemx_init_status()) ?? 'not-initialized'
}

/** True if NVSHMEM runs in this process, also if other code started it. */
export function isRunning(): boolean {
  const status = nvshmemStatus()
  return status !== 'not-initialized' && status !== 'bootstrapped'
}
