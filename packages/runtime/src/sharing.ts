/** Memory shared between threads and processes. */
export * from '@shoal/driver/sharing'
