import { general, type Subject } from './subject.js'

/** Returns the subject of the functions that inspect a process. */
export async function diagnosticsSubject(name: 'driver' | 'runtime'): Promise<Subject> {
  const driver = await import('@shoal/driver')
  const runtime = await import('@shoal/runtime')
  const base =
    name === 'driver' ? await import('@shoal/driver/diagnostics') : await import('@shoal/runtime/diagnostics')
  const device = (name === 'driver' ? driver : runtime).Device.get(0)
  return {
    module: base,
    instances: { ProcessCheckpoint: () => new base.ProcessCheckpoint(process.pid) },
    values: {
      ...general,
      DeviceOrContext: () => device,
      '#owner': () => device,
      '#scope': () => 'process',
      '#setting': () => 'generationFlags',
      '#value': () => 1,
      '#pid': () => process.pid,
      '#name': () => 'cuInit',
      '#path': () => '/dev/null',
    },
    foreignObjects: { 'a stream': () => driver.Device.get(0).createStream() },
  }
}
