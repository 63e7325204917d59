/** Raw NCCL: functions, constants and struct layouts of nccl.h and of the device API's host functions. */
export { formatNcclVersion } from '@shoal/types'
export * from './generated/index.gen.js'
export { nccl } from './generated/library.gen.js'
export {
  initialNcclCommProperties,
  initialNcclConfig,
  initialNcclDevCommRequirements,
  initialNcclSimInfo,
  type NcclConfigValues,
  type NcclDevCommRequirementsValues,
  ncclConfigFields,
  readNcclCommProperties,
} from './initial.js'
