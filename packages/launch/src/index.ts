export { type BootstrapOptions, bootstrap } from './bootstrap.js'
export {
  LaunchEnvironmentError,
  RanksLostError,
  RendezvousError,
  RendezvousLostError,
  RendezvousTimeoutError,
} from './errors.js'
export type { Job, Launcher, RendezvousOptions, ShareOptions } from './job.js'
