/**
 * Milliseconds of silence after which the kernel asks the other machine whether it is still there. After ten questions
 * without an answer, one each second, the connection ends. So a machine that is cut off is noticed within 15 s.
 */
export const keepAliveDelay = 5_000
/**
 * Milliseconds in which a rank that is refused as one that is there, or was, tries again: an earlier job may just be
 * ending.
 */
export const endingJobLimit = 5_000
/** Milliseconds in which a rank with several ports to try takes a job with another secret for somebody else's. */
export const strangerLimit = 20_000
