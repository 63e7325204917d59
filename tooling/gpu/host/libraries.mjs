// Prints as JSON which libraries Shoal finds on this host, with path and version.
import { probe } from '@shoal/ffi'
import '@shoal/cuda-sys'
import '@shoal/driver'
import '@shoal/nccl'
import '@shoal/nvshmem-sys'

const found = probe().map(({ id, found, path, step, version, error }) => ({ id, found, path, step, version, error }))
process.stdout.write(JSON.stringify(found))
