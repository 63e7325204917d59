/** Raw NVSHMEM: the functions of libnvshmem_host, with constants and struct layouts of its headers. */
export { formatNvshmemVersion } from '@shoal/types'
export * from './generated/index.gen.js'
export { nvshmem } from './generated/library.gen.js'
export {
  NVSHMEM_TEAM_CONFIG_INITIALIZER,
  NVSHMEMX_INIT_ARGS_INITIALIZER,
  NVSHMEMX_INIT_ATTR_INITIALIZER,
  NVSHMEMX_UNIQUEID_ARGS_INITIALIZER,
  NVSHMEMX_UNIQUEID_INITIALIZER,
  structVersion,
} from './initializers.js'
