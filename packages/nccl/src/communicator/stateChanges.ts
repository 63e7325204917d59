import { NCCL_REVOKE_DEFAULT, NCCL_SUSPEND_MEM, ncclCommResume, ncclCommRevoke, ncclCommSuspend } from '@shoal/nccl-sys'
import { type CommunicatorWaitOptions, requireWait } from '../lifetime/waitOptions.js'
import type { CommunicatorLifecycle } from './lifecycle.js'

/** Implements `Communicator.revoke`. */
export async function revoke(lifecycle: CommunicatorLifecycle, options?: CommunicatorWaitOptions): Promise<void> {
  lifecycle.requireUsable('revoke')
  const waitOptions = requireWait(options, 'Communicator.revoke')
  const rejectWaits = lifecycle.revoked('revoke')
  const call = (): void => void ncclCommRevoke(lifecycle.native.handle, NCCL_REVOKE_DEFAULT)
  try {
    await lifecycle.guarded('revoke', waitOptions, (background) =>
      lifecycle.call('ncclCommRevoke', call, background, false),
    )
  } finally {
    rejectWaits()
  }
}

/** Implements `Communicator.suspend`. */
export async function suspend(lifecycle: CommunicatorLifecycle, options?: CommunicatorWaitOptions): Promise<void> {
  lifecycle.requireUsable('suspend')
  const call = (): void => void ncclCommSuspend(lifecycle.native.handle, NCCL_SUSPEND_MEM)
  await lifecycle.changing('suspend', options, 'ncclCommSuspend', call, 'open', 'suspended')
}

/** Implements `Communicator.resume`. */
export async function resume(lifecycle: CommunicatorLifecycle, options?: CommunicatorWaitOptions): Promise<void> {
  if (lifecycle.state !== 'suspended') lifecycle.requireUsable('resume')
  const call = (): void => void ncclCommResume(lifecycle.native.handle)
  await lifecycle.changing('resume', options, 'ncclCommResume', call, 'suspended', 'open')
}
