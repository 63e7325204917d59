import { SessionExistsError } from '../errors.js'
import { isRunning } from './status.js'

/** State of this process's session. */
export type SessionState = 'is starting' | 'is running' | 'did not start' | 'did not finalize' | 'was abandoned'

/** NVSHMEM's state belongs to the process, so there is at most one session. */
let state: SessionState | undefined
/** Whether NVSHMEM was ever started. It keeps its first bootstrap forever and crashes at a second start. */
let wasStarted = false

/** Reserves the single session of the process, before any native call. @throws SessionExistsError */
export function claimSession(api: string): void {
  refuseSecond(api)
  state = 'is starting'
}

/** Records the start of NVSHMEM, which is possible once per process. */
export function recordStart(): void {
  wasStarted = true
}

export function recordState(now: SessionState): void {
  state = now
}

/** Records that the session has ended normally. */
export function releaseSession(): void {
  state = undefined
}

function refuseSecond(api: string): void {
  if (state !== undefined) {
    throw new SessionExistsError(
      `${api}: an NVSHMEM session of this process ${state}; a process has one session, and none after one that was not finalized`,
    )
  }
  if (isRunning()) {
    throw new SessionExistsError(
      `${api}: NVSHMEM already runs in this process, because another thread or library started it`,
    )
  }
  if (wasStarted) {
    throw new SessionExistsError(
      `${api}: this process had a session before, and NVSHMEM cannot be started again in it. Start a new process for another session.`,
    )
  }
}
