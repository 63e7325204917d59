/** Memory that threads and processes use together. */
export * from '@shoal/driver/sharing'
