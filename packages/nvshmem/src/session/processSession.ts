import { SessionExistsError } from '../errors.js'
import { isRunning } from './status.js'

/** What the session of this process does, or how it ended. */
export type SessionState = 'is starting' | 'is running' | 'did not start' | 'did not finalize' | 'was abandoned'

/** NVSHMEM's state is the process's, so there is one session at most. */
let state: SessionState | undefined
/** Whether there was one. NVSHMEM keeps its first bootstrap for good, and crashes when it is started once more. */
let wasStarted = false

/** Reserves the one session of the process, before anything native begins. @throws SessionExistsError */
export function claimSession(api: string): void {
  refuseSecond(api)
  state = 'is starting'
}

/** NVSHMEM is about to be started, which is possible once in a process. */
export function recordStart(): void {
  wasStarted = true
}

export function recordState(now: SessionState): void {
  state = now
}

/** Records that the session has ended as it should. */
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
    throw new SessionExistsError(`${api}: NVSHMEM runs in this process already, started by another thread or library`)
  }
  if (wasStarted) {
    throw new SessionExistsError(
      `${api}: this process had a session before, and NVSHMEM cannot be started again in it. Start a new process for another session.`,
    )
  }
}
