/** Raw NCCL: functions, constants and struct layouts of nccl.h. */
export * from './generated/index.gen.js'
export { formatNcclVersion, nccl } from './library.js'
