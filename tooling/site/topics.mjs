// Finds the topics of the reference. They are the chapters of the vendors' manuals, which the docstring of each C
// function links to.
import { libraries } from '../libraries/index.mjs'

/** The titles of the manuals' chapters, by their names in links. */
const titles = {
  __VERSION: 'Versions',
  CHECKPOINT: 'Checkpoints of processes',
  COREDUMP: 'Core dumps',
  CTX: 'Contexts',
  DEVICE: 'Devices',
  DRIVER: 'Driver and runtime together',
  DRIVER__ENTRY__POINT: 'Entry points of the driver',
  EGL: 'EGL interoperability',
  ERROR: 'Errors',
  EVENT: 'Events',
  EXEC: 'Execution',
  EXECUTION: 'Execution',
  EXTRES__INTEROP: 'External memory and semaphores',
  GL: 'OpenGL interoperability',
  GRAPH: 'Graphs',
  GRAPHICS: 'Graphics interoperability',
  GREEN__CONTEXTS: 'Green contexts',
  INITIALIZE: 'Initialization',
  INTEROP: 'Graphics interoperability',
  LIBRARY: 'Libraries',
  LOGS: 'Logs of errors',
  MALLOC__ASYNC: 'Memory pools',
  MEM: 'Memory',
  MEMOP: 'Stream memory operations',
  MEMORY: 'Memory',
  MEMORY__POOLS: 'Memory pools',
  MODULE: 'Modules',
  MULTICAST: 'Multicast objects',
  OCCUPANCY: 'Occupancy',
  OPENGL: 'OpenGL interoperability',
  PEER: 'Access between devices',
  PEER__ACCESS: 'Access between devices',
  PRIMARY__CTX: 'Primary contexts',
  PROFILER: 'Profiler control',
  STREAM: 'Streams',
  SURFACE__OBJECT: 'Textures and surfaces',
  SURFOBJECT: 'Textures and surfaces',
  SURFREF: 'Texture and surface references',
  TENSOR__MEMORY: 'Tensor maps',
  TEXOBJECT: 'Textures and surfaces',
  TEXREF: 'Texture and surface references',
  TEXTURE__OBJECT: 'Textures and surfaces',
  UNIFIED: 'Unified addressing',
  VA: 'Virtual memory',
  VDPAU: 'VDPAU interoperability',
  VERSION: 'Versions',
  amo: 'Atomic operations',
  collectives: 'Collectives',
  colls: 'Collectives',
  comms: 'Communicators',
  device: 'Device API',
  device_setup: 'Device API',
  green: 'Green contexts',
  group: 'Groups',
  group__NvLink: 'NVLink',
  group__nvmlAccountingStats: 'Accounting of processes',
  group__nvmlAffinity: 'Affinity of processors',
  group__nvmlDeviceCommands: 'Device commands',
  group__nvmlDeviceQueries: 'Device queries',
  group__nvmlErrorReporting: 'Errors',
  group__nvmlEvents: 'Events of devices',
  group__nvmlExcludedGpuQueries: 'Excluded GPUs',
  group__nvmlFieldValueQueries: 'Field values',
  group__nvmlGpmFunctions: 'Performance metrics',
  group__nvmlGPUPRMAccess: 'Registers of ports',
  group__nvmlInitializationAndCleanup: 'Initialization',
  group__nvmlMultiInstanceGPU: 'Multi-instance GPUs',
  group__nvmlPowerProfiles: 'Power profiles',
  group__nvmlPowerSmoothing: 'Power smoothing',
  group__nvmlSystemQueries: 'System queries',
  group__nvmlUnitCommands: 'Unit commands',
  group__nvmlUnitQueries: 'Unit queries',
  group__nvmlUtil: 'Virtual GPU utilization',
  group__nvmlVgpu: 'Virtual GPUs',
  group__nvmlVgpuMigration: 'Virtual GPU migration',
  group__nvmlVirtualGpuQueries: 'Virtual GPU queries',
  group__nvmlZPI: 'Draining of devices',
  heap: 'Symmetric memory',
  ipc: 'Sharing memory',
  memory: 'Symmetric memory',
  ops: 'Reduction operators',
  ordering: 'Ordering',
  p2p: 'Point to point',
  rma: 'Remote memory access',
  setup: 'Set-up and queries',
  signal: 'Signals',
  sync: 'Synchronization',
  teams: 'Teams',
  ...Object.fromEntries(libraries.flatMap(({ id, topic }) => (topic === undefined ? [] : [[id, topic]]))),
}

const cName = new RegExp(`\\b(?:${libraries.map(({ functionNames }) => functionNames).join('|')})\\w+`, 'g')

/** Returns the chapter that a link into a manual refers to. @throws Error if it has no title here */
export function chapterOf(link) {
  const [, page = ''] = /\/(?:group__CUD(?:A|ART)__)?(\w+?)(?:\/index)?\.html/.exec(link) ?? []
  const title = titles[page.replace(/__DEPRECATED$/, '')]
  if (title === undefined) throw new Error(`No title for the topic of ${link}: add it to ${import.meta.url}.`)
  return page.endsWith('__DEPRECATED') ? `${title}, deprecated` : title
}

/** The topic titles of source folders. */
const folders = {
  addon: 'Calling C',
  arguments: 'Checks of arguments',
  atomics: 'Atomic operations',
  attributes: 'Execution',
  communicator: 'Communicators',
  context: 'Contexts',
  device: 'Devices',
  deviceApi: 'Device API',
  deviceCode: 'Device code',
  dtypes: 'Element types',
  event: 'Events',
  external: 'External memory and semaphores',
  graph: 'Graphs',
  green: 'Green contexts',
  group: 'Groups',
  group__NvLink: 'NVLink',
  group__nvmlAccountingStats: 'Accounting of processes',
  group__nvmlAffinity: 'Affinity of processors',
  group__nvmlDeviceCommands: 'Device commands',
  group__nvmlDeviceQueries: 'Device queries',
  group__nvmlErrorReporting: 'Errors',
  group__nvmlEvents: 'Events of devices',
  group__nvmlExcludedGpuQueries: 'Excluded GPUs',
  group__nvmlFieldValueQueries: 'Field values',
  group__nvmlGpmFunctions: 'Performance metrics',
  group__nvmlGPUPRMAccess: 'Registers of ports',
  group__nvmlInitializationAndCleanup: 'Initialization',
  group__nvmlMultiInstanceGPU: 'Multi-instance GPUs',
  group__nvmlPowerProfiles: 'Power profiles',
  group__nvmlPowerSmoothing: 'Power smoothing',
  group__nvmlSystemQueries: 'System queries',
  group__nvmlUnitCommands: 'Unit commands',
  group__nvmlUnitQueries: 'Unit queries',
  group__nvmlUtil: 'Virtual GPU utilization',
  group__nvmlVgpu: 'Virtual GPUs',
  group__nvmlVgpuMigration: 'Virtual GPU migration',
  group__nvmlVirtualGpuQueries: 'Virtual GPU queries',
  group__nvmlZPI: 'Draining of devices',
  heap: 'Symmetric memory',
  ipc: 'Sharing memory',
  launch: 'Execution',
  library: 'Libraries',
  lifetime: 'Communicators',
  linker: 'Linking',
  log: 'Compiling',
  managed: 'Memory',
  memory: 'Memory',
  module: 'Modules',
  multicast: 'Multicast objects',
  oneSided: 'Point to point',
  operations: 'Reduction operators',
  options: 'Compiling',
  pitched: 'Memory',
  pointer: 'Unified addressing',
  rma: 'Remote memory access',
  session: 'Set-up and queries',
  share: 'Sharing memory',
  signals: 'Signals',
  stream: 'Streams',
  texture: 'Textures and surfaces',
  vmm: 'Virtual memory',
}

/**
 * Returns the topic of each export: `{ name, kind, home, file, link, text, isClass }`. For a C function it is the
 * chapter that its docstring links to. For another export it is the topic of most C functions that its text names. If
 * its text names none, it belongs to the class whose name starts its own name, or else to its folder.
 */
export function topicsOf(all) {
  const linked = new Map()
  const topics = new Map()
  for (const one of all) {
    if (!isRaw(one) || one.link === undefined) continue
    const topic = chapterOf(one.link)
    linked.set(one.name, topic)
    // NVSHMEM has a copy of each function for every type, and one file holds all copies. So the file is the topic.
    const isTyped = one.home === 'nvshmem-sys'
    topics.set(one, isTyped ? `${topic}: ${words(one.file.split('/').at(-1))}` : `${libraryOf(one)}${topic}`)
  }
  const vendors = new Set(all.filter(isRaw).map(({ home }) => home.replace('-sys', '').replace('cuda', 'driver')))
  for (const one of all.filter(({ home }) => vendors.has(home) || home === 'runtime')) {
    const topic = mostOf((one.text.match(cName) ?? []).flatMap((name) => linked.get(name) ?? []))
    if (topic !== undefined) topics.set(one, topic)
  }
  const classes = all.filter(({ isClass }) => isClass).sort((one, other) => other.name.length - one.name.length)
  for (const one of all.filter((each) => !topics.has(each))) {
    const owner = classes.find(({ name, home }) => home === one.home && one.name.startsWith(name))
    topics.set(one, (owner && topics.get(owner)) ?? besides(one))
  }
  return topics
}

function isRaw({ home }) {
  return home.endsWith('-sys')
}

function mostOf(topics) {
  const counts = new Map()
  for (const topic of topics) counts.set(topic, (counts.get(topic) ?? 0) + 1)
  return [...counts].sort(([, one], [, other]) => other - one)[0]?.[0]
}

function besides(one) {
  const parts = one.file
    .replace(/(?:\.gen|\/index)$/, '')
    .split('/')
    .filter((part) => part !== 'generated')
  const [folder = '', ...within] = parts
  if (!isRaw(one)) return folder === '' || within.length === 0 ? 'General' : (folders[folder] ?? words(folder))
  const [kind = 'general', ...rest] = parts.slice(libraryOf(one) === '' ? 0 : 1)
  return `${libraryOf(one)}${words(kind)}${rest.length === 0 ? '' : `: ${words(rest.join(' '))}`}`
}

/** `cuda-sys` binds two libraries. */
function libraryOf({ home, file }) {
  const [first = '', ...rest] = file.split('/')
  return home === 'cuda-sys' && rest.length > 0 ? `${words(first)}: ` : ''
}

/** Turns `graphNode` into `Graph node`. */
function words(name) {
  const spaced = name
    .replace('.gen', '')
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
  return spaced.charAt(0).toUpperCase() + spaced.slice(1)
}
