import type { Addon } from '../addon/contract.js'

/** Set while calls are recorded for another thread: then no argument may live in the JavaScript heap. */
export const recording: { addon: Addon | undefined } = { addon: undefined }
