import type { DeviceReport } from './report.js'

/** What the processes of a job say to each other over Node's IPC channel. */
export type ToParent =
  | { readonly kind: 'id'; readonly id: string }
  | { readonly kind: 'done'; readonly report: DeviceReport; readonly seconds: number; readonly ncclVersion: string }
  | { readonly kind: 'failed'; readonly message: string }

export interface ToRank {
  readonly kind: 'id'
  readonly id: string
}

/** The environment variable that makes a process a rank; `rank/ranks`. */
export const rankVariable = 'SHOAL_EXAMPLE_RANK'
