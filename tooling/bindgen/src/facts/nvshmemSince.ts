/**
 * First NVSHMEM version of each function, as NVSHMEM counts versions (30405 is 3.4.5). The headers do not say; these come
 * from comparing what releases export. A function that is not listed is taken to have come with the header's own version.
 */
export const nvshmemSince: Readonly<Record<string, number>> = {}
