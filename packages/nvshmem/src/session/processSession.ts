import { SessionExistsError } from '../errors.js'
import { isRunning } from './status.js'

/** What the session of this process does, or what became of it. */
export type SessionState = 'is starting' | 'is running' | 'did not start' | 'did not finalize' | 'was abandoned'

/** NVSHMEM's state is the process's, so there is one session at most. */
let state: SessionState | undefined
/** Whether there was one. NVSHMEM keeps how it was brought together for good, and crashes when it is started once more. */
let wasStarted = false

/** The process may have a session from here on: nothing native has begun. @throws SessionExistsError */
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

/** There is no session any more, as after one that has ended as it should. */
export function releaseSession(): void {
  state = undefined
}

function refuseSecond(api: string): void {
  if (state !== undefined) {
    throw new SessionExistsError(
      `${api}: an NVSHMEM session of this process ${state}; there is one in a process at a time, and one that has not ended as it should is the last`,
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
