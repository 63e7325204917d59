type Areas = readonly (readonly [RegExp, string])[]

/** Files of functions, structs and enumerations, by name. Each file stays below 1000 lines. */
const functionAreas: Areas = [
  [/^nvmlVgpu/, 'vgpuInstance'],
  [/Vgpu|Grid/, 'vgpu'],
  [/(Gpu|Compute)Instance|Mig|^nvmlGpm/, 'instances'],
  [/Nv[Ll]ink|Fabric|P2P|Affinity|Topology|Pci|PRM|C2c|Bridge/, 'links'],
  [/Power|P[Ss]tate|Perf|Fan|Cooler|Temp|Therm|Energy/, 'power'],
  [/Clock|Clk|Boost/, 'clocks'],
  [/Memory|Ecc|Page|Remap|Row|BAR1|Process|Account|Utilization|Encoder|Decoder|FBC|Samples|Sram/, 'memory'],
  [/^nvml(System|Unit|Init|Shutdown|Error|Event|GetExcluded)|Events|EventTypes|ConfCompute/, 'system'],
  [/^nvmlDeviceGet(Handle|Name|UUID|Serial|Board|Index|Minor|Brand|Module|Hostname)|Version/, 'identity'],
  [/./, 'device'],
]

const structAreas: Areas = [
  [/Vgpu(Sched|Pgpu|Meta|Lic)|Grid/, 'vgpuState'],
  [/Vgpu/, 'vgpu'],
  [/(Gpu|Compute)Instance|Gpm|Mig/, 'instances'],
  [/C2c|Nvlink|NvLink|Fabric|P2P|Unit|Hwbc|PSU|Led|Event|Conf|CPER|PRM|Topo/, 'links'],
  [/Power|Clock|Clk|Temp|Therm|Fan|Cooler|Perf|Pstate|Edpp|Mask/, 'power'],
  [/Process|Utilization|Memory|Ecc|Encoder|FBC|Row|Account|Bank|Sample/, 'memory'],
  [/./, 'device'],
]

const enumAreas: Areas = [
  [/Vgpu|Gpm/, 'vgpu'],
  [/./, 'status'],
]

const find = (areas: Areas, name: string): string => areas.find(([pattern]) => pattern.test(name))?.[1] ?? 'device'

/** The name of a function's file. */
export const nvmlArea = (name: string): string => find(functionAreas, name)
export const nvmlEnumFile = (name: string): string => find(enumAreas, name)
export const nvmlStructFile = (name: string): string => find(structAreas, name)
export const isNvmlName = (name: string): boolean => name.startsWith('nvml')
