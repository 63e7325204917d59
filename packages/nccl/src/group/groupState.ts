import type { LiveCommunicator } from '../lifetime/live.js'

/** What `groupAsync` gathers while its function runs. */
export interface Collected {
  readonly calls: { readonly api: string; readonly live: LiveCommunicator; readonly call: () => number }[]
  /** To be done once the calls have been made. */
  readonly after: (() => void)[]
}

/** The group of this thread. NCCL keeps its depth per thread; a worker has its own thread and its own copy of this module. */
export const groupState: { depth: number; collected: Collected | undefined } = { depth: 0, collected: undefined }

/** Whether a group is open on this thread. */
export function isGroupOpen(): boolean {
  return groupState.depth > 0
}

/** Whether operations are gathered for `groupAsync`. */
export function isCollecting(): boolean {
  return groupState.collected !== undefined
}
