/**
 * Milliseconds of silence before the kernel probes the other machine.
 *
 * After ten probes without an answer, one per second, the connection ends. So an unreachable machine is detected within
 * 15 s.
 */
export const keepAliveDelay = 5_000
/** Milliseconds for which a rank retries after a duplicate is reported, because an earlier job may be ending. */
export const endingJobLimit = 5_000
/** Milliseconds for which a rank with several ports assumes that a job with another secret is another user's. */
export const strangerLimit = 20_000
